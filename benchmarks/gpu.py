"""One GPU: many seeds in one program, beside rejax, and Atari beside Stable-Baselines3, in turns.

    python -m benchmarks.gpu [--what seeds rejax atari] [--seeds 1 16 64 256] [--torch PYTHON] \
        [--rejax FOLDER] [--csv FILE] [--trace DIR]

seeds  `c51-ids` on `minatar/breakout`, S seeds side by side: environment steps and updates a second
       of all, four environments a seed, one update of 32 transitions per four steps. Beside it the
       bytes that an update as it is laid out moves at least, and what share of the memory's speed,
       measured here, that makes.
rejax  S seeds of DQN on `minatar/breakout` in one program, ours and rejax's, the work of
       `benchmarks/peers/work.py`. FOLDER holds rejax and what it needs, where that is not
       installed.
atari  Frames a second of training at Atari size. Ours: `c51-ids` (ten heads and a return head) and
       `dqn` on ALE's Pong in 64 environments. Stable-Baselines3's DQN, in a process of its own: one
       environment and 64, on frames that cost nothing, and 64 on the same Pong; Nature network,
       batch 32. An update per four steps everywhere.
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
from idrl.envs import make_env
from idrl.runs.session import make_program
from idrl.system.devices import prepare

COLUMNS = ("what", "who", "count", "turn", "value", "unit", "spread", "more", "device", "jax")
STRETCH = 20_000  # steps of a seed, measured at a time beside rejax

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
        self.program.ahead(fresh=True)
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


def seeds_workers(args: argparse.Namespace) -> list[Worker]:
    job = {"agent": args.agent, "seconds": args.seconds, "trace": args.trace}
    return [Worker("benchmarks.gpu", {**job, "count": count}) for count in args.seeds]


def rejax_workers(args: argparse.Namespace) -> list[Worker]:
    workers = []
    for count in args.seeds:
        job = {"algo": "dqn", "seeds": count, "steps": STRETCH}
        request = {"task": "breakout", "jobs": [job], "turns": True, "began": time.time()}
        workers += [
            Worker("benchmarks.peers.run_idrl", request),
            Worker("benchmarks.peers.run_rejax", request, path=args.rejax),
        ]
    return workers


def atari_workers(args: argparse.Namespace) -> list[Worker]:
    game = {
        "game": "pong", "envs": 64, "precision": "full", "note": "", "capacity": 10**6,
        "only": "whole", "seconds": args.seconds,
    }  # fmt: skip
    ours = [Worker("benchmarks.atari", {**game, "agent": agent}) for agent in (args.agent, "dqn")]
    theirs = [
        Worker("benchmarks.sb3_atari", {"envs": envs, "frames": frames, "seconds": args.seconds},
               args.torch)
        for envs, frames in ((1, "free"), (64, "free"), (64, "pong"))
    ]  # fmt: skip
    return ours + theirs


def in_columns(worker: Worker, row: Row) -> Row:
    """What a worker told, in the columns of the table."""
    if "steps_per_s" in row:
        who = "rejax dqn" if worker.module.endswith("rejax") else "idrl dqn"
        return {
            "what": "rejax", "who": who, "count": row["seeds"], "value": round(row["steps_per_s"]),
            "unit": "steps/s", "more": f"{row['updates_per_s']:.0f} updates/s; "
            f"{row['seconds']:.2f} s; ready {row['ready_s']:.0f} s",
        }  # fmt: skip
    if row["what"] == "whole":
        return row | {"what": "atari", "who": f"idrl {row['agent']}", "count": row["envs"]}
    return row


WORKERS = {"seeds": seeds_workers, "rejax": rejax_workers, "atari": atari_workers}


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--what", nargs="+", choices=list(WORKERS), default=list(WORKERS))
    parser.add_argument("--agent", default="c51-ids")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 16, 64, 256])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--torch", default=sys.executable, help="a Python with stable-baselines3")
    parser.add_argument("--rejax", default="", help="a folder with rejax")
    parser.add_argument("--csv")
    parser.add_argument("--trace", help="a folder for profiles of `seeds`")
    args = parser.parse_args(argv)
    rows: list[Row] = []
    with Group([one for what in args.what for one in WORKERS[what](args)]) as group:
        for turn in range(args.turns):
            for one in group:
                for row in one.measure():
                    atari.add(rows, in_columns(one, row) | {"turn": turn}, COLUMNS, args.csv)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        prepare()
        serve(ManySeeds(json.loads(sys.argv[2])).rows)
    else:
        main(sys.argv[1:])
