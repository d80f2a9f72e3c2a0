"""What agents scored while they trained: a table and a figure. These are thousands of episodes of
all weights on the way, where an evaluation is a few dozen of the weights of one moment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.claim.diagnosing import line
from idrl.report.grouping import Section
from idrl.report.sheets import Column, Sheet
from idrl.report.statistics import INTERVAL, mean_over_seeds
from idrl.report.style import caption, figure
from idrl.report.tables import ONE

ABOUT = (
    "Returns of training episodes, acting as each agent explores (lines: mean over seeds, bands: "
    "lowest to highest seed)"
)
_BESIDE = 2  # games in a row of the figure

Rows = Sequence[dict[str, str]]
Curves = dict[str, dict[str, dict[str, list[tuple[int, float]]]]]  # by game, agent and seed


def curves_of(rows: Rows) -> Curves:
    """The points of `training.csv`."""
    found: Curves = {}
    for row in rows:
        agents = found.setdefault(row["env"], {})
        points = agents.setdefault(row["agent"], {}).setdefault(row["seed"], [])
        points.append((int(row["steps"]), float(row["episode_return"])))
    return found


def training_sheet(rows: Rows, section: Section) -> Sheet | None:
    """The mean over training of each agent in each game, where `section` has both; None where
    nothing was collected."""
    found = curves_of(rows)
    games = [task for task in section.tasks if task in found]
    if not games:
        return None
    made: list[list] = []
    single = False
    for label in section.labels():
        cells: list[str | None] = []
        for game in games:
            seeds = found[game].get(label, {}).values()
            means = np.array([np.mean([value for _, value in points]) for points in seeds])
            cells.append(str(mean_over_seeds(means)) if len(means) else None)
            single |= len(means) == 1
        made.append([label, *cells])
    names = [Column(game.partition("/")[2] or game, 0) for game in games]
    notes = [
        "Training episodes: their mean return over all of training, where all stretches of steps "
        "count alike, so it is higher the sooner an agent learns; then the mean over seeds; in "
        f"brackets its {INTERVAL}."
    ]
    heading = f"Training episodes, {section.title}"
    return Sheet(
        "training", heading, [Column("agent"), *names], made, notes + [ONE] * single
    )  # fmt: skip


def write_training(rows: Rows, folder: Path) -> list[tuple[str, str]]:
    """The figure's name, with what it shows; none where nothing was collected."""
    found = curves_of(rows)
    if not found:
        return []
    across = min(_BESIDE, len(found))
    down = math.ceil(len(found) / across)
    fig, axes = figure(down, across, figsize=(1 + 4 * across, 1 + 2.6 * down), squeeze=False)
    handles = {}
    for axis, (game, agents) in zip(axes.flat, sorted(found.items()), strict=False):
        for agent, seeds in sorted(agents.items()):
            handles[agent] = line(axis, _over_seeds(seeds.values()), agent)
        axis.set_title(caption(game), fontsize="medium")
        axis.set_xlabel("steps of each seed", fontsize="small")
    for axis in axes.flat[len(found) :]:
        axis.remove()
    for axis in axes[:, 0]:
        axis.set_ylabel("return of an episode", fontsize="small")
    fig.legend(
        handles.values(), map(caption, handles), loc="outside upper center", ncols=3,
        frameon=False, fontsize="small",
    )  # fmt: skip
    fig.savefig(folder / "training.png", dpi=120)
    return [("training", ABOUT)]


def _over_seeds(seeds) -> list[dict[str, float]]:
    by_step: dict[int, list[float]] = {}
    for step, value in (point for points in seeds for point in points):
        by_step.setdefault(step, []).append(value)
    return [
        {"steps": step, "mean": float(np.mean(x)), "lowest": min(x), "highest": max(x)}
        for step, x in sorted(by_step.items())
    ]
