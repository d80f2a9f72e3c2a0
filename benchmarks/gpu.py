"""One GPU: many seeds in one program, and Atari against Stable-Baselines3 in the same minutes.

    python -m benchmarks.gpu [--what seeds sb3] [--seeds 1 16 64 256] [--csv FILE] [--trace DIR]

seeds  `c51-ids` on `minatar/breakout`, S seeds side by side: environment steps and updates a second
       of all, four environments a seed, one update of 32 transitions per four steps. Beside it the
       bytes an update has to move at least, and what share of the memory's speed, measured here,
       that makes.
sb3    Frames a second of training at Atari size: ours (`c51-ids`, ten heads and a return head,
       ALE's Pong in 64 environments) and Stable-Baselines3's DQN (one head, Nature network, batch
       32, an update per four steps) in a process of its own, on frames that cost nothing.
       Alternating.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import time
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import atari
from idrl.config import resolve
from idrl.envs import make_env
from idrl.session import make_program

COLUMNS = ("what", "who", "count", "value", "unit", "spread", "more")

# Passes over an agent's weights that an update cannot do without: forward online at both ends of a
# transition and by the target, backward, the gradient written and read, Adam's two moments and the
# weights read and written.
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


def seeds(args):
    speed = bandwidth()
    print(f"memory: {speed / 1e12:.2f} TB/s", flush=True)
    for count in args.seeds:
        changes = {
            "seeds": count, "learning": {"update_every_steps": 4},
            "training": {"envs": 4, "distributions_every_steps": 0},
        }  # fmt: skip
        config = resolve(args.agent, "minatar/breakout", changes=[changes])
        program = make_program(config, make_env("minatar/breakout"))
        begin = time.perf_counter()
        state, _ = program.start(program.seed_keys(0))
        box, c = [state], program.cadence
        weights = sum(x.size for x in jax.tree.leaves(state.agent.params)) // count

        def call(box=box, program=program):
            box[0], out = program.block(box[0], np.int32(0))
            jax.block_until_ready(out)

        call()
        ready = time.perf_counter() - begin
        times = atari.repeated(call, args.seconds)
        steps = [count * c.block * c.steps / t for t in times]
        value = statistics.median(steps)
        rate = value * c.updates / c.steps
        share = rate * PASSES * 4 * weights / speed
        if args.trace:
            with jax.profiler.trace(os.path.join(args.trace, str(count)), True):
                call()
        yield ("seeds", args.agent, count, round(value), "steps/s", atari.spread(steps),
               f"{rate:.0f} updates/s; {weights} weights; {PASSES * 4 * weights / 1e6:.1f} MB an "
               f"update at least; {share:.0%} of the memory's speed; ready after {ready:.0f} s; "
               f"block {c.block}")  # fmt: skip
        del box, state


def sb3(args):
    how = SimpleNamespace(
        game="pong", capacity=1_000_000, seconds=args.seconds, no_tape=False
    )  # fmt: skip
    for turn in range(args.turns):
        value, unit, around, more = atari.whole(how, args.agent, 64, "full")
        yield ("sb3", f"idrl {args.agent}", turn, round(value), unit, around, more)
        command = [sys.executable, "-m", "benchmarks.sb3_atari", str(args.seconds)]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        if told.returncode:
            print(told.stderr[-800:], file=sys.stderr)
            return
        said = json.loads(told.stdout.splitlines()[-1])
        yield ("sb3", "Stable-Baselines3 dqn", turn, round(4 * said["steps_per_s"]), "frames/s",
               "", f"{said['versions']}; {said['device']}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    kinds = {f.__name__: f for f in (seeds, sb3)}
    parser.add_argument("--what", nargs="+", choices=kinds, default=list(kinds))
    parser.add_argument("--agent", default="c51-ids")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 16, 64, 256, 1024])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--csv")
    parser.add_argument("--trace", help="a folder for profiles of `seeds`")
    args = parser.parse_args()
    device = jax.local_devices()[0].device_kind
    print(f"# {device}, {os.cpu_count()} cores, JAX {jax.__version__}", flush=True)
    rows = []
    for what in args.what:
        for row in kinds[what](args):
            rows.append((*row, device, jax.__version__))
            print(*row, flush=True)
            if args.csv:
                with open(args.csv, "w", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerows([(*COLUMNS, "device", "jax"), *rows])


if __name__ == "__main__":
    main()
