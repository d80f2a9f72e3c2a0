"""Draws report.png from scores.csv: normalised evaluations of all agents over the report suite.

python results/untuned/draw_report.py
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from benchmarks.untuned import AGENTS, REPORT, read_scores

from idrl.report import style

HERE = Path(__file__).parent


def main() -> None:
    curves: dict[str, dict[str, dict[int, list[float]]]] = defaultdict(lambda: defaultdict(dict))
    tasks = {task.name: task for task in REPORT}
    for row in read_scores(HERE / "scores.csv"):
        task = tasks[row["task"]]
        seen = float(row["return_mean"] or "nan")
        score = (seen - task.low) / (task.best - task.low)
        if task.endless:  # where no episode ended, or at a cost beyond standing still
            score = max(0.0, score) if seen == seen else 0.0
        steps = curves[task.name][row["agent"]]
        steps.setdefault(int(row["step"]), []).append(score)
    shown = [task for task in REPORT if task.name in curves]
    figure, axes = plt.subplots(3, 3, figsize=(9, 7), layout="constrained")
    for axis, task in zip(axes.flat, shown, strict=True):
        for agent in AGENTS:
            curve = sorted(curves[task.name][agent].items())
            means = [sum(scores) / len(scores) for _, scores in curve]
            dashes = "--" if agent == "qr-dqn" else "-"
            axis.plot([step for step, _ in curve], means, dashes, color=style.colour(agent), lw=1.2,
                      label=agent)  # fmt: skip
        axis.axhline(1, color="0.8", lw=0.8, zorder=0)
        axis.set_title(task.name + (" (sparse)" if task.sparse else ""), fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("steps", fontsize=9)
    figure.supylabel("normalised score: 0 random play or standing still, 1 a good one", fontsize=9)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=6, frameon=False, fontsize=9)
    figure.savefig(HERE / "report.png", dpi=120)


if __name__ == "__main__":
    main()
