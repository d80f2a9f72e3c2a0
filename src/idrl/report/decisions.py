"""One decision of an agent as a table and as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from idrl.ids import Decision
from idrl.report.style import figure

COLUMNS = ("mu", "sigma", "rho2", "regret", "info_gain", "ratio")
SYMBOLS = ("μ", "σ", "ρ²", "regret Δ̂", "information gain I", "ratio Δ̂²/I")


def decision_rows(decision: Decision) -> list[list[str]]:
    """One row per action; the chosen one is marked."""
    rows = []
    for action in range(len(decision.mu)):
        mark = "→" if action == int(decision.action) else ""
        cells = [f"{getattr(decision, name)[action]:.4g}" for name in COLUMNS]
        rows.append([mark, str(action), *cells])
    return rows


def decision_figure(decision: Decision, target: Path, title: str = "") -> None:
    fig, axes = figure(1, 5, figsize=(13, 3.2))
    actions = np.arange(len(decision.mu))
    chosen = ["#D55E00" if a == int(decision.action) else "#0072B2" for a in actions]
    names = ("mu", "rho2", "regret", "info_gain", "ratio")
    labels = ("μ ± σ", "noise ρ²", "regret Δ̂", "information gain I", "ratio Δ̂²/I")
    for axis, name, label in zip(axes, names, labels, strict=True):
        values = np.where(np.isfinite(getattr(decision, name)), getattr(decision, name), 0)
        error = np.nan_to_num(decision.sigma) if name == "mu" else None
        axis.bar(actions, values, yerr=error, color=chosen, capsize=4)
        axis.set(title=label, xlabel="action", xticks=actions)
    fig.suptitle(title + "  (orange: chosen)" if title else "orange: chosen")
    fig.savefig(target, dpi=120)
