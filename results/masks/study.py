"""Every agent with discrete actions on maze/4, with its action mask shown and hidden.

    python results/masks/study.py                          # seeds 100 to 103, what ships
    python results/masks/study.py --blind --agents dqn c51 # targets over all actions, mask shown

Both write to `seeds.csv` beside this file, a row an agent, mask and seed, and print the table of
what is there; a run that is there is not repeated. `final` is the mean return of the last
evaluation, `optimum` the largest that can be had, `since` the steps from which on every evaluation
is at the optimum (empty: not at the end).
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np

import idrl
from idrl.agents import agent_names
from idrl.envs import make_env
from idrl.networks.heads import Transition

MASKS = {"shown": "maze/4", "hidden": "maze/4?mask=0", "blind": "maze/4"}
COLUMNS = ("agent", "mask", "seed", "steps", "final", "optimum", "since")


def measured(agent: str, mask: str, seeds: range) -> list[dict]:
    optimum = make_env(MASKS[mask]).optimal_return()
    with tempfile.TemporaryDirectory() as folder:
        run = idrl.train(
            agent, MASKS[mask], seeds=len(seeds), seed=seeds[0], out=Path(folder) / "run"
        )
        evaluations = run.evaluations
    rows = []
    for seed in seeds:
        mine = evaluations.where(seed=seed)
        returns = mine["return_mean"]
        short = np.flatnonzero(~(returns > optimum - 1e-4))
        after = 0 if not short.size else short[-1] + 1
        since = mine[after]["steps"] if after < len(mine) else ""
        steps, final = mine[-1]["steps"], round(float(returns[-1]), 4)
        told = (agent, mask, seed, steps, final, optimum, since)
        rows.append(dict(zip(COLUMNS, told, strict=True)))
    return rows


def table(rows: list[dict]) -> str:
    """Seeds at the optimum at the end, and the mean over seeds of the final return."""
    columns = [mask for mask in MASKS if any(row["mask"] == mask for row in rows)]
    lines = ["| agent | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for agent in dict.fromkeys(row["agent"] for row in rows):
        cells = []
        for mask in columns:
            mine = [r for r in rows if (r["agent"], r["mask"]) == (agent, mask)]
            there = sum(bool(r["since"]) for r in mine)
            mean = np.mean([float(r["final"]) for r in mine]) if mine else np.nan
            cells.append(f"{there}/{len(mine)} ({mean:.2f})" if mine else "")
        lines.append(f"| `{agent}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--agents", nargs="*", default=agent_names(continuous=False))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("seeds.csv"))
    parser.add_argument("--blind", action="store_true", help="as if targets knew no masks")
    args = parser.parse_args()
    if args.blind:
        Transition.choosable = lambda self, values_t: values_t  # type: ignore[method-assign]
    rows = list(csv.DictReader(args.out.open(encoding="utf-8"))) if args.out.exists() else []
    for agent in args.agents:
        for mask in ("blind",) if args.blind else ("shown", "hidden"):
            if any((row["agent"], row["mask"]) == (agent, mask) for row in rows):
                continue
            rows += measured(agent, mask, range(args.seed, args.seed + args.seeds))
            with args.out.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            print(agent, mask, [row["final"] for row in rows[-args.seeds :]], flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
