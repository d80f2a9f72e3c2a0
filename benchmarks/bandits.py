"""How fast the bandit simulations are, and a scikit-learn loop on the same work beside them.

    python benchmarks/bandits.py [--seeds 200] [--loop-seeds 2] [--out FILE.csv]

The work is the `gp` setting under UCB: 50 candidates, 500 steps. scikit-learn fits all observations
anew at every step, as its users do, on one thread, which is its fastest at this size; it plays
fewer seeds. The ratio is of processor time by seed and step, which a busy machine does not bend, to
that of the first call, which compiles.
"""

from __future__ import annotations

import argparse
import os
import time

import jax
import numpy as np
import sklearn
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from benchmarks.tables import write
from idrl.bandits import simulate
from idrl.bandits.settings import gp

STEPS, LAM = 500, 2.0


class Clock:
    def __enter__(self):
        self._wall, self._processor = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error):
        self.wall = time.perf_counter() - self._wall
        self.processor = time.process_time() - self._processor


def sklearn_loop(seeds: int) -> np.ndarray:
    """The actions of UCB, `[S, T]`, on the problems and with the luck of the simulations."""
    actions = np.zeros((seeds, STEPS), int)
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
    return actions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--loop-seeds", type=int, default=2)
    parser.add_argument("--out", help="also write the numbers to this CSV")
    options = parser.parse_args()

    with Clock() as first:
        simulate("gp", "ucb", options.seeds, STEPS, lam=LAM)
    with Clock() as again:
        plays = simulate("gp", "ucb", options.seeds, STEPS, lam=LAM)
    with Clock() as loop, threadpool_limits(1):
        loop_actions = sklearn_loop(options.loop_seeds)

    unit = first.processor / (options.seeds * STEPS)
    table = []
    for name, seeds, clock in (
        ("idrl, first call (compiles)", options.seeds, first),
        ("idrl, next call", options.seeds, again),
        ("scikit-learn loop", options.loop_seeds, loop),
    ):
        step = clock.processor / (seeds * STEPS)
        table.append(
            {
                "program": name,
                "seeds": seeds,
                "steps": STEPS,
                "wall_seconds": f"{clock.wall:.3g}",
                "processor_seconds": f"{clock.processor:.3g}",
                "processor_microseconds_per_step": f"{1e6 * step:.3g}",
                "ratio": f"{step / unit:.3g}",
            }
        )
    for row in table:
        print("  ".join(f"{key}={value}" for key, value in row.items()))
    alike = (plays.actions[: options.loop_seeds] == loop_actions).mean()
    print(f"both programs took the same action in {100 * alike:.0f}% of steps")
    print(f"jax {jax.__version__}, scikit-learn {sklearn.__version__}, {os.cpu_count()} CPU cores")
    if options.out:
        write(options.out, table)


if __name__ == "__main__":
    main()
