"""Draws asterix.png over published curves, and prints the table of the README.

python results/atari/asterix/draw.py PUBLISHED.csv      # agent, game, frames, eval_return
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
AGENTS = {"dqn": "dqn", "c51": "c51", "qr-dqn": "qrdqn", "iqn": "iqn", "rainbow": "rainbow",
          "bootstrapped-dqn": None}  # ours, and the name there  # fmt: skip
FROM = 5e6  # frames


def read(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main() -> None:
    published = [row for row in read(Path(sys.argv[1])) if row["game"] == "asterix"]
    fig, axes = plt.subplots(2, 3, figsize=(9, 5), layout="constrained", sharex=True, sharey=True)
    print("| agent | evaluations from 5M on | their mean | published there | ratio |")
    print("|---|---|---|---|---|")
    for axis, (agent, theirs) in zip(axes.flat, AGENTS.items(), strict=True):
        mine = read(HERE / agent / "evaluations.csv")
        frames = np.array([4 * int(row["steps"]) for row in mine])
        score = np.array([float(row["return_mean"]) for row in mine])
        spread = np.array(
            [float(row["return_std"]) / float(row["episodes"]) ** 0.5 for row in mine]
        )
        axis.errorbar(frames / 1e6, score, 1.96 * spread, marker="o", ms=3, label="idrl, one seed")
        late, told = frames >= FROM, "–"
        ratio = "–"
        if theirs is not None:
            rows = [r for r in published if r["agent"] == theirs and float(r["frames"]) <= 1e7]
            x, y = (np.array([float(r[k]) for r in rows]) for k in ("frames", "eval_return"))
            axis.plot(x / 1e6, y, color="grey", label="nnabla-rl, 3 seeds")
            there = np.interp(frames[late], x, y)
            told, ratio = f"{there.mean():,.0f}", f"{score[late].mean() / there.mean():.2f}"
        axis.set_title(agent)
        axis.grid(alpha=0.3)
        values = ", ".join(f"{value:,.0f}" for value in score[late])
        print(f"| `{agent}` | {values} | {score[late].mean():,.0f} | {told} | {ratio} |")
    axes[0, 0].legend()
    fig.supxlabel("millions of frames")
    fig.supylabel("evaluation on asterix")
    fig.savefig(HERE / "asterix.png", dpi=110)


if __name__ == "__main__":
    main()
