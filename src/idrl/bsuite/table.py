"""Scores beside the published ones, as rows and as files."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from idrl.bsuite.running import Result
from idrl.bsuite.scoring import solved_at
from idrl.bsuite.sweeps import PUBLISHED

AGENTS = ("random", "dqn", "boot_dqn")  # whose scores were published
NOTE = "bsuite random, dqn and boot_dqn: read off the published bar plot, ±0.01."


def note(result: Result) -> str:
    """What was trimmed, and what is missing."""
    plan, done = result.plan, len(result.points)
    parts = [plan.trimmed()] if plan.trimmed() else []
    if done < len(plan.values):
        parts.append(f"{done} of {len(plan.values)} points finished")
    return "; ".join(parts)


def rows(results: Sequence[Result]) -> list[list[str]]:
    """experiment, score, the published scores, what was trimmed."""
    lines = []
    for result in results:
        published = PUBLISHED[result.plan.experiment.name]
        scores = [result.score, *(published[name] for name in AGENTS)]
        cells = ["–" if score is None else f"{score:.2f}" for score in scores]
        lines.append([result.plan.experiment.name, *cells, note(result) or "as bsuite"])
    return lines


def write_scores(agent: str, results: Sequence[Result], target: Path) -> None:
    head = ["agent", "experiment", "score", "points", "points_planned", "seeds", "episodes"]
    with open(target, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*head, *(f"published_{name}" for name in AGENTS), "trimmed"])
        for result in results:
            plan, name = result.plan, result.plan.experiment.name
            score = "" if result.score is None else repr(result.score)
            writer.writerow(
                [agent, name, score, len(result.points), len(plan.values), plan.seeds,
                 plan.episodes, *(PUBLISHED[name][a] for a in AGENTS), note(result)]
            )  # fmt: skip


def write_points(agent: str, results: Sequence[Result], target: Path) -> None:
    """One row for every run: when it was solved (DeepSea), or what an episode brought."""
    head = ["agent", "experiment", "setting", "value", "seed", "episodes", "solved_at"]
    with open(target, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*head, "mean_return", "best_return"])
        for result in results:
            experiment = result.plan.experiment
            for value, runs in result.points.items():
                for seed, run in enumerate(runs):
                    cells: list = ["", float(np.mean(run)), float(np.max(run))]
                    if experiment.setting == "size":
                        cells = [solved_at(run, windy=experiment.windy) or "", "", ""]
                    writer.writerow(
                        [agent, experiment.name, experiment.setting, value, seed, len(run), *cells]
                    )
