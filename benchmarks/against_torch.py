"""One C51-IDS update, ours against the same update in plain PyTorch.

    python -m benchmarks.against_torch --torch PYTHON_WITH_TORCH [--size atari] [--out FILE.csv]

Both use all cores and alternate; ours includes drawing the batch from the replay.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import time
from pathlib import Path

import jax
import jax.numpy as jnp

from benchmarks import atari
from benchmarks.tables import write
from idrl.config import resolve
from idrl.envs import make_env
from idrl.runs.session import make_program
from idrl.training.hosted import fleet

UPDATES = {"minatar": 200, "atari": 8}


def ours_atari() -> float:
    program = atari.program_of("c51-ids", "pong", 4 * UPDATES["atari"], "full", 5_000)
    state = atari.blank_state(program)
    sums = program._zeros(state, fleet.blank(program.env, program.envs))[1]
    times = []
    for _ in range(4):
        start = time.perf_counter()
        state, sums = program._improve(state, sums, UPDATES["atari"], program.replay_rows, 0)
        jax.block_until_ready(state)
        times.append((time.perf_counter() - start) / UPDATES["atari"])
    return 1e3 * statistics.median(times[1:])


def ours(size: str) -> float:
    """Milliseconds per update of one seed."""
    if size == "atari":
        return ours_atari()
    updates = UPDATES[size]
    change = {"learning": {"learning_starts_steps": 1_000, "replay_capacity": 5_000}}
    config = resolve("c51-ids", "minatar/breakout", changes=[change])
    program = make_program(config, make_env(config.env))
    state, _ = program.start(program.seed_keys(0))
    learn = jax.vmap(program._learn, (0, None, None))
    loop = jax.jit(
        lambda s: jax.lax.scan(lambda s, u: learn(s, 1_000, u), s, jnp.arange(updates))[0],
        donate_argnums=0,
    )
    state = jax.block_until_ready(loop(state))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        state = jax.block_until_ready(loop(state))
        times.append((time.perf_counter() - start) / updates)
    return 1e3 * statistics.median(times)


def theirs(python: str, size: str) -> float:
    script = Path(__file__).with_name("torch_update.py")
    command = [python, script, size, str(UPDATES[size])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--torch", required=True, help="a Python that has torch")
    parser.add_argument("--size", default="minatar", choices=list(UPDATES))
    parser.add_argument("--out")
    options = parser.parse_args()
    pairs = [(ours(options.size), theirs(options.torch, options.size)) for _ in range(3)]
    a, b = (statistics.median(each) for each in zip(*pairs, strict=True))
    row = {
        "size": options.size,
        "idrl_ms": round(a, 2), "torch_ms": round(b, 2), "idrl_over_torch": round(a / b, 2),
        "cores": os.cpu_count(), "batch": 32, "k": 10,
    }  # fmt: skip
    print(row, pairs)
    if options.out:
        write(options.out, [row])


if __name__ == "__main__":
    main()
