"""Steps a second of TD3: compiled, and with Gymnasium on the host. SB3's is `sb3_control.py`.

    python -m benchmarks.control_speed [--seeds 1] [--hidden 64 64] [--batch 64]

One environment a seed, an update a step, after compiling and the random steps. Beside the clock the
CPU time is told, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import time

import jax
import numpy as np

from idrl.config import resolve
from idrl.devices import prepare
from idrl.envs import make_env
from idrl.session import make_program


def measure(env: str, seeds: int, hidden: list[int], batch: int, seconds: float) -> None:
    heads = {"q": {"hidden": hidden}, "actor": {"hidden": hidden}}
    changes = {"heads": heads, "learning": {"batch_size": batch}, "seeds": seeds}
    changes["training"] = {"steps": 1_000_000, "distributions_every_steps": 0}
    changes["learning"]["replay_capacity"] = 100_000
    config = resolve("td3", env, changes=[changes])
    program = make_program(config, make_env(env))
    state, _ = program.start(program.seed_keys(0))
    c, iteration = program.cadence, 0
    state, _ = program.block(state, np.int32(0))  # compiles
    jax.block_until_ready(state.agent)
    first = iteration = c.end(0)
    wall, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < seconds:
        state, _ = program.block(state, np.int32(iteration))
        jax.block_until_ready(state.agent)
        iteration = c.end(iteration)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    steps = (iteration - first) * c.steps * seeds
    print(
        f"td3 {env}, {seeds} seeds, {hidden}, batch {batch}: {steps / wall:,.0f} steps/s, "
        f"{steps / cpu:,.0f} a second of CPU time ({steps:,} steps)",
        flush=True,
    )
    program.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--envs", nargs="+", default=["pendulum", "gym/Pendulum-v1"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    prepare()
    for env in args.envs:
        measure(env, args.seeds, args.hidden, args.batch, args.seconds)


if __name__ == "__main__":
    main()
