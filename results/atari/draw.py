"""Draws `speed.csv` of `benchmarks.atari`: python results/atari/draw.py"""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
PARTS = {
    "whole": ("training", "#0072b2", "-"),
    "updates": ("updates alone allow", "#d55e00", ":"),
    "emulators": ("emulators alone", "#009e73", ":"),
}


def frames(row: dict[str, str]) -> float:
    """A second, in thousands; an update is made per 16 frames."""
    value = float(row["value"])
    return (value if row["unit"] == "frames/s" else 16 / value * 1e3) / 1e3


def main() -> None:
    with open(HERE / "speed.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    for what, (label, colour, line) in PARTS.items():
        mine = [r for r in rows if r["what"] == what]
        grown = [r for r in mine if (r["agent"], r["precision"]) == ("c51-ids", "full")]
        left.plot([int(r["envs"]) for r in grown], [frames(r) for r in grown], line, color=colour,
                  marker="o", ms=4, label=label)  # fmt: skip
        agents = [r for r in mine if r["envs"] == "64"]
        names = [f"{r['agent']}\n{r['precision'].replace(', ', chr(10))}" for r in agents]
        place = range(len(agents))
        if what == "whole":
            right.bar(place, [frames(r) for r in agents], 0.6, color=colour)
            right.set_xticks(place, names, fontsize="x-small")
        else:
            right.plot(place, [frames(r) for r in agents], "_", color=colour, ms=22, mew=2)
    left.set_xscale("log", base=2)
    left.set_xticks([1, 8, 32, 64, 128], ["1", "8", "32", "64", "128"])
    left.set_xlabel("environments, c51-ids in float32")
    left.set_ylabel("thousand frames a second")
    right.set_xlabel("64 environments")
    left.legend(frameon=False, fontsize="small")
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", alpha=0.25)
    fig.savefig(HERE / "speed.png", dpi=120)


if __name__ == "__main__":
    main()
