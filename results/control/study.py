"""Agents with continuous actions over fresh seeds: trains what is missing and writes the table.

    python results/control/study.py train --out FOLDER --task pendulum --seeds 5
    python results/control/study.py collect --out FOLDER        # table.csv, from finished runs

Presets as they are. The last column is what `idrl.evaluate` says of the best weights, 100 whole
episodes a seed.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

import idrl
from idrl.agents import agent_names, declared
from idrl.report.statistics import interval
from idrl.runs.records import numbers

HERE = Path(__file__).parent
FIRST_SEED = 100  # those below were tuned on
COLUMNS = ("task", "agent", "seeds", "steps", "last", "last_ci95", "best", "best_ci95", "reached")


def control_agents() -> list[str]:
    return [name for name in agent_names() if declared(name).actor is not None]


def train(args) -> None:
    for agent in args.agents:
        path = Path(args.out) / f"{agent}-{args.task.replace('/', '-')}"
        if not path.exists():
            idrl.train(agent, args.task, seeds=args.seeds, seed=FIRST_SEED, out=path)
        print(agent, args.task, flush=True)


def collect(args) -> None:
    rows = [_row(path.parent) for path in sorted(Path(args.out).glob("*/config.toml"))]
    rows.sort(key=lambda row: (row["task"], -float(row["best"])))
    with open(HERE / "table.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def _row(path: Path) -> dict[str, str]:
    run = idrl.open_run(path)
    last = [r for r in run.evaluations if int(r["steps"]) >= run.config.training.steps]
    lasts = numbers(last, "return_mean")
    bests = np.asarray(idrl.evaluate(run, episodes=100).return_mean)
    told = {"last": lasts, "best": bests}
    row = {
        "task": run.config.env, "agent": run.config.agent, "seeds": str(len(lasts)),
        "steps": str(run.config.training.steps), "reached": _reached(run),
    }  # fmt: skip
    for name, values in told.items():
        mean = float(np.mean(values))
        row |= {name: f"{mean:.4g}", f"{name}_ci95": f"{interval(values):.3g}"}
    print(row, flush=True)
    return row


def _reached(run: idrl.Run) -> str:
    """Seeds that came to the goal while training, where episodes say so."""
    if "bad" not in run.episodes[0]:
        return ""
    return str(len({row["seed"] for row in run.episodes if float(row["bad"]) == 0}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("train", "collect"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--task", default="pendulum")
    parser.add_argument("--agents", nargs="+", default=control_agents())
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    {"train": train, "collect": collect}[args.what](args)


if __name__ == "__main__":
    main()
