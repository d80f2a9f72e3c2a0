"""Draws docs/images/overview.png, the picture of the README: where the agent is unsure, why it acts
as it does, and what comes of it. It trains the runs that it shows.

    python docs/draw_overview.py FOLDER     # for the runs; those already there are not trained anew
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import idrl

SIZE, SEEDS, FIRST = 10, 8, 100
TARGET = Path(__file__).parent / "images" / "overview.png"
BLUE, ORANGE = "#0072B2", "#D55E00"


def trained(folder: Path, name: str, agent: str, **how) -> idrl.Run:
    place = folder / name
    if place.exists():
        return idrl.open_run(place)
    return idrl.train(agent, f"deep_sea/{SIZE}", seeds=SEEDS, seed=FIRST, out=place, **how)


def maps(run: idrl.Run) -> list[tuple[int, np.ndarray]]:
    table = np.genfromtxt(run.path / "sigma_map.csv", delimiter=",", names=True, dtype=None)
    found = []
    for row in table[table["seed"] == FIRST]:
        sigma = np.full((SIZE, SIZE), np.nan)
        sigma[np.tril_indices(SIZE)] = row["sigma"].split()
        found.append((int(row["steps"]), sigma))
    return found


def draw(ids: idrl.Run, early: idrl.Run, dqn: idrl.Run) -> None:
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    fig = plt.figure(figsize=(10.5, 3.1), layout="constrained")
    left, middle, right = fig.subfigures(1, 3, width_ratios=[1.05, 1, 1.05])
    left.suptitle("It knows where it is unsure", weight="bold")
    known = maps(ids)
    axes = left.subplots(1, 2)
    for axis, (steps, sigma) in zip(axes, (known[0], known[-1]), strict=True):
        image = axis.imshow(sigma, vmin=0, vmax=0.4)
        axis.set(title=f"after {steps:,} steps", xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    bar = left.colorbar(image, ax=axes, location="bottom", shrink=0.7, aspect=30)
    bar.set_label("σ: disagreement of ten heads, cell by cell")

    middle.suptitle("weighs what an action costs and teaches", weight="bold")
    episode = idrl.play(early, weights="latest", seed=FIRST)
    t = int(episode.disagreements[0])
    order = [episode.greedy[t], episode.explored[t]]
    shown = (("mean μ", "mu"), ("regret Δ", "regret"), ("information I", "info_gain"),
             ("ratio Δ²/I", "ratio"))  # fmt: skip
    for axis, (title, name) in zip(middle.subplots(2, 2).flat, shown, strict=True):
        axis.bar(["greedy", "IDS"], getattr(episode, name)[t][order], color=["0.65", BLUE])
        axis.set_title(title, fontsize=9)

    right.suptitle("and finds what ε-greedy misses", weight="bold")
    axis = right.subplots()
    for run, colour, label in ((ids, BLUE, "c51-ids"), (dqn, ORANGE, "dqn (ε-greedy)")):
        steps = np.unique(run.evaluations["steps"])
        returns = [run.evaluations.where(steps=step)["return_mean"] for step in steps]
        axis.plot(steps, np.array(returns), color=colour, alpha=0.25, linewidth=1)
        axis.plot(steps, np.mean(returns, axis=1), color=colour, linewidth=2.5, label=label)
    axis.set(xlabel="steps", ylabel="greedy return", ylim=(-0.05, 1.08))
    axis.legend(loc="center right", frameon=False, title=f"deep_sea/{SIZE}, {SEEDS} seeds")
    fig.savefig(TARGET, dpi=130)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    here = Path(sys.argv[1])
    draw(
        trained(here, "c51-ids", "c51-ids"),
        trained(here, "early", "c51-ids", steps=600),
        trained(here, "dqn", "dqn"),
    )
