"""What a step of MinAtar's games costs on this machine: fusions in the compiled program, and time.

    python -m benchmarks.minatar_steps [NAME ...] [--envs 1 40]

The time is that of random play with resets in one program, the best of twelve turns of 500 steps.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from idrl.envs import make_env

NAMES = ("minatar/breakout", "minatar/freeway", "minatar/space_invaders", "minatar/asterix",
         "minatar/asterix?rules=gymnax", "minatar/seaquest",
         "minatar/seaquest?rules=gymnax")  # fmt: skip
STEPS, TURNS = 500, 12


def fusions(env, envs: int) -> int:
    """Of a step of so many environments."""
    key = jax.random.key(0)
    task = env.task(key)
    keys, actions = jax.random.split(key, envs), jnp.zeros(envs, jnp.int32)
    states, _ = jax.vmap(env.reset, (None, 0))(task, keys)
    step = jax.jit(jax.vmap(env.step, (None, 0, 0, 0)))
    program = step.lower(task, states, actions, keys).compile().as_text()
    return program[program.index("ENTRY") :].count(" fusion(")


def microseconds(env, envs: int) -> float:
    """Of a step of so many environments, played at random."""
    key = jax.random.key(0)
    task = env.task(key)

    def reset(key):
        return jax.vmap(env.reset, (None, 0))(task, jax.random.split(key, envs))

    def step(carry, key):
        state, _ = carry
        actions = jax.random.randint(key, (envs,), 0, env.num_actions)
        keys = jax.random.split(key, envs)
        state, seen = jax.vmap(env.step, (None, 0, 0, 0))(task, state, actions, keys)

        def restart(new, old):
            return jnp.where(seen.terminated.reshape(-1, *[1] * (old.ndim - 1)), new, old)

        return jax.tree.map(restart, reset(key), (state, seen.obs)), seen.reward.sum()

    play = jax.jit(lambda start, key: jax.lax.scan(step, start, jax.random.split(key, STEPS)))
    start = reset(key)
    jax.block_until_ready(play(start, key))
    took = []
    for _ in range(TURNS):
        began = time.perf_counter()
        jax.block_until_ready(play(start, key))
        took.append(time.perf_counter() - began)
    return min(took) / STEPS * 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--envs", nargs="+", type=int, default=[1, 40])
    options = parser.parse_args(arguments)
    for name in options.names:
        env = make_env(name)
        times = " | ".join(f"{microseconds(env, envs):,.1f} µs" for envs in options.envs)
        print(f"| `{name}` | {fusions(env, max(options.envs))} | {times} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
