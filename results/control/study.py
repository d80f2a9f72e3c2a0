"""Agents with continuous actions over fresh seeds: trains what is missing and writes the table.

    python results/control/study.py train --out FOLDER --task pendulum --seeds 5
    python results/control/study.py collect --out FOLDER        # table.csv, from finished runs

Presets as they are. `last` are the last evaluations, `best` what `idrl.evaluate` says of the best
weights, 100 whole episodes a seed; both by the agent's own way of being evaluated, which is to
follow the actor, or to take the candidate of the largest mean. Of agents that explore among
candidates the last weights play 100 episodes by the other way as well: `greedy`, or `actor`.
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
from idrl.agents.actor_rules import Follow
from idrl.agents.choosing import Greedy
from idrl.envs import make_env
from idrl.report.statistics import interval
from idrl.runs.resuming import restore_state
from idrl.runs.session import make_program
from idrl.storage.folder import RunFolder
from idrl.system.devices import prepare

HERE = Path(__file__).parent
FIRST_SEED = 100  # those below were tuned on
COLUMNS = (
    "task", "agent", "seeds", "steps", "last", "last_ci95", "best", "best_ci95", "greedy",
    "greedy_ci95", "actor", "actor_ci95", "mastered", "reached",
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
    """Rows of what is not in the folder stay."""
    with open(HERE / "table.csv", newline="", encoding="utf-8") as file:
        known = {(row["task"], row["agent"]): row for row in csv.DictReader(file)}
    for path in sorted(Path(args.out).glob("*/config.toml")):
        row = _row(path.parent)
        known[row["task"], row["agent"]] = row
    rows = sorted(known.values(), key=lambda row: (row["task"], -float(row["best"])))
    with open(HERE / "table.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def _row(path: Path) -> dict[str, str]:
    run = idrl.open_run(path)
    last = run.evaluations[run.evaluations["steps"] >= run.config.training.steps]
    # Of what gambles pay nobody should be proud.
    lasts = last["raw_return" if "raw_return" in last else "return_mean"].tolist()
    told = {"last": lasts, "best": _raw(idrl.evaluate(run, episodes=100))}
    if not run.config.explore.follows_actor:
        greedy = isinstance(run.config.evaluate, Greedy)
        told["actor" if greedy else "greedy"] = _raw(_last(run, Follow() if greedy else Greedy()))
    row = {
        "task": run.config.env, "agent": run.config.agent, "seeds": str(len(lasts)),
        "steps": str(run.config.training.steps), **_goals(run),
    }  # fmt: skip
    for name, values in told.items():
        mean = float(np.mean(values))
        row |= {name: f"{mean:.4g}", f"{name}_ci95": f"{interval(values):.3g}"}
    print(row, flush=True)
    return row


def _raw(score) -> np.ndarray:
    return np.asarray(score.info.get("raw_return", score.return_mean))


def _last(run: idrl.Run, rule):
    """The last weights of every seed, by `rule`."""
    prepare()
    program = make_program(replace(run.config, evaluate=rule), make_env(run.config.env))
    state, _, _ = restore_state(program, RunFolder.open(run.path))
    state = state._replace(best=state.best._replace(params=state.agent.params))
    return jax.device_get(program.score_best(state, 100, 2_000))


def _goals(run: idrl.Run) -> dict[str, str]:
    """Where episodes say so: seeds of which at least 40 of the last 50 episodes of training came to
    the goal, and seeds of which any did."""
    if "bad" not in run.episodes:
        return {}
    ends = [run.episodes.where(seed=seed)["bad"].tolist() for seed in run.seeds]
    mastered = sum(sum(bad[-50:]) <= 10 for bad in ends)
    return {"mastered": str(mastered), "reached": str(sum(min(bad) == 0 for bad in ends))}


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
