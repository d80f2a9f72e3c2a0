"""One GPU: many seeds in one program, and Atari against Stable-Baselines3 in the same minutes.

    python -m benchmarks.gpu [--what seeds atari] [--seeds 1 16 64 256] [--torch PYTHON] \
        [--csv FILE] [--trace DIR]

seeds  `c51-ids` on `minatar/breakout`, S seeds side by side: environment steps and updates a second
       of all, four environments a seed, one update of 32 transitions per four steps. Beside it the
       bytes that an update as it is laid out moves at least, and what share of the memory's speed,
       measured here, that makes.
atari  Frames a second of training at Atari size: ours (`c51-ids`, ten heads and a return head,
       ALE's Pong in 64 environments) and Stable-Baselines3's DQN (one head, Nature network, batch
       32, an update per four steps) in a process of its own, on frames that cost nothing. In turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import atari
from benchmarks.turns import Group, Row, Worker, serve
from idrl.config import resolve
from idrl.devices import prepare
from idrl.envs import make_env
from idrl.session import make_program

COLUMNS = ("what", "who", "count", "value", "unit", "spread", "more", "device", "jax")

# Passes over an agent's weights that an update, as it is laid out here, makes at least: forward
# online at both ends of a transition and by the target, backward, the gradient written and read,
# Adam's two moments and the weights read and written.
PASSES = 3 + 1 + 2 + 6


def bandwidth() -> float:
    """Bytes a second of reading and writing large arrays."""
    x = jnp.zeros(2**28 if jax.default_backend() != "cpu" else 2**24)
    turns = 20  # in one program, so that starting it does not count
    step = jax.jit(lambda x: jax.lax.fori_loop(0, turns, lambda _, x: x + 1, x), donate_argnums=0)
    x = jax.block_until_ready(step(x))
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        x = jax.block_until_ready(step(x))
        times.append(time.perf_counter() - begin)
    return 2 * x.nbytes * turns / statistics.median(times)


class ManySeeds:
    """One program of `count` seeds."""

    def __init__(self, job: Row):
        self.job, self.count = job, job["count"]
        changes = {
            "seeds": self.count, "learning": {"update_every_steps": 4},
            "training": {"envs": 4, "distributions_every_steps": 0},
        }  # fmt: skip
        config = resolve(job["agent"], "minatar/breakout", changes=[changes])
        self.program: Any = make_program(config, make_env("minatar/breakout"))
        begin = time.perf_counter()
        self.state, _ = self.program.start(self.program.seed_keys(0))
        self._block()
        self.start_s = time.perf_counter() - begin

    def _block(self) -> None:
        self.state, out = self.program.block(self.state, np.int32(0))
        jax.block_until_ready(out)

    def rows(self):
        c, count = self.program.cadence, self.count
        speed = bandwidth()
        times = atari.repeated(self._block, self.job["seconds"])
        steps = [count * c.block * c.steps / t for t in times]
        value = statistics.median(steps)
        rate = value * c.updates / c.steps
        weights = sum(x.size for x in jax.tree.leaves(self.state.agent.params)) // count
        least = PASSES * 4 * weights
        if self.job["trace"]:
            with jax.profiler.trace(os.path.join(self.job["trace"], str(count)), True):
                self._block()
        yield {
            "what": "seeds", "who": f"idrl {self.job['agent']}", "count": count,
            "value": round(value), "unit": "steps/s", "spread": atari.spread(steps),
            "more": f"{rate:.0f} updates/s; {weights} weights; {least / 1e6:.1f} MB an update at "
            f"least; {rate * least / speed:.0%} of {speed / 1e12:.2f} TB/s; start "
            f"{self.start_s:.0f} s; block {c.block}; {atari.memory()}",
            "device": jax.local_devices()[0].device_kind, "jax": jax.__version__,
        }  # fmt: skip


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--what", nargs="+", choices=("seeds", "atari"), default=["seeds", "atari"])
    parser.add_argument("--agent", default="c51-ids")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 16, 64, 256])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--torch", default=sys.executable, help="a Python with stable-baselines3")
    parser.add_argument("--csv")
    parser.add_argument("--trace", help="a folder for profiles of `seeds`")
    args = parser.parse_args(argv)
    job = {"agent": args.agent, "seconds": args.seconds, "trace": args.trace}
    workers = []
    if "seeds" in args.what:
        workers += [Worker("benchmarks.gpu", {**job, "count": count}) for count in args.seeds]
    if "atari" in args.what:
        game = {"game": "pong", "envs": 64, "precision": "full", "note": "", "capacity": 10**6}
        workers += [
            Worker("benchmarks.atari", {**job, **game, "only": "whole"}),
            Worker("benchmarks.sb3_atari", job, args.torch),
        ]
    rows: list[Row] = []
    with Group(workers) as group:
        for turn in range(args.turns):
            for one in group:
                for row in one.measure():
                    told = {"who": f"idrl {args.agent}", "count": turn} | row
                    told["what"] = told["what"].replace("whole", "atari")
                    atari.add(rows, told, COLUMNS, args.csv)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        prepare()
        serve(ManySeeds(json.loads(sys.argv[2])).rows)
    else:
        main(sys.argv[1:])
