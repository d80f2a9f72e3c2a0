"""Figures of what was measured: python -m benchmarks.peers.plots"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter

from benchmarks.peers.tables import NAMES, OUT, read_csv

COLOURS = {
    "idrl": "#0b6e99", "rejax": "#d1873a", "sb3": "#7a7a7a", "sb3-contrib": "#a9a9a9",
    "sbx": "#5b8c5a", "tianshou": "#a0526d",
}  # fmt: skip


def speed() -> None:
    """Environment steps per second, a panel for each task."""
    rows = read_csv("peers.csv")
    tasks = [task for task in NAMES if any(row["task"] == task for row in rows)]
    figure, panels = _panels(len(tasks), (4.4, 3.7))
    for panel, task in zip(panels, tasks, strict=True):
        here = [row for row in rows if row["task"] == task][::-1]
        values = [float(row["steps_per_s"]) for row in here]
        labels = [f"{row['library']}  {row['algo']} ×{row['seeds']}" for row in here]
        labels = [label.removesuffix(" ×1") for label in labels]
        panel.barh(labels, values, color=[COLOURS[row["library"]] for row in here])
        panel.set_xscale("log")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_xlim(min(values) / 2, max(values) * 4)
        for place, value in enumerate(values):
            panel.annotate(f" {value:,.0f}", (value, place), va="center", fontsize=7)
        panel.set_title(NAMES[task], fontsize=10)
        panel.set_xlabel("environment steps per second (log)", fontsize=8)
        _plain(panel)
    _save(figure, "peers.png")


def learning() -> None:
    """Mean over seeds with a bootstrapped 95% interval: ours and the other, set alike."""
    rows = {task: read_csv(f"learning_{task}.csv") for task in ("cartpole", "breakout")}
    pairs = [
        (task, other)
        for task in rows
        for other in ("sb3", "rejax")
        if any(row["library"] == other for row in rows[task])
    ]
    figure, panels = _panels(len(pairs), (4.2, 2.9))
    for panel, (task, other) in zip(panels, pairs, strict=True):
        for library in ("idrl", other):
            steps, values = curve(rows[task], library, other)
            low, high = interval(values)
            label = f"{library} ({len(values)} seeds)"
            panel.plot(steps, values.mean(0), color=COLOURS[library], label=label)
            panel.fill_between(steps, low, high, color=COLOURS[library], alpha=0.2, lw=0)
        panel.set_title(f"{NAMES[task]}, set like {other}", fontsize=10)
        panel.set_xlabel("environment steps", fontsize=8)
        panel.set_ylabel("return of greedy episodes", fontsize=8)
        panel.set_ylim(0)
        panel.legend(frameon=False, fontsize=8)
        _plain(panel)
    _save(figure, "learning.png")


def curve(rows, library: str, like: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps `[T]` and values `[seeds, T]` of the seeds that are complete."""
    mine = [row for row in rows if row["library"] == library and row["like"] == like]
    seeds: dict[str, dict[int, float]] = {}
    for row in mine:
        seeds.setdefault(row["seed"], {})[int(row["steps"])] = float(row["value"])
    longest = max((len(points) for points in seeds.values()), default=0)
    whole = [points for points in seeds.values() if len(points) == longest]
    steps = sorted(whole[0]) if whole else []
    return np.array(steps), np.array([[points[step] for step in steps] for points in whole])


def interval(values: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(0)
    drawn = values[rng.integers(0, len(values), (2_000, len(values)))].mean(1)
    return np.percentile(drawn, [2.5, 97.5], axis=0)


def scaling() -> None:
    rows = read_csv("scaling.csv")
    kinds = list(dict.fromkeys(row["what"] for row in rows))
    figure, panels = _panels(len(kinds), (4.2, 2.4))
    for panel, what in zip(panels, kinds, strict=True):
        here = [row for row in rows if row["what"] == what]
        at = [float(row["value"]) for row in here]
        panel.plot(at, [float(row["wall_us"]) for row in here], marker="o", ms=3)
        panel.set_xscale("log")
        panel.set_ylim(0)
        panel.set_xlabel(what, fontsize=8)
        panel.set_ylabel(f"µs per {here[0]['unit']}", fontsize=8)
        _plain(panel)
    _save(figure, "scaling.png")


def _panels(number: int, size: tuple[float, float]):
    """Two panels to a row, so that their words stay readable at the width of a page."""
    rows = (number + 1) // 2
    figure, panels = plt.subplots(rows, 2, figsize=(2 * size[0], rows * size[1]), squeeze=False)
    for panel in panels.flat[number:]:
        panel.remove()
    return figure, panels.flat[:number]


def _plain(panel) -> None:
    panel.tick_params(labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)


def _save(figure, name: str) -> None:
    figure.tight_layout()
    figure.savefig(OUT / name, dpi=130)
    plt.close(figure)


def main() -> None:
    for draw, need in ((speed, "peers"), (learning, "learning_cartpole"), (scaling, "scaling")):
        if read_csv(f"{need}.csv"):
            draw()


if __name__ == "__main__":
    main()
