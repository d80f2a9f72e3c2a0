"""What the rule saw on its fixed batch of states, through training."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from idrl.report.style import caption, colour, figure
from idrl.storage.files import read_toml
from idrl.storage.records import PERCENTILES, numbers, read_distributions
from idrl.system import words

_TITLES = {
    "sigma2": "uncertainty σ²",
    "rho2": "noise ρ², as the rule uses it",
    "return_variance": "variance of the return",
    "regret": "regret Δ̂",
    "info_gain": "information gain I",
    "ratio": "ratio Ψ = Δ̂²/I",
}
_BANDS = (("p0", "p100", 0.12), ("p5", "p95", 0.2), ("p25", "p75", 0.35))


def distribution_bands(run: Path, target: Path) -> None:
    """A panel per quantity: percentiles over states and actions, each averaged over seeds."""
    config = read_toml(run / "config.toml")
    rows = read_distributions(run)
    names = [name for name in _TITLES if any(row["quantity"] == name for row in rows)]
    columns = 3
    fig, axes = figure(-(-len(names) // columns), columns, figsize=(12, 6.5), squeeze=False)
    tint = colour(config["agent"])
    for axis, name in zip(axes.flat, names, strict=False):
        steps, lines = _lines([row for row in rows if row["quantity"] == name])
        for low, high, alpha in _BANDS:
            axis.fill_between(steps, lines[low], lines[high], color=tint, alpha=alpha, lw=0)
        axis.plot(steps, lines["p50"], color=tint)
        axis.plot(steps, lines["mean"], color="black", lw=1, ls="--")
        _scale(axis, lines)
        axis.set_title(_TITLES[name], loc="left", fontsize="medium")
    for axis in axes.flat[len(names) :]:
        axis.set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel("steps of each seed")
    count = config["seeds"]
    seeds = "one seed" if count == 1 else f"mean over {count} seeds"
    name = caption(words.title(config["agent"], config["env"]))
    fig.suptitle(
        f"{name}, a fixed batch of states, {seeds}\n"
        "bands 0–100, 5–95 and 25–75%, line median, dashed mean",
        fontsize="medium",
    )
    fig.savefig(target, dpi=120)


def _lines(rows) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Every column by steps, averaged over seeds."""
    steps = np.array([int(row["steps"]) for row in rows])
    ticks = np.unique(steps)
    lines = {}
    for column in ("mean", *(f"p{p}" for p in PERCENTILES)):
        values = np.array(numbers(rows, column))
        lines[column] = np.array([values[steps == tick].mean() for tick in ticks])
    return ticks, lines


def _scale(axis, lines) -> None:
    """Logarithmic where most of it would otherwise lie on the axis."""
    low, middle, top = np.min(lines["p0"]), np.median(lines["p50"]), np.max(lines["p100"])
    if np.isfinite(top) and 0 < middle < top / 50:
        if low > 0:
            axis.set_yscale("log")
        else:
            axis.set_yscale("symlog", linthresh=middle)
