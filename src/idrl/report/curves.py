"""Learning curves from run folders."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from idrl.report.statistics import mean_bounds
from idrl.report.style import caption, colour, figure
from idrl.storage.files import read_toml
from idrl.storage.records import numbers, read_episodes, read_evaluations
from idrl.system import words


def learning_curve(runs: Sequence[Path], target: Path, title: str = "") -> None:
    """Evaluation (solid) and acting (dashed) returns over steps; bands are 95% intervals."""
    fig, axis = figure()
    env = ""
    for path in runs:
        config = read_toml(path / "config.toml")
        agent, env = caption(words.name(config["agent"])), caption(words.name(config["env"]))
        tint, seeds = colour(config["agent"]), config["seeds"]
        word = "seed" if seeds == 1 else "seeds"
        curve = over_seeds(read_evaluations(path), "return_mean")
        with_interval(axis, curve, tint, f"{agent}, evaluated ({seeds} {word})")
        steps, mean = acting(read_episodes(path))
        axis.plot(steps, mean, color=tint, ls="--", lw=1, alpha=0.8, label=f"{agent}, acting")
    axis.set(xlabel="steps of each seed", ylabel="return of an episode", title=title or env)
    axis.legend(frameon=False, fontsize="small")
    fig.savefig(target, dpi=120)


def with_interval(axis, curve, tint: str, label: str) -> None:
    """`curve`: steps, mean, the ends of its interval."""
    steps, mean, low, high = curve
    axis.plot(steps, mean, color=tint, label=label)
    axis.fill_between(steps, low, high, color=tint, alpha=0.2, lw=0)


def over_seeds(rows, column: str):
    """Steps, the mean over seeds and its 95% interval."""
    seeds, steps = (np.array([int(row[name]) for row in rows]) for name in ("seed", "steps"))
    (names, seed), (ticks, tick) = (np.unique(x, return_inverse=True) for x in (seeds, steps))
    table = np.full((len(names), len(ticks)), np.nan)
    table[seed, tick] = numbers(rows, column)
    table[~np.isfinite(table)] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a step where no seed ended an episode
        return ticks, np.nanmean(table, axis=0), *mean_bounds(table)


def acting(rows, bins: int = 50):
    """Mean return of the acting policy's episodes, in stretches of steps."""
    if not rows:
        return np.array([]), np.array([])
    steps = np.array([int(row["steps"]) for row in rows])
    values = np.array(numbers(rows, "return"))
    edges = np.linspace(0, steps.max(), bins + 1)
    where = np.clip(np.digitize(steps, edges, right=True) - 1, 0, bins - 1)
    full = np.unique(where)
    return edges[full + 1], np.array([values[where == b].mean() for b in full])
