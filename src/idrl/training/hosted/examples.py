"""Observations of random play on the host, to measure the priors' spread on."""

from __future__ import annotations

import contextlib
from typing import Any

import jax
import numpy as np

from idrl.envs.host import Vector
from idrl.training.ahead import quick
from idrl.training.batching import over_seeds
from idrl.training.doing import Between
from idrl.training.hosted import fleet as fleets
from idrl.training.hosted.fleet import by_seed
from idrl.training.learner import EXAMPLE_STEPS
from idrl.training.seeding import env_seeds, stream


def random_examples(program: Any, keys: jax.Array, between: Between) -> jax.Array:
    """Of each seed's first environment: `[S, 64, ...]`; `program` is a `Hosted`."""
    env = program.env
    if not env.slow_resets or env.masked:
        return _examples(program, program._vector(), program.envs, keys, between)
    with contextlib.closing(env.make(program.seeds, program.training.env_timeout_s)) as vector:
        return _examples(program, vector, 1, keys, between)


def _examples(
    program: Any, vector: Vector, there: int, keys: jax.Array, between: Between
) -> jax.Array:
    """In a vector that has the first `there` environments of each seed."""
    agent, env, envs, seeds = program.agent, program.env, program.envs, program.seeds

    def random_action(key_data, t, allowed):
        key = jax.random.split(stream(jax.random.wrap_key_data(key_data), "init"), 3)[2]
        return agent.random_actions(jax.random.fold_in(key, t), envs, allowed)

    choose = jax.jit(over_seeds(random_action, (0, None, 0)), compiler_options=quick())
    push = jax.jit(program.stack.push, compiler_options=quick())
    count = seeds * there
    playing = np.arange(count) % there == 0
    fleet = fleets.begin(env, vector, env_seeds(keys, "init", 0, envs)[:, :there].reshape(-1))
    seen: list[np.ndarray] = []
    stack = np.zeros((seeds, *env.obs_shape), env.obs_dtype)
    for t in range(EXAMPLE_STEPS):
        between()
        shown = by_seed(fleet.obs, seeds)[:, 0], by_seed(fleet.first, seeds)[:, 0]
        stack = np.asarray(push(stack, *shown))
        seen.append(stack)
        action = np.asarray(choose(keys, np.int32(t), by_seed(fleet.allowed, seeds)))[:, :there]
        action = env.only(playing, fleets.for_all(action))
        fleet = fleets.advance(vector, fleet, action, np.full(count, fleets.NO_SEED))
    return program._spread(np.stack(seen, 1))
