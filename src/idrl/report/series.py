"""What the figures draw, as numbers: the same for files and for the page."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from idrl.report.grouping import Curve, Group, Section
from idrl.report.reading import BANDS
from idrl.report.statistics import REPS, balanced, bounds, draw, iqm, mean_bounds, profile, resample
from idrl.report.tables import matrices, normalised

QUANTITIES = {  # of distributions.csv
    "rho2": "noise ρ²",
    "sigma2": "spread of the heads σ²",
    "return_variance": "variance of the return",
    "regret": "regret Δ̂",
    "info_gain": "information gain I",
    "ratio": "ratio Ψ = Δ̂²/I",
}
_EFFICIENCY_REPS = REPS // 20  # at each of many points


class Line(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray


def over_seeds(curve: Curve, band: str) -> Line:
    """The mean over seeds; `band`: their "range" (the paper's), or its 95% "interval"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a step where no seed ended an episode
        mean = np.nanmean(curve.returns, axis=0)
        if band == "range":
            low, high = np.nanmin(curve.returns, axis=0), np.nanmax(curve.returns, axis=0)
        else:
            low, high = mean_bounds(curve.returns)
    return Line(curve.steps, mean, low, high)


def efficiency(section: Section) -> dict[str, Line]:
    """The IQM of the normalised score over training, over the common tasks, with its interval."""
    lines = {}
    for label in section.labels():
        curves = []
        for task in section.common():
            curve = section.tasks[task][label].curve()
            curves.append(Curve(curve.steps, normalised(section, task, curve.returns)))
        if not curves:
            continue
        steps = curves[0].steps
        for curve in curves[1:]:
            steps = np.intersect1d(steps, curve.steps)
        steps = steps[np.unique(np.linspace(0, len(steps) - 1, 100).astype(int))]
        drawn = draw([len(curve.returns) for curve in curves], _EFFICIENCY_REPS)
        rows = []
        for step in steps:
            tasks = [c.returns[:, np.searchsorted(c.steps, step)] for c in curves]
            rows.append(_iqm(tasks, drawn))
        y, low, high = np.array(rows, float).reshape(-1, 3).T
        lines[label] = Line(steps, y, low, high)
    return lines


def _iqm(tasks: list[np.ndarray], drawn: list[np.ndarray]) -> tuple[float, ...]:
    """With its interval, of the seeds that ended an episode; of a task on which none did nothing is
    known."""
    told = [task[np.isfinite(task)] for task in tasks]
    counts = [len(task) for task in told]
    if 0 in counts:
        return (np.nan,) * 3
    if counts != [len(task) for task in tasks]:
        drawn = draw(counts, _EFFICIENCY_REPS)
    weights = balanced(counts)
    low, high = bounds(iqm(resample(told, drawn), weights))
    return float(iqm(np.concatenate(told), weights)), float(low), float(high)


def profiles(section: Section) -> dict[str, Line]:
    """The share of runs above a score."""
    scores = {label: tasks for label, tasks in matrices(section).items() if tasks}
    if not scores:
        return {}
    every = np.concatenate([task for tasks in scores.values() for task in tasks])
    top = max(1.0, float(np.percentile(every, 98)))
    taus = np.linspace(min(0.0, float(every.min())), top, 101)
    return {label: Line(taus, *profile(tasks, taus)) for label, tasks in scores.items()}


def distributions(group: Group) -> dict[str, dict[str, np.ndarray]]:
    """By quantity: steps, and the mean over seeds of each percentile of a batch."""
    rows = [row for record in group.records for row in record.distributions]
    found: dict[str, dict[str, np.ndarray]] = {}
    for quantity in QUANTITIES:
        by_step: dict[int, list[list[float]]] = {}
        for row in rows:
            if row["quantity"] == quantity:
                values = [float(row[name] or "nan") for name in ("mean", *BANDS)]
                by_step.setdefault(int(row["steps"]), []).append(values)
        if by_step:
            steps = sorted(by_step)
            means = np.array([np.mean(by_step[step], axis=0) for step in steps]).T
            found[quantity] = {"steps": np.array(steps)} | dict(
                zip(("mean", *BANDS), means, strict=True)
            )
    return found
