"""Draws traps.png from traps.csv: the largest mean value and σ while acting, beside the truth.

python results/untuned/draw_traps.py collect DIR   # writes traps.csv from the runs of the suite
python results/untuned/draw_traps.py
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from idrl.envs import make_env
from idrl.report import style

HERE = Path(__file__).parent
COLUMNS = ("agent", "seed", "steps", "q_max", "sigma_max", "unit", "return_mean")


def collect(root: Path) -> None:
    rows = []
    for folder in sorted((root / "runs").glob("*-grid-traps-*")):
        agent = folder.name.partition("-grid-traps")[0]
        scores = {
            (r["seed"], r["steps"]): r["return_mean"] for r in _read(folder / "evaluations.csv")
        }
        for row in _read(folder / "metrics.csv"):
            key = (row["seed"], row["steps"])
            told = [f"{float(row[name]):.4g}" for name in ("q_max", "sigma_max", "unit")]
            rows.append((agent, *key, *told, scores.get(key, "")))
        rows += [
            (agent, *key, "", "", "", score)
            for key, score in scores.items()
            if key not in {(row[1], row[2]) for row in rows if row[0] == agent}
        ]
    with open(HERE / "traps.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)


def _read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def draw() -> None:
    found: dict[str, dict[str, dict[int, list[float]]]] = defaultdict(lambda: defaultdict(dict))
    for row in _read(HERE / "traps.csv"):
        for name in ("q_max", "sigma_max"):
            if row[name]:
                found[name][row["agent"]].setdefault(int(row["steps"]), []).append(float(row[name]))
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    titles = {"q_max": "largest mean value while acting", "sigma_max": "largest σ while acting"}
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        for agent, curve in found[name].items():
            steps = sorted(curve)
            means = [sum(curve[step]) / len(curve[step]) for step in steps]
            if any(means):
                axis.plot(steps, means, label=agent, color=style.colour(agent), lw=1.2)
        axis.set(title=title, xlabel="steps")
        axis.spines[["top", "right"]].set_visible(False)
    q = make_env("grid/traps").exact(0.99)[0].max(1)
    axes[0].axhspan(q.min(), q.max(), color="0.9", zorder=0, label="V* of all states")
    axes[0].legend(fontsize=7, frameon=False)
    axes[1].axhline(0, color="0.8", lw=1)
    figure.savefig(HERE / "traps.png", dpi=120)


if __name__ == "__main__":
    if sys.argv[1:2] == ["collect"]:
        collect(Path(sys.argv[2]))
    else:
        draw()
