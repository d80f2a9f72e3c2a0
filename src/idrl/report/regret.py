"""Regret over training, of tasks whose best return is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from idrl.report.curves import over_seeds, with_interval
from idrl.report.statistics import mean_bounds
from idrl.report.style import caption, colour, figure
from idrl.storage.files import read_toml
from idrl.storage.records import numbers, read_episodes, read_evaluations
from idrl.system import words

_POINTS = 100


def has_regret(run: Path) -> bool:
    rows = read_episodes(run)
    return bool(rows) and "regret" in rows[0]


def regret_curves(runs: Sequence[Path], target: Path, title: str = "") -> None:
    """Left: the acting policy's regret, summed over its episodes. Right: that of the evaluated
    policy, per episode. Means over seeds, bands are 95% intervals."""
    fig, (acting, greedy) = figure(1, 2, figsize=(11, 4))
    env = ""
    for path in runs:
        config = read_toml(path / "config.toml")
        agent, seeds = words.name(config["agent"]), config["seeds"]
        env = caption(words.name(config["env"]))
        label = f"{caption(agent)} ({seeds} seed{'s' * (seeds > 1)})"
        sums = cumulative(read_episodes(path))
        with_interval(acting, sums, colour(agent), label)
        rows = read_evaluations(path)
        with_interval(greedy, over_seeds(rows, "regret"), colour(agent), label)
    for axis, name in ((acting, "acting policy, sum"), (greedy, "evaluated policy, an episode")):
        axis.set(xlabel="steps of each seed", ylabel=f"regret ({name})")
        axis.legend(frameon=False, fontsize="small")
    fig.suptitle(title or env)
    fig.savefig(target, dpi=120)


def cumulative(rows) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Steps, and of the regret summed up to there the mean over seeds and its 95% interval."""
    seed = np.array([int(row["seed"]) for row in rows])
    steps = np.array([int(row["steps"]) for row in rows])
    regret = np.array(numbers(rows, "regret"))
    grid = np.unique(np.linspace(0, steps.max(), _POINTS + 1).round().astype(int))
    curves = []
    for one in np.unique(seed):
        mine = seed == one
        sums = np.append(0.0, np.cumsum(regret[mine]))
        curves.append(sums[np.searchsorted(steps[mine], grid, side="right")])
    table = np.array(curves)
    return grid, table.mean(0), *mean_bounds(table)
