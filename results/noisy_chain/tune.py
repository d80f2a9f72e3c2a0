"""The search behind the preset of noisy_chain: four settings an agent and stage, seeds below 100.

    python results/noisy_chain/tune.py --agent c51-ids --stage exploration --out FOLDER
    python results/noisy_chain/tune.py --agent c51-ids --stage optimiser --out FOLDER [--size 10]

Prints a row per setting: regret (episodes that missed the goal, of the first 1000) and share of
gambles, mean over seeds ± half of the 95% interval.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from study import measure

import idrl
from idrl.report.statistics import plus_minus

IDS = [(0.5, 0.3), (1.0, 0.3), (2.0, 0.3), (2.0, 1.0)]  # λ, scale of the prior
THOMPSON = [0.1, 0.3, 1.0, 3.0]  # scale of the prior


OPTIMISER = [(1e-3, 32), (3e-4, 32), (1e-3, 128), (3e-4, 128)]  # lr, batch size


def settings(agent: str, stage: str) -> list[dict]:
    if stage == "optimiser":
        # a prior of the size of the noise, which any smaller one drowns in
        changes = [
            {
                "optimiser": {"lr": lr},
                "learning": {"batch_size": batch},
                "heads": {"q": {"prior_scale": 1.0}},
            }
            for lr, batch in OPTIMISER
        ]
        if agent != "bootstrapped-dqn":
            changes = [{**change, "explore": {"lam": 1.0}} for change in changes]
        return changes
    if agent == "bootstrapped-dqn":
        return [{"heads": {"q": {"prior_scale": prior}}} for prior in THOMPSON]
    return [{"explore": {"lam": lam}, "heads": {"q": {"prior_scale": p}}} for lam, p in IDS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--agent", required=True)
    parser.add_argument("--stage", choices=("exploration", "optimiser"), required=True)
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    for i, change in enumerate(settings(args.agent, args.stage)):
        run = idrl.train(
            args.agent, f"noisy_chain/{args.size}", seeds=args.seeds, seed=0, settings=change,
            out=Path(args.out) / f"{args.agent}-{args.size}-{args.stage}-{i}",
        )  # fmt: skip
        rows = run.episodes
        gamma = run.config.learning.gamma
        found = [
            measure([r for r in rows if r["seed"] == str(s)], args.size, gamma, 1000)
            for s in run.seeds
        ]
        cells = [plus_minus(np.array([f[name] for f in found])) for name in ("regret", "gambles")]
        print(f"| `{args.agent}` | {args.size} | {change} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
