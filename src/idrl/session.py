"""One training run on the disk: feeds the loop's progress to records, checkpoints and display."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from idrl.agents import Agent
from idrl.config import RunConfig
from idrl.envs import Env, HostEnv
from idrl.envs.optimum import optimal_returns
from idrl.errors import TrainingDiverged
from idrl.runs import checkpoint
from idrl.runs.folder import RunFolder
from idrl.runs.records import spread
from idrl.runs.sinks import Sinks
from idrl.training.compiled import Compiled
from idrl.training.hosted import Hosted
from idrl.training.loop import Progress, train
from idrl.training.program import Program
from idrl.training.survey import Survey

CHECKPOINT_SECONDS = 300


class Display(Protocol):
    """What shows a run while it goes."""

    def start(self) -> None: ...

    def update(self, progress: Progress, config: RunConfig) -> None: ...


class Interrupted(Exception):
    """Ctrl-C or SIGTERM; the run is safe and can be resumed."""

    def __init__(self, path: Path, steps: int):
        super().__init__(f"Stopped at step {steps:,}; its checkpoint is saved.")
        self.path = path


def make_program(config: RunConfig, env: Env | HostEnv) -> Program:
    agent = Agent(config.spec, env.obs_shape, env.num_actions)
    rest = config.training, config.evaluation, config.seeds
    if isinstance(env, HostEnv):
        return Hosted(agent, env, *rest)
    return Compiled(agent, env, *rest)


def restore_state(program: Program, folder: RunFolder) -> tuple[Any, dict, list[str]]:
    """The newest intact checkpoint's state and meta, or None, and what was passed over."""
    place, damaged = checkpoint.newest(folder.checkpoints)
    if place is None:
        return None, {}, damaged
    state = program.place(checkpoint.restore(place, program.like()))
    return state, checkpoint.read_meta(place), damaged


def run_session(
    folder: RunFolder,
    config: RunConfig,
    env: Env | HostEnv,
    *,
    sinks: Callable[[], Sinks],
    display: Display | None = None,
    until: Callable[[], bool] | None = None,
) -> None:
    """Train from the newest checkpoint, or from the beginning, to the end, or to where `until`
    says so: it is asked whenever new rows are in the records. `sinks` opens the run's sinks, once
    the folder is this process's own."""
    folder.lock()
    program = told = None
    try:
        told = sinks()
        with _signals() as stop:
            program = make_program(config, env)
            _train(program, folder, config, env, told, display, stop, until)
    finally:
        if program is not None:
            program.close()
        if told is not None:
            told.close()
        folder.unlock()


def _train(program, folder, config, env, sinks, display, stop: threading.Event, until) -> None:
    keys = program.seed_keys(config.seed)
    state, meta, _ = restore_state(program, folder)
    sizes = meta.get("sizes", {})
    for name, table in folder.tables.items():
        table.cut(sizes.get(name, 0))
    if display is not None:
        display.start()
    recorder = _Recorder(folder, config, env, sinks, meta)
    recorder.survey = Survey(program.agent, env)
    saved = clock = time.monotonic()
    for progress in train(program, state, meta.get("iteration", 0), keys):
        now = time.monotonic()
        recorder.record(progress, now - clock)
        clock = now
        if display is not None:
            display.update(progress, config)
        enough = until is not None and until()
        due = enough or progress.score is not None or now - saved > CHECKPOINT_SECONDS
        if due or stop.is_set():
            meta = {
                "iteration": progress.iteration,
                "sizes": {name: table.size() for name, table in folder.tables.items()},
                "episodes": recorder.episodes,
                "regret": recorder.regret,
            }
            checkpoint.save(folder.checkpoints, progress.steps, progress.state, meta)
            saved = now
        if stop.is_set():
            raise Interrupted(folder.path, progress.steps)
        if enough:
            return


class _Recorder:
    """Writes what a block brought; keeps nothing that a checkpoint would not hold."""

    def __init__(self, folder: RunFolder, config: RunConfig, env, sinks: Sinks, meta: dict):
        self.tables, self.config, self.env, self.sinks = folder.tables, config, env, sinks
        self.episodes: list[int] = list(meta.get("episodes", [0] * config.seeds))
        self.regret: list[float] = list(meta.get("regret", [0.0] * config.seeds))  # acting
        self.optimum: np.ndarray | None = None  # the best return of each seed's task, where known
        self.started = False
        self.seconds = 0.0  # since the last row of timings
        self.survey: Survey | None = None

    def record(self, progress: Progress, seconds: float) -> None:
        _check_numbers(progress, self.config)
        if not self.started:
            task, self.started = progress.state.task, True
            self.optimum = optimal_returns(self.env, task, self.config.seeds)
        self.tables["episodes"].append(self._episode_rows(progress))
        if progress.log:
            self._metrics(progress)
        if progress.score is not None:
            self._evaluations(progress)
        if progress.distributions is not None:
            self._distributions(progress)
        if progress.score is not None or progress.iteration == 0:
            self._map(progress)
        self.seconds += seconds
        if progress.log:
            row = {"steps": progress.steps, "seconds": round(self.seconds, 3)}
            self.tables["timings"].append([row])
            self.seconds = 0.0

    def _episode_rows(self, progress: Progress) -> Iterator[dict[str, Any]]:
        done = progress.episodes
        for i, index in enumerate(done.seed.tolist()):
            self.episodes[index] += 1
            row = {
                "seed": self.config.seed + index,
                "episode": self.episodes[index],
                "steps": int(done.steps[i]),
                "return": float(done.returns[i]),
                "length": int(done.lengths[i]),
                **{name: float(values[i]) for name, values in done.info.items()},
            }
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

    def _metrics(self, progress: Progress) -> None:
        rows = []
        for index in range(self.config.seeds):
            mine = progress.episodes.returns[progress.episodes.seed == index]
            mean = float(mine.mean()) if mine.size else float("nan")
            assert progress.metrics is not None
            values = {name: float(v[index]) for name, v in progress.metrics.items()}
            if self.optimum is not None:
                values["cumulative_regret"] = self.regret[index]
            rows.append(self._row(index, progress.steps, {"episode_return": mean, **values}))
        self.tables["metrics"].append(rows)

    def _evaluations(self, progress: Progress) -> None:
        score, best = progress.score, np.asarray(progress.state.best.score)
        assert score is not None
        rows = []
        for index in range(self.config.seeds):
            info = {name: float(v[index]) for name, v in score.info.items()}
            mean = float(score.return_mean[index])
            values = {
                "episodes": int(score.episodes[index]),
                "return_mean": mean,
                "best": float(best[index]),
                "return_std": float(score.return_std[index]),
                "length_mean": float(score.length_mean[index]),
                **info,
                **self._missed(index, mean, info),
            }
            rows.append(self._row(index, progress.steps, values, "evaluation/"))
        self.tables["evaluations"].append(rows)

    def _distributions(self, progress: Progress) -> None:
        seen, rows = progress.distributions or {}, []
        for index in range(self.config.seeds):
            seed, mine = self.config.seed + index, {name: x[index] for name, x in seen.items()}
            for name, values in mine.items():
                told = {"seed": seed, "steps": progress.steps, "quantity": name}
                rows.append(told | spread(values))
            named = {f"distributions/{name}": x.reshape(-1) for name, x in mine.items()}
            self.sinks.histograms(seed, progress.steps, named)
        self.tables["distributions"].append(rows)

    def _map(self, progress: Progress) -> None:
        number = progress.steps // self.config.evaluation.every_steps
        if self.survey is not None and self.survey.due(number):
            maps = enumerate(self.survey.sigma(progress.state))
            self.tables["sigma_map"].append(
                {"seed": self.config.seed + index, "steps": progress.steps,
                 "sigma": " ".join(f"{value:.4g}" for value in sigma)}
                for index, sigma in maps
            )  # fmt: skip

    def _row(self, index: int, steps: int, values: dict[str, Any], tag: str = "train/"):
        seed = self.config.seed + index
        named = {tag + name: float(v) for name, v in values.items()}
        self.sinks.scalars(seed, steps, named)
        return {"seed": seed, "steps": steps, **values}


def _check_numbers(progress: Progress, config: RunConfig) -> None:
    metrics = progress.metrics or {}
    for name in (*(name for name in metrics if name.startswith("loss")), "grad_norm"):
        if name in metrics:
            wrong = np.flatnonzero(~np.isfinite(metrics[name]))
            if wrong.size:
                raise TrainingDiverged(
                    f"{name} of seed {config.seed + int(wrong[0])} is not a finite number at step "
                    f"{progress.steps:,}; the last checkpoint is from before. A smaller "
                    "optimiser.lr often helps."
                )


@contextlib.contextmanager
def _signals() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM set the event; a second Ctrl-C interrupts at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handle(number, frame):
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    old = {s: signal.signal(s, handle) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
