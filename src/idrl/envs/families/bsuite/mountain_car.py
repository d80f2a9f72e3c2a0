"""Mountain car in bsuite's form.

It differs from Gym's (and gymnax's): 1000 steps, not 200; the time is seen, so running out of it
ends the episode like any other end; the goal counts at any speed.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from idrl.envs.base import Step

LOWEST, HIGHEST, GOAL = -1.2, 0.6, 0.5
FASTEST, FORCE, GRAVITY = 0.07, 0.001, 0.0025
STEPS = 1000


class MountainCarState(NamedTuple):
    position: jax.Array
    velocity: jax.Array
    time: jax.Array


class MountainCar:
    """Actions: push left, nothing, push right. -1 a step."""

    name = "mountain_car"
    num_actions = 3
    obs_shape: tuple[int, ...] = (3,)

    def task(self, key: jax.Array) -> tuple[()]:
        return ()

    def reset(self, task, key: jax.Array) -> tuple[MountainCarState, jax.Array]:
        position = jax.random.uniform(key, minval=-0.6, maxval=-0.4)
        state = MountainCarState(position, jnp.float32(0), jnp.int32(0))
        return state, _observe(state)

    def step(self, task, state: MountainCarState, action, key) -> tuple[MountainCarState, Step]:
        velocity = state.velocity + (action - 1) * FORCE - GRAVITY * jnp.cos(3 * state.position)
        velocity = jnp.clip(velocity, -FASTEST, FASTEST)
        position = jnp.clip(state.position + velocity, LOWEST, HIGHEST)
        velocity = jnp.where(position <= LOWEST, jnp.maximum(velocity, 0.0), velocity)
        state = MountainCarState(position, velocity, state.time + 1)
        ended = (position >= GOAL) | (state.time >= STEPS)
        return state, Step(_observe(state), jnp.float32(-1), ended, jnp.bool_(False))


def _observe(state: MountainCarState) -> jax.Array:
    return jnp.stack([state.position, state.velocity, state.time / STEPS])
