"""How fast the bandit simulations are, and a scikit-learn loop on the same work beside them.

    python benchmarks/bandits.py [--seeds 200] [--loop-seeds 2] [--out FILE.csv]

The work is the `gp` setting under UCB: 50 candidates, 500 steps. scikit-learn fits all observations
anew at every step, as its users do; it plays fewer seeds, and the ratio is by seed and step.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable

import jax
import numpy as np
import sklearn
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from idrl.bandits import simulate
from idrl.bandits.settings import gp

STEPS, LAM = 500, 2.0


def ours(seeds: int) -> tuple[float, float, np.ndarray]:
    """Seconds of the first call, which compiles, of a second one, and what was played."""
    taken = []
    for _ in range(2):
        start = time.perf_counter()
        plays = simulate("gp", "ucb", seeds, STEPS, lam=LAM)
        taken.append(time.perf_counter() - start)
    return taken[0], taken[1], plays.actions


def sklearn_loop(seeds: int) -> tuple[float, np.ndarray]:
    actions = np.zeros((seeds, STEPS), int)
    start = time.perf_counter()
    for seed in range(seeds):
        problem = gp(seed)
        luck = np.random.default_rng([seed, *b"luck"]).standard_normal(STEPS)
        values = np.zeros(STEPS)
        for t in range(STEPS):
            seen = actions[seed, :t]
            model = GaussianProcessRegressor(
                RBF(0.2), alpha=problem.rho2[seen] if t else 1.0, optimizer=None
            )
            if t:
                model.fit(problem.points[seen], values[:t])
            mean, sigma = model.predict(problem.points, return_std=True)
            action = (mean + LAM * sigma).argmax()
            actions[seed, t] = action
            values[t] = problem.truth[action] + np.sqrt(problem.rho2[action]) * luck[t]
    return time.perf_counter() - start, actions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--loop-seeds", type=int, default=2)
    parser.add_argument("--out", help="also write the numbers to this CSV")
    options = parser.parse_args()

    first, second, actions = ours(options.seeds)
    loop, loop_actions = sklearn_loop(options.loop_seeds)
    # Not the whole play: an early tie broken by rounding sends two right programs different ways.
    alike = (actions[: options.loop_seeds, :50] == loop_actions[:, :50]).mean()
    per_step = {
        "idrl, compilation included": first / (options.seeds * STEPS),
        "idrl": second / (options.seeds * STEPS),
        "scikit-learn loop": loop / (options.loop_seeds * STEPS),
    }
    rows = [
        ("idrl, compilation included", options.seeds, first),
        ("idrl", options.seeds, second),
        ("scikit-learn loop", options.loop_seeds, loop),
    ]
    table = [
        {
            "program": name,
            "seeds": seeds,
            "steps": STEPS,
            "seconds": f"{seconds:.3g}",
            "microseconds_per_step": f"{1e6 * per_step[name]:.3g}",
            "times_slower_than_idrl": f"{per_step[name] / per_step['idrl']:.3g}",
        }
        for name, seeds, seconds in rows
    ]
    for row in table:
        print("  ".join(f"{key}={value}" for key, value in row.items()))
    print(f"the first 50 actions agree in {100 * alike:.0f}% of steps")
    print(f"jax {jax.__version__}, scikit-learn {sklearn.__version__}, {os.cpu_count()} CPU cores")
    if options.out:
        with open(options.out, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, table[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
