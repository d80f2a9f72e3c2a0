"""Every random number of a seed comes from one key, folded with what it is for and a counter.

So a seed draws the same numbers alone or among others, before or after a resume.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs.base import Env

_STREAMS = {
    "init": 0, "act": 1, "learn": 2, "evaluate": 3, "score": 4, "task": 5, "env": 6, "states": 7,
    "refit": 8,
}  # fmt: skip


def seed_key(seed: int | jax.Array) -> jax.Array:
    return jax.random.fold_in(jax.random.key(0), seed)


def stream(key: jax.Array, name: str, number: int | jax.Array = 0) -> jax.Array:
    return jax.random.fold_in(jax.random.fold_in(key, _STREAMS[name]), number)


def key_of(state: Any, name: str, number: Any) -> jax.Array:
    return stream(jax.random.wrap_key_data(state.key), name, number)


def task_of(env: Env, key: jax.Array) -> Any:
    """What the seed with this key plays: the same in training, evaluation and explanation."""
    return env.task(stream(key, "task"))


def env_seeds(keys: jax.Array, name: str, number: Any, envs: int) -> np.ndarray:
    """`[S, envs]` seeds below 2³¹ for environments on the host, from each seed's own key."""
    return np.asarray(_env_seeds(keys, name, np.int32(number), envs)).astype(np.int64)


@functools.partial(jax.jit, static_argnames=("name", "envs"))
def _env_seeds(keys, name, number, envs):
    def one(key_data):
        key = stream(jax.random.wrap_key_data(key_data), name, number)
        return jax.random.bits(key, (envs,), jnp.uint32) >> 1

    return jax.vmap(one)(keys)
