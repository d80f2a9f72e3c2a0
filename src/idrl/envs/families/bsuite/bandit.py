"""bsuite's bandit: eleven arms, one step an episode, nothing to see."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from idrl.envs.base import Step

ARMS = 11


class Bandit:
    """The arms pay 0, 0.1, …, 1; which pays what is a seed's task."""

    name = "bandit"
    num_actions = ARMS
    obs_shape: tuple[int, ...] = (1,)

    def task(self, key: jax.Array) -> jax.Array:
        return jax.random.permutation(key, jnp.linspace(0.0, 1.0, ARMS))

    def reset(self, task: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.int32(0), jnp.ones(1)  # it has no state, but a pytree needs a leaf to batch over

    def step(self, task, state, action, key) -> tuple[jax.Array, Step]:
        return state, Step(jnp.ones(1), task[action], jnp.bool_(True), jnp.bool_(False))
