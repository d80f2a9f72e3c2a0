"""Evaluations beside the training episodes that end within 50,000 steps of them: do the weights of
one moment, acting greedily, play as the agent that learns?

    python results/atari/short/near.py RUN...
"""

import sys
from pathlib import Path

import numpy as np

import idrl

NEAR = 50_000

for path in map(Path, sys.argv[1:]):
    run = idrl.open_run(path)
    ended, returns = (np.asarray(run.episodes[name]) for name in ("steps", "return"))
    steps, scores = (np.asarray(run.evaluations[name]) for name in ("steps", "return_mean"))
    trained = np.array([returns[abs(ended - at) <= NEAR].mean() for at in steps])
    told = (f"{one:,.0f} ({other:,.0f})" for one, other in zip(scores, trained, strict=True))
    print(f"{path.name}: {scores.sum() / trained.sum():.2f}", *told, sep="  ")
