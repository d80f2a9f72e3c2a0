"""Agents with continuous actions over fresh seeds: trains what is missing and writes the table.

    python results/control/study.py train --out FOLDER --task pendulum --seeds 5
    python results/control/study.py collect --out FOLDER        # table.csv, from finished runs

Presets as they are. `last` are the last evaluations, `best` what `idrl.evaluate` says of the best
weights, 100 whole episodes a seed; both follow the actor. `greedy` are the last weights, 100
episodes by the candidate of the largest mean, for agents that explore among candidates.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

import idrl
from idrl.agents import agent_names, declared
from idrl.agents.choosing import Greedy
from idrl.agents.noise import Undirected
from idrl.devices import prepare
from idrl.envs import make_env
from idrl.report.statistics import interval
from idrl.resuming import restore_state
from idrl.runs.folder import RunFolder
from idrl.runs.records import numbers
from idrl.session import make_program

HERE = Path(__file__).parent
FIRST_SEED = 100  # those below were tuned on
COLUMNS = (
    "task", "agent", "seeds", "steps", "last", "last_ci95", "best", "best_ci95", "greedy",
    "greedy_ci95", "mastered",
)  # fmt: skip


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
    # Of what gambles pay nobody should be proud.
    lasts = numbers(last, "raw_return" if "raw_return" in last[0] else "return_mean")
    told = {"last": lasts, "best": _raw(idrl.evaluate(run, episodes=100))}
    if not isinstance(run.config.explore, Undirected):
        told["greedy"] = _raw(_greedy(run))
    row = {
        "task": run.config.env, "agent": run.config.agent, "seeds": str(len(lasts)),
        "steps": str(run.config.training.steps), "mastered": _mastered(run),
    }  # fmt: skip
    for name, values in told.items():
        mean = float(np.mean(values))
        row |= {name: f"{mean:.4g}", f"{name}_ci95": f"{interval(values):.3g}"}
    print(row, flush=True)
    return row


def _raw(score) -> np.ndarray:
    return np.asarray(score.info.get("raw_return", score.return_mean))


def _greedy(run: idrl.Run):
    """The last weights of every seed, by the mean of their critics."""
    prepare()
    program = make_program(replace(run.config, evaluate=Greedy()), make_env(run.config.env))
    state, _, _ = restore_state(program, RunFolder.open(run.path))
    state = state._replace(best=state.best._replace(params=state.agent.params))
    return jax.device_get(program.score_best(state, 100, 2_000))


def _mastered(run: idrl.Run) -> str:
    """Seeds of which at least 40 of the last 50 episodes of training came to the goal, where
    episodes say so."""
    if "bad" not in run.episodes[0]:
        return ""
    ends = {seed: [r for r in run.episodes if r["seed"] == str(seed)] for seed in run.seeds}
    return str(sum(sum(numbers(rows[-50:], "bad")) <= 10 for rows in ends.values()))


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
