"""bsuite's exploration and noise experiments: what each sweeps over, for how long, and how it is
judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from idrl.bsuite import scoring
from idrl.bsuite.scoring import Runs
from idrl.envs.families.bsuite import GAMES
from idrl.errors import IdrlError, unknown

NOISES = (0.1, 0.3, 1.0, 3.0, 10.0)
SIZES = tuple(range(10, 51, 2))
HEIGHTS = tuple(n / 20 for n in range(20))

# bsuite's published bar plot, read to ±0.01
PUBLISHED = {
    "deep_sea": {"random": 0.0, "dqn": 0.0, "boot_dqn": 1.0},
    "deep_sea_stochastic": {"random": 0.14, "dqn": 0.0, "boot_dqn": 0.86},
    "cartpole_swingup": {"random": 0.0, "dqn": 0.0, "boot_dqn": 0.28},
    "bandit_noise": {"random": 0.0, "dqn": 0.60, "boot_dqn": 0.74},
    "catch_noise": {"random": 0.0, "dqn": 0.46, "boot_dqn": 0.66},
    "mountain_car_noise": {"random": 0.05, "dqn": 0.82, "boot_dqn": 0.93},
    "cartpole_noise": {"random": 0.04, "dqn": 0.71, "boot_dqn": 0.68},
}


@dataclass(frozen=True)
class Experiment:
    """One axis of the radar. A point of its sweep is one run of `seeds` seeds."""

    name: str
    setting: str  # what is swept
    values: tuple[float, ...]
    env: str  # with {} where the value goes
    seeds: int  # bsuite's runs of one value
    column: str  # of episodes.csv: what is scored
    judge: Callable[[Mapping[float, Runs]], float]

    def env_of(self, value: float) -> str:
        return self.env.format(value)

    @property
    def episodes(self) -> int:
        return 10_000 if self.setting == "size" else self._game.episodes

    def longest_steps(self, value: float) -> int:
        """Of one episode: DeepSea's are as long as it is deep."""
        return int(value) if self.setting == "size" else self._game.longest_steps

    @property
    def _game(self):
        return GAMES[self.env.split("?")[0].partition("/")[2]]

    @property
    def windy(self) -> bool:
        return self.name == "deep_sea_stochastic"

    def decided(self, value: float, runs: Runs, episodes: int) -> bool:
        """Whether more episodes could not change the score. Most experiments count all of them;
        DeepSea's is known once it is solved, or too late to beat dithering."""
        if self.setting != "size":
            return all(len(run) >= episodes for run in runs)
        enough = min(episodes, scoring.dithering(int(value)))
        return all(
            len(run) >= enough or scoring.solved_at(np.asarray(run), windy=self.windy)
            for run in runs
        )

    def tell(self, runs: Runs) -> str:
        """A point's outcome in words."""
        if self.setting != "size":
            return f"mean return {np.mean([np.mean(run) for run in runs]):.4g}"
        found = [scoring.solved_at(run, windy=self.windy) for run in runs]
        return "solved at episode " + ", ".join(str(e) if e else "–" for e in found)


def _noise(game: str, judge: Callable[[Runs], float]) -> Experiment:
    return Experiment(
        f"{game}_noise", "noise", NOISES, f"bsuite/{game}?noise={{}}", 4, "raw_return",
        lambda points: scoring.over_noise([judge(runs) for runs in points.values()]),
    )  # fmt: skip


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "deep_sea", "size", SIZES, "deep_sea/{}", 1, "bad",
            lambda points: scoring.deep_sea(points, windy=False),
        ),
        Experiment(
            "deep_sea_stochastic", "size", SIZES, "deep_sea/{}?stochastic=1", 1, "bad",
            lambda points: scoring.deep_sea(points, windy=True),
        ),
        Experiment(
            "cartpole_swingup", "height", HEIGHTS, "bsuite/cartpole_swingup?height={}", 1,
            "raw_return",
            lambda points: scoring.over_sweep([scoring.swingup(r) for r in points.values()]),
        ),
        _noise("bandit", scoring.bandit),
        _noise("catch", scoring.catch),
        _noise("mountain_car", scoring.mountain_car),
        _noise("cartpole", scoring.cartpole),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """An experiment as it is to be run: bsuite's own, or trimmed."""

    experiment: Experiment
    values: tuple[float, ...]
    seeds: int
    episodes: int

    def trimmed(self) -> str:
        """What differs from bsuite's settings; empty where nothing does."""
        full, parts = self.experiment, []
        if self.values != full.values:
            parts.append(f"{full.setting}s " + ",".join(map(str, self.values)))
        if self.seeds != full.seeds:
            parts.append(f"{self.seeds} seeds, not {full.seeds}")
        if self.episodes != full.episodes:
            parts.append(f"{self.episodes:,} of {full.episodes:,} episodes")
        return "; ".join(parts)


def plan(
    names: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    seeds: int | None = None,
    episodes: int | None = None,
) -> list[Plan]:
    """The experiments to run, in bsuite's order of names or the one that is asked for."""
    plans = []
    for name in dict.fromkeys(names or EXPERIMENTS):
        if name not in EXPERIMENTS:
            raise unknown("bsuite experiment", name, EXPERIMENTS)
        full = EXPERIMENTS[name]
        values = full.values
        if sizes and full.setting == "size":
            values = tuple(dict.fromkeys(sizes))
        plans.append(Plan(full, values, seeds or full.seeds, episodes or full.episodes))
    if sizes and not any(p.experiment.setting == "size" for p in plans):
        raise IdrlError("--sizes belongs to deep_sea and deep_sea_stochastic; ask for one of them.")
    return plans
