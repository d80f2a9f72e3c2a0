"""bsuite's scores, from 0 to 1, out of one number for every episode.

`Runs` are the runs of one setting (a size, a noise level): per seed an array over episodes, of
1 for bad and 0 for good episodes (DeepSea), or of returns without noise (everything else).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Runs = Sequence[np.ndarray]

# bsuite writes its records at these multiples of powers of ten, and judges DeepSea on them alone.
_RATIOS = (10, 12, 14, 17, 20, 25, 30, 40, 50, 60, 70, 80, 90)
FORGIVENESS = 100  # episodes beyond 2^N that DeepSea still counts


def recorded(episodes: int) -> list[int]:
    """The episodes up to `episodes` that bsuite records: 1, 2, …, 10, 12, 14, 17, 20, 25, …"""
    found, power = [], 1
    while power <= episodes:
        found += [r * power // 10 for r in _RATIOS if r * power % 10 == 0]
        power *= 10
    return [episode for episode in found if episode <= episodes]


def solved_at(bad: np.ndarray, *, windy: bool) -> int | None:
    """The first recorded episode at which under 90% of those so far were bad.

    In the windy form luck alone avoids some bad episodes: under 80%, and from the 100th on.
    """
    share, first = (0.8, 100) if windy else (0.9, 1)
    total = np.cumsum(bad)
    for episode in recorded(len(bad)):
        if episode >= first and total[episode - 1] / episode < share:
            return episode
    return None


def dithering(size: int) -> int:
    """Episodes below which a solution beats dithering."""
    return 2**size + FORGIVENESS


def deep_sea(points: Mapping[float, Runs], *, windy: bool) -> float:
    """The share of runs that were solved, and sooner than by dithering."""
    wins = []
    for size, runs in points.items():
        for bad in runs:
            episode = solved_at(bad, windy=windy)
            wins.append(episode is not None and episode < dithering(int(size)))
    return float(np.mean(wins))


def regret_score(runs: Runs, *, best: float, base: float) -> float:
    """1 for no regret against a return of `best` an episode, 0 for a regret of `base` or more."""
    regret = np.mean([best - np.mean(run, dtype=np.float64) for run in runs])
    return float(np.clip((base - regret) / base, 0, 1))


def good_episode(runs: Runs, good: float) -> float:
    """The share of runs with an episode above `good`."""
    return float(np.mean([np.max(run) > good for run in runs]))


def bandit(runs: Runs) -> float:
    return regret_score(runs, best=1.0, base=0.5)


def catch(runs: Runs) -> float:
    return regret_score(runs, best=1.0, base=1.6)


def mountain_car(runs: Runs) -> float:
    """Against 100 steps to the goal."""
    return regret_score(runs, best=-100.0, base=1000.0)


def cartpole(runs: Runs) -> float:
    """Half for regret, half for one episode above 500."""
    return 0.5 * (regret_score(runs, best=1000.0, base=1000.0) + good_episode(runs, 500))


def swingup(runs: Runs) -> float:
    """Half for regret, half for one episode above 100."""
    return 0.5 * (regret_score(runs, best=700.0, base=700.0) + good_episode(runs, 100))


def over_sweep(scores: Sequence[float]) -> float:
    return float(np.mean(scores))


def over_noise(scores: Sequence[float]) -> float:
    """Half the mean over noise levels, half the mean less the standard deviation: an agent that
    noise throws off course scores less than an even one."""
    mean, std = np.mean(scores), np.std(scores)
    return float(0.5 * (np.clip(mean, 0, 1) + np.clip(mean - std, 0, 1)))
