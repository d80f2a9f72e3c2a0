"""The paper's first figure: where UCB, Thompson sampling and IDS spend twenty samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from idrl.bandits.choosing import named_rule
from idrl.bandits.settings import gp
from idrl.bandits.simulation import Plays, play
from idrl.report.style import figure

SEED = 4  # its best point lies on the flank of a loud hill: what to do about it differs most
CURVE_POINTS = 101  # finer than the 50 candidates of the regret tables, for a smooth curve
PANELS = (("ucb", "UCB"), ("thompson", "Thompson sampling"), ("ids", "IDS"))
_BLUE, _ORANGE, _DARK = "#0072B2", "#D55E00", "#222222"


def bandit_figure(
    target: str | Path, *, seed: int = SEED, samples: int = 20, lam: float = 2.0
) -> dict[str, Plays]:
    """Draw it, and return what each rule played."""
    problem = gp(seed, CURVE_POINTS)
    played = {
        name: play([problem], [seed], named_rule(name, lam=lam), samples) for name, _ in PANELS
    }
    x, loud = problem.points[:, 0], problem.rho2 > np.median(problem.rho2)
    fig, axes = figure(
        2, 4, figsize=(14, 5), sharex=True, sharey="row", height_ratios=(3.2, 1),
    )  # fmt: skip
    spread = np.sqrt(problem.prior.variance)
    _function(axes[0, 0], x, problem.truth, problem.prior.mean, spread, lam)
    axes[0, 0].set_title("(a) prior", loc="left")
    for column, (name, title) in enumerate(PANELS, start=1):
        one = played[name]
        upper, lower = axes[:, column]
        _function(upper, x, problem.truth, one.mean[0], one.sigma[0], lam)
        at = x[one.actions[0]]
        upper.plot(at, one.rewards[0], "o", color=_BLUE, ms=5, mec="white", mew=0.7, zorder=4)
        upper.set_title(f"({'abcd'[column]}) {title}, {samples} samples", loc="left")
        in_noise = int(loud[one.actions[0]].sum())
        _samples(lower, at, problem.rho2.max())
        lower.set_title(
            f"{in_noise} of {samples} where ρ² is above its median", loc="left", fontsize=9,
            color=_ORANGE if in_noise else _DARK,
        )  # fmt: skip
    for axis in axes[1]:
        axis.fill_between(x, problem.rho2, color=_ORANGE, alpha=0.25, lw=0)
        axis.plot(x, problem.rho2, color=_ORANGE, lw=1.5)
        axis.set(xlabel="x", xlim=(-0.02, 1.02), xticks=(0, 0.25, 0.5, 0.75, 1))
        axis.set_xticklabels(("0", "0.25", "0.5", "0.75", "1"))
    for axis in axes[0]:
        axis.fill_between(
            x, 0, 1, where=loud, color=_ORANGE, alpha=0.08, lw=0,
            transform=axis.get_xaxis_transform(), zorder=0,
        )  # fmt: skip
    axes[0, 0].set_ylabel("reward")
    axes[1, 0].set_ylabel("noise ρ²")
    fig.legend(*_legend(lam), loc="outside lower center", ncols=5, fontsize=10, frameon=False)
    fig.savefig(target, dpi=150)
    return played


def _function(axis, x, truth, mean, sigma, lam: float) -> None:
    axis.fill_between(
        x, mean - lam * sigma, mean + lam * sigma, color=_BLUE, alpha=0.18, lw=0, zorder=1
    )
    axis.plot(x, mean, color=_BLUE, lw=1.8, zorder=3)
    axis.plot(x, truth, color=_DARK, lw=1.5, ls="--", zorder=2)
    best = truth.argmax()
    axis.plot(x[best], truth[best], marker="*", color=_DARK, ms=11, mec="white", zorder=5)


def _samples(axis, at, top: float) -> None:
    """A stack of dots per place, so that repeated samples show."""
    places, counts = np.unique(at, return_counts=True)
    step = top / max(10, counts.max())
    for place, count in zip(places, counts, strict=True):
        heights = step * (np.arange(count) + 0.5)
        axis.plot(
            np.full(count, place), heights, "o", color=_BLUE, ms=4, mec="white", mew=0.5, zorder=4
        )


def _legend(lam: float):
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], color=_DARK, ls="--"),
        Line2D([], [], color=_DARK, marker="*", ms=11, mec="white", ls=""),
        (Patch(color=_BLUE, alpha=0.18, lw=0), Line2D([], [], color=_BLUE)),
        Line2D([], [], color=_BLUE, marker="o", ms=5, mec="white", ls=""),
        Patch(color=_ORANGE, alpha=0.25, lw=0),
    ]
    return handles, ["true function", "its best", f"μ ± {lam:g}σ", "samples", "ρ² above its median"]
