"""Every agent with its preset, a short run each: the curves of the pages in docs/agents.

    python results/agents/curves.py train --out FOLDER [--tasks deep_sea/10] [--agents NAME ...]
    python results/agents/curves.py collect --out FOLDER    # the tables, from finished runs
    python results/agents/curves.py draw                    # the figures, from the tables

Runs of a folder are not repeated: what is finished is left, what was cut off goes on. `collect`
writes `curves.csv` (greedy evaluations, mean over seeds) and `summary.csv` (a row an agent and
task) beside this file, `draw` a figure an agent into docs/images/agents.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

import idrl
from idrl.agents import agent_names
from idrl.envs import make_env
from idrl.report.statistics import interval, solved_episode
from idrl.report.style import colour, figure
from idrl.runs.api import open_run
from idrl.storage.folder import free_name
from idrl.storage.records import numbers

HERE = Path(__file__).parent
IMAGES = HERE.parents[1] / "docs" / "images" / "agents"
# A quarter of the preset's steps, evaluated twice as often; deep_sea's preset is short as it is.
SETTINGS = {"cartpole": {"training": {"steps": 50_000}, "evaluation": {"every_steps": 5_000}}}


def runs_in(out: Path) -> dict[tuple[str, str], Path]:
    """The run folders in `out`, by agent and task."""
    found = [path.parent for path in sorted(out.glob("*/config.toml"))]
    opened = [open_run(path) for path in found]
    return {(run.config.agent, run.config.env): run.path for run in opened}


def train(args) -> None:
    out = Path(args.out)
    for task in args.tasks:
        for agent in args.agents:
            path = runs_in(out).get((agent, task))
            if path is None:
                path, changes = free_name(out, f"{agent}-{task}"), SETTINGS.get(task, {})
                idrl.train(agent, task, seeds=args.seeds, seed=100, settings=changes, out=path)
            elif not _finished(open_run(path)):
                idrl.train(resume=path)
            print(agent, task, flush=True)


def _finished(run: idrl.Run) -> bool:
    rows = run.evaluations
    return len(rows) > 0 and rows[-1]["steps"] >= run.config.training.steps


def collect(args) -> None:
    curves, summary = [], []
    runs = runs_in(Path(args.out))
    for task in args.tasks:
        for agent in agent_names():
            if (agent, task) not in runs:
                continue
            run = open_run(runs[agent, task])
            if not _finished(run):
                print(f"{agent} on {task} is not finished: left out")
                continue
            rows = {s: run.evaluations.where(seed=s) for s in run.seeds}
            table = np.array([mine["return_mean"] for mine in rows.values()])
            for steps, values in zip(rows[run.seeds[0]]["steps"], table.T, strict=True):
                row = {"task": task, "agent": agent, "steps": int(steps)} | _mean("return", values)
                seeds = zip(run.seeds, values, strict=True)
                curves.append(row | {f"seed_{seed}": round(value, 4) for seed, value in seeds})
            row = {"task": task, "agent": agent, "seeds": len(rows), "steps": int(steps)}
            row |= _mean("last", table[:, -1]) | _mean("best", table.max(1))
            summary.append(row | _solved(run, task, table))
    _write(HERE / "curves.csv", curves)
    _write(HERE / "summary.csv", summary)


def _solved(run, task: str, table: np.ndarray) -> dict:
    """Seeds that solved the task: deep_sea by bsuite's rule of the acting policy, and at which
    episode; cartpole by an evaluation of 475."""
    if not task.startswith("deep_sea"):
        return {"solved": int((table.max(1) >= 475).sum()), "median_episode": ""}
    at = [solved_episode(run.episodes.where(seed=seed)["bad"].tolist()) for seed in run.seeds]
    known = [episode for episode in at if episode is not None]
    return {"solved": len(known), "median_episode": int(np.median(known)) if known else ""}


def _mean(name: str, values) -> dict:
    return {name: round(float(np.mean(values)), 4), f"{name}_ci95": round(interval(values), 4)}


def draw(args) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with open(HERE / "curves.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for agent in dict.fromkeys(row["agent"] for row in rows):
        tasks = list(dict.fromkeys(row["task"] for row in rows if row["agent"] == agent))
        fig, axes = figure(1, len(tasks), figsize=(3.6 * len(tasks) + 0.4, 2.7), squeeze=False)
        for axis, task in zip(axes[0], tasks, strict=True):
            for other in dict.fromkeys(row["agent"] for row in rows if row["task"] == task):
                _curve(axis, rows, task, other, agent)
            axis.set(title=f"{task}, 4 seeds, greedy", xlabel="steps of each seed")
            # Student's interval of four seeds may reach beyond what a return can be.
            axis.set_ylim((-0.05, 1.05) if task.startswith("deep_sea") else (0, 520))
            axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k")
        axes[0][0].set_ylabel("return of an episode")
        fig.savefig(IMAGES / f"{agent}.png", dpi=100)


def _curve(axis, rows, task: str, other: str, agent: str) -> None:
    """The agent's mean with its interval and its seeds; all others' means grey behind it."""
    mine = [row for row in rows if (row["task"], row["agent"]) == (task, other)]
    steps, mean, half = (np.array(numbers(mine, c)) for c in ("steps", "return", "return_ci95"))
    if other != agent:
        axis.plot(steps, mean, color="#bbbbbb", lw=0.6, zorder=1)
        return
    tint = colour(agent)
    axis.fill_between(steps, mean - half, mean + half, color=tint, alpha=0.2, lw=0, zorder=2)
    for seed in (column for column in mine[0] if column.startswith("seed_")):
        axis.plot(steps, numbers(mine, seed), color=tint, lw=0.8, alpha=0.7, ls=":", zorder=3)
    axis.plot(steps, mean, color=tint, lw=2, zorder=4)


def _write(path: Path, rows: list[dict]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("do", choices=("train", "collect", "draw"))
    parser.add_argument("--out", help="folder of the run folders")
    parser.add_argument("--tasks", nargs="+", default=["deep_sea/10", "cartpole"])
    parser.add_argument("--agents", nargs="+", default=agent_names(continuous=False))
    parser.add_argument("--seeds", type=int, default=4)
    args = parser.parse_args(argv)
    if args.do != "draw" and not args.out:
        parser.error(f"{args.do} needs --out FOLDER, where the runs are")
    for task in args.tasks:
        make_env(task)  # a wrong name fails before anything is trained
    {"train": train, "collect": collect, "draw": draw}[args.do](args)


if __name__ == "__main__":
    main()
