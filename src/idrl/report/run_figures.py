"""The pictures that a finished run leaves in its folder."""

from __future__ import annotations

from pathlib import Path

from idrl.report.curves import learning_curve
from idrl.report.distributions import distribution_bands
from idrl.report.regret import has_regret, regret_curves
from idrl.storage.records import read_distributions


def draw_figures(run: Path) -> None:
    learning_curve([run], run / "curve.png")
    if has_regret(run):
        regret_curves([run], run / "regret.png")
    if read_distributions(run):
        distribution_bands(run, run / "distributions.png")
