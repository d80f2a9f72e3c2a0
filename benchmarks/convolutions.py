"""Convolutions of Mnih et al. on a CPU: patches everywhere, and shifted products where no gradient
is taken (`networks/layers.py`).

    python -m benchmarks.convolutions [--agent dqn] [--rounds 6]

Milliseconds of processor time, which a busy machine stretches least: of an update at 84×84×4, and
of a pass of 4 and of 32 screens. Both take turns; the median of all rounds counts.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from benchmarks import atari
from idrl.networks import layers
from idrl.networks.trunks import NatureCnn
from idrl.training.hosted import fleet

UPDATES, PASSES = 4, 20
WAYS = {"patches": 10**9, "shifted": layers.WIDE}  # channels from which on products are shifted


def update(agent: str) -> Callable[[], Any]:
    """`UPDATES` updates of one seed."""
    program = atari.program_of(agent, "pong", 4 * UPDATES, "full", 2_000)
    state = atari.blank_state(program)
    kept = [state, program._zeros(state, fleet.blank(program.env, program.envs))[1]]

    def call() -> Any:
        kept[:] = program._improve(*kept, UPDATES, program.replay_rows, 0)
        return kept[0]

    return call


def passes(screens: int) -> Callable[[], Any]:
    """`PASSES` passes of so many screens through the trunk."""
    module = NatureCnn().module((84, 84, 4))
    seen = np.random.default_rng(0).integers(0, 256, (screens, 84, 84, 4), np.uint8)
    params = module.init(jax.random.key(0), seen)
    apply = jax.jit(module.apply)

    def call() -> Any:
        for _ in range(PASSES):
            jax.block_until_ready(apply(params, seen))

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--agent", default="dqn")
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    what = {
        f"an update of {options.agent}": (lambda: update(options.agent), UPDATES),
        "4 screens": (lambda: passes(4), PASSES),
        "32 screens": (lambda: passes(32), PASSES),
    }
    for name, (make, count) in what.items():
        calls, taken = {}, {way: [] for way in WAYS}
        for way, wide in WAYS.items():
            layers.WIDE = wide
            calls[way] = make()
            jax.block_until_ready(calls[way]())  # compiled
        for _ in range(options.rounds):
            for way, call in calls.items():
                start = time.process_time()
                jax.block_until_ready(call())
                taken[way].append(1e3 * (time.process_time() - start) / count)
        told = ", ".join(f"{way} {statistics.median(x):.1f} ms" for way, x in taken.items())
        print(f"{name}: {told}", flush=True)


if __name__ == "__main__":
    main()
