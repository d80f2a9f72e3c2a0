"""Writes what a run's blocks brought into its tables and sinks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from idrl.config import RunConfig
from idrl.envs.optimum import optimal_returns
from idrl.storage.folder import RunFolder
from idrl.storage.records import spread
from idrl.storage.sinks import Sinks
from idrl.training.loop import Progress, Scored
from idrl.training.survey import Survey


class Recorder:
    """Writes what a block brought; keeps nothing that a checkpoint would not hold."""

    def __init__(
        self, folder: RunFolder, config: RunConfig, env, survey: Survey, sinks: Sinks, meta: dict
    ):
        self.tables, self.config, self.env, self.sinks = folder.tables, config, env, sinks
        self.survey = survey
        self.episodes: list[int] = list(meta.get("episodes", [0] * config.seeds))
        self.regret: list[float] = list(meta.get("regret", [0.0] * config.seeds))  # acting
        # Sum and number of the returns since the last row of metrics.
        self.returns: list[list[float]] = list(meta.get("returns", [[0.0, 0]] * config.seeds))
        self.optimum: np.ndarray | None = None  # the best return of each seed's task, where known
        self.started = False
        self.alive = np.ones(config.seeds, bool)
        self.seconds = 0.0  # since the last row of timings

    def record(self, progress: Progress, seconds: float) -> list[dict[str, Any]]:
        """The rows of the episodes that it completed."""
        self.alive = progress.alive
        self.tables["frozen"].append(self._frozen_rows(progress))
        if not self.started:
            task, self.started = progress.state.task, True
            self.optimum = optimal_returns(self.env, task, self.config.seeds)
        episodes = list(self._episode_rows(progress))
        self.tables["episodes"].append(episodes)
        if progress.log:
            self._metrics(progress)
        if progress.score is not None:
            self._evaluations(progress)
        if progress.distributions is not None:
            self._distributions(progress)
        if progress.scored is not None:
            self._map(progress.scored, progress)
        elif progress.iteration == 0:
            now = Scored(progress.steps, progress.alive, progress.state.agent.params)
            self._map(now, progress)
        self.seconds += seconds
        # Evaluations that are made after the last row of metrics have rows of their own.
        if progress.log or progress.steps >= self.config.training.steps:
            row = {"steps": progress.steps, "seconds": round(self.seconds, 3)}
            self.tables["timings"].append([row])
            self.seconds = 0.0
        return episodes

    def _episode_rows(self, progress: Progress) -> Iterator[dict[str, Any]]:
        done = progress.episodes
        for i, index in enumerate(done.seed.tolist()):
            if not self.alive[index]:
                continue
            self.episodes[index] += 1
            row = {
                "seed": self.config.seed + index,
                "episode": self.episodes[index],
                "steps": int(done.steps[i]),
                "return": float(done.returns[i]),
                "length": int(done.lengths[i]),
                **{name: float(values[i]) for name, values in done.info.items()},
            }
            total, count = self.returns[index]
            self.returns[index] = [total + row["return"], count + 1]
            missed = self._missed(index, row["return"], row)
            self.regret[index] += missed.get("regret", 0.0)
            yield row | missed

    def _missed(self, index: int, returned: float, info: dict[str, float]) -> dict[str, float]:
        """The regret of a return, where the best one is known; the luck of noisy rewards is left
        out where the environment tells."""
        if self.optimum is None:
            return {}
        regret = float(self.optimum[index]) - info.get("raw_return", returned)
        # Returns are sums of float32: what is beyond six decimals is their rounding.
        return {"regret": round(regret, 6) + 0.0}

    def _frozen_rows(self, progress: Progress) -> Iterator[dict[str, Any]]:
        for failure in progress.failures:
            yield {
                "seed": self.config.seed + failure.seed,
                "steps": failure.steps,
                "what": failure.what,
                "operation": failure.operation,
            }

    def _metrics(self, progress: Progress) -> None:
        rows = []
        for index in np.flatnonzero(self.alive).tolist():
            (total, count), self.returns[index] = self.returns[index], [0.0, 0]
            mean = total / count if count else float("nan")
            assert progress.metrics is not None
            values = {name: float(v[index]) for name, v in progress.metrics.items()}
            if self.optimum is not None:
                values["cumulative_regret"] = self.regret[index]
            rows.append(self._row(index, progress.steps, {"episode_return": mean, **values}))
        self.tables["metrics"].append(rows)

    def _evaluations(self, progress: Progress) -> None:
        score, best = progress.score, np.asarray(progress.state.best.score)
        scored = progress.scored
        assert score is not None
        assert scored is not None
        rows = []
        for index in np.flatnonzero(scored.alive).tolist():
            info = {name: float(v[index]) for name, v in score.info.items()}
            mean = float(score.return_mean[index])
            values = {
                "episodes": int(score.episodes[index]),
                "return_mean": mean,
                "best": float(best[index]),
                "return_std": float(score.return_std[index]),
                "length_mean": float(score.length_mean[index]),
                "truncated": int(score.truncated[index]),
                **info,
                **self._missed(index, mean, info),
            }
            rows.append(self._row(index, scored.steps, values, "evaluation/"))
        self.tables["evaluations"].append(rows)

    def _distributions(self, progress: Progress) -> None:
        seen, rows = dict(progress.distributions or {}), []
        allowed = seen.pop("allowed", None)
        for index in np.flatnonzero(self.alive).tolist():
            counted = ... if allowed is None else allowed[index]
            seed = self.config.seed + index
            mine = {name: x[index][counted] for name, x in seen.items()}
            for name, values in mine.items():
                told = {"seed": seed, "steps": progress.steps, "quantity": name}
                rows.append(told | spread(values))
            named = {f"distributions/{name}": x.reshape(-1) for name, x in mine.items()}
            self.sinks.histograms(seed, progress.steps, named)
        self.tables["distributions"].append(rows)

    def _map(self, seen: Scored, progress: Progress) -> None:
        number = seen.steps // self.config.evaluation.every_steps
        if self.survey.due(number):
            maps = enumerate(self.survey.sigma(seen.params, progress.state.agent.prior))
            self.tables["sigma_map"].append(
                {"seed": self.config.seed + index, "steps": seen.steps,
                 "sigma": " ".join(f"{value:.4g}" for value in sigma)}
                for index, sigma in maps
                if seen.alive[index]
            )  # fmt: skip

    def _row(self, index: int, steps: int, values: dict[str, Any], tag: str = "train/"):
        seed = self.config.seed + index
        named = {tag + name: float(v) for name, v in values.items()}
        self.sinks.scalars(seed, steps, named)
        return {"seed": seed, "steps": steps, **values}
