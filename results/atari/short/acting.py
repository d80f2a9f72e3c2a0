"""The latest weights of finished runs, scored as they are evaluated and as they explore: is it the
rule that makes evaluations differ from training, or that the weights stay as they are?

    python results/atari/short/acting.py CSV RUN...

`training` is the mean return of the training episodes that end in the last 50,000 steps.
"""

import csv
import sys
from pathlib import Path

import numpy as np

import idrl

NEAR, FRAMES = 50_000, 400_000

with open(sys.argv[1], "a", encoding="utf-8", newline="") as file:
    table = csv.writer(file)
    if not file.tell():
        table.writerow(("agent", "env", "seed", "acting", "return", "std", "episodes", "length"))
    for path in map(Path, sys.argv[2:]):
        run = idrl.open_run(path)
        ended, returns, lengths = (
            np.asarray(run.episodes[name]) for name in ("steps", "return", "length")
        )
        near = ended > run.config.training.steps - NEAR
        rows = [
            (
                "training",
                returns[near].mean(),
                returns[near].std(),
                near.sum(),
                lengths[near].mean(),
            )
        ]
        for acting in ("evaluate", "explore"):
            score = idrl.evaluate(run, frames=FRAMES, weights="latest", acting=acting)
            told = (score.return_mean, score.return_std, score.episodes, score.length_mean)
            rows.append((acting, *(float(x[0]) for x in told)))
        for acting, mean, std, count, length in rows:
            numbers = (f"{x:.5g}" for x in (mean, std, count, length))
            table.writerow((run.config.agent, run.config.env, run.config.seed, acting, *numbers))
            file.flush()
        print(path.name, *(f"{row[0]} {row[1]:,.0f} ({row[3]:.0f})" for row in rows), sep="  ")
