"""One decision of an agent as a table and as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from idrl.ids import Decided
from idrl.report.style import caption, figure

COLUMNS = ("mu", "sigma", "rho2", "regret", "info_gain", "ratio")
SYMBOLS = ("μ", "σ", "ρ²", "regret Δ̂", "information gain I", "ratio Δ̂²/I")
MOST = 12  # candidates that a table shows

_CHOSEN, _OTHER = "#D55E00", "#0072B2"


def decision_rows(decision: Decided) -> list[list[str]]:
    """One row per action; the chosen one is marked, what is NaN (of actions that are not allowed)
    is a dash. Of candidates, those of the smallest ratio, smallest first, with the chosen one and
    the actor's own, which is the first of them."""
    rows = []
    for action in _shown(decision):
        mark = "→" if action == int(decision.action) else ""
        cells = [_cell(getattr(decision, name)[action]) for name in COLUMNS]
        rows.append([mark, _name(decision, action), *cells])
    return rows


def _cell(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4g}"


def _shown(decision: Decided) -> list[int]:
    if decision.candidates is None:
        return list(range(len(decision.mu)))
    order = np.argsort(decision.ratio, kind="stable").tolist()
    fixed = [0, int(decision.action)]
    # Many a candidate beyond the box was cut to the same corner: each shows once.
    kept = {_name(decision, action): action for action in reversed([*fixed, *order])}
    few = set([action for action in order if action in kept.values()][: MOST - 2] + fixed)
    return [action for action in order if action in few]


def _name(decision: Decided, action: int) -> str:
    if decision.candidates is None:
        return str(action)
    numbers = " ".join(f"{x:+.3f}" for x in decision.candidates[action])
    return f"{numbers} (actor)" if action == 0 else numbers


def decision_figure(decision: Decided, target: Path, title: str = "") -> None:
    """Bars by action; candidates as points, over the action itself where it is one number and in
    the order of their ratios else."""
    fig, axes = figure(1, 5, figsize=(13, 3.2))
    chosen = int(decision.action)
    numbers = np.arange(len(decision.mu))
    where, label = numbers.astype(float), "action"
    if decision.candidates is not None and decision.candidates.shape[1] == 1:
        where = decision.candidates[:, 0]
    elif decision.candidates is not None:
        where, label = np.argsort(np.argsort(decision.ratio)), "rank by ratio"
    colours = [_CHOSEN if a == chosen else _OTHER for a in numbers]
    names = ("mu", "rho2", "regret", "info_gain", "ratio")
    labels = ("μ ± σ", "noise ρ²", "regret Δ̂", "information gain I", "ratio Δ̂²/I")
    for axis, name, text in zip(axes, names, labels, strict=True):
        values = np.where(np.isfinite(getattr(decision, name)), getattr(decision, name), 0)
        error = np.nan_to_num(decision.sigma) if name == "mu" else None
        axis.set(title=text, xlabel=label)
        if decision.candidates is None:
            axis.bar(where, values, yerr=error, color=colours, capsize=4)
            axis.set(xticks=numbers)
            continue
        axis.errorbar(where, values, error, fmt="none", ecolor="#BBBBBB", zorder=1)
        axis.scatter(where, values, s=12, color=_OTHER, zorder=2)
        axis.scatter(where[chosen], values[chosen], s=40, color=_CHOSEN, zorder=3)
    title = caption(title)
    fig.suptitle(title + "  (orange: chosen)" if title else "orange: chosen")
    fig.savefig(target, dpi=120)
