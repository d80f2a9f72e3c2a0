"""One decision of an agent as a table and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from idrl.ids import Decided
from idrl.report.style import caption, figure

SYMBOLS = {
    "mu": "μ", "sigma": "σ", "rho2": "ρ²", "regret": "regret Δ̂",
    "info_gain": "information gain I", "ratio": "ratio Δ̂²/I",
}  # fmt: skip
COLUMNS = tuple(SYMBOLS)
MOST = 12  # candidates that a table shows

_CHOSEN, _OTHER = "#D55E00", "#0072B2"


def decision_rows(decision: Decided, names: Sequence[str] = COLUMNS) -> list[list[str]]:
    """One row per action with the numbers `names`; the chosen one is marked, what is NaN (of
    actions that are not allowed) is a dash. Of candidates, those of the smallest ratio, smallest
    first, with the chosen one and the actor's own, which is the first of them."""
    rows = []
    for action in _shown(decision):
        mark = "→" if action == int(decision.action) else ""
        cells = [_cell(getattr(decision, name)[action]) for name in names]
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


def decision_figure(
    decision: Decided, target: Path, title: str = "", names: Sequence[str] = COLUMNS
) -> None:
    """A panel for each of `names`, σ as the bars around μ. Bars by action; candidates as points,
    over the action itself where it is one number and in the order of their ratios else."""
    panels = [name for name in names if name != "sigma"]
    fig, axes = figure(1, len(panels), figsize=(3 + 2 * len(panels), 3.2), squeeze=False)
    chosen = int(decision.action)
    numbers = np.arange(len(decision.mu))
    where, label = numbers.astype(float), "action"
    if decision.candidates is not None and decision.candidates.shape[1] == 1:
        where = decision.candidates[:, 0]
    elif decision.candidates is not None:
        where, label = np.argsort(np.argsort(decision.ratio)), "rank by ratio"
    colours = [_CHOSEN if a == chosen else _OTHER for a in numbers]
    spread = np.nan_to_num(decision.sigma) if "sigma" in names else None
    labels = SYMBOLS | {"mu": "μ" if spread is None else "μ ± σ", "rho2": "noise ρ²"}
    for axis, name in zip(axes[0], panels, strict=True):
        values = np.where(np.isfinite(getattr(decision, name)), getattr(decision, name), 0)
        error = spread if name == "mu" else None
        axis.set(title=labels[name], xlabel=label)
        if decision.candidates is None:
            axis.bar(where, values, yerr=error, color=colours, capsize=4)
            axis.set(xticks=numbers)
            continue
        if error is not None:
            axis.errorbar(where, values, error, fmt="none", ecolor="#BBBBBB", zorder=1)
        axis.scatter(where, values, s=12, color=_OTHER, zorder=2)
        axis.scatter(where[chosen], values[chosen], s=40, color=_CHOSEN, zorder=3)
    title = caption(title)
    fig.suptitle(title + "  (orange: chosen)" if title else "orange: chosen")
    fig.savefig(target, dpi=120)
