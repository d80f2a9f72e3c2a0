"""Cartpole in bsuite's forms: one starts with the pole up, one has to swing it up.

Both differ from Gym's (and gymnax's) cartpole: three actions, steps of 0.01 s, ten seconds, a wider
track, sine and cosine of the angle and the time in the observation, and running out of time ends
the episode like any other end.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from idrl.envs.base import Step
from idrl.errors import IdrlError

CART, POLE, LENGTH, FORCE, GRAVITY = 1.0, 0.1, 0.5, 10.0, 9.8
SECONDS_A_STEP, SECONDS = 0.01, 10.0
# bsuite ends an episode when its clock is past 10 s. A thousand steps of 0.01 s add up to just
# under that, so there is one more; counted, because a float32 clock would drift.
STEPS = 1001
TRACK = 3.0
START = 0.05  # every number starts within ±0.05 of its place


class PoleState(NamedTuple):
    x: jax.Array
    speed: jax.Array
    angle: jax.Array  # 0 is up
    spin: jax.Array
    time: jax.Array


def move(state: PoleState, action: jax.Array) -> PoleState:
    """One Euler step; actions push left, not at all, right."""
    force = (action - 1) * FORCE
    cos, sin = jnp.cos(state.angle), jnp.sin(state.angle)
    total = CART + POLE
    push = (force + POLE * LENGTH * state.spin**2 * sin) / total
    spin_change = (GRAVITY * sin - cos * push) / (LENGTH * (4 / 3 - POLE * cos**2 / total))
    speed_change = push - POLE * LENGTH * spin_change * cos / total
    return PoleState(
        state.x + SECONDS_A_STEP * state.speed,
        state.speed + SECONDS_A_STEP * speed_change,
        jnp.remainder(state.angle + SECONDS_A_STEP * state.spin, 2 * jnp.pi),
        state.spin + SECONDS_A_STEP * spin_change,
        state.time + 1,
    )


def _begin(key: jax.Array, angle: float) -> PoleState:
    x, speed, tilt, spin = jax.random.uniform(key, (4,), minval=-START, maxval=START)
    return PoleState(x, speed, angle + tilt, spin, jnp.int32(0))


def _numbers(state: PoleState) -> list[jax.Array]:
    seconds = state.time * (SECONDS_A_STEP / SECONDS)
    return [
        state.x / TRACK, state.speed / TRACK, jnp.sin(state.angle), jnp.cos(state.angle),
        state.spin, seconds,
    ]  # fmt: skip


class Cartpole:
    """1 a step while the pole is up (cos > 0.8) and the cart on its track; the first step without
    ends the episode."""

    name = "cartpole"
    num_actions = 3
    obs_shape: tuple[int, ...] = (6,)
    height = 0.8

    def task(self, key: jax.Array) -> tuple[()]:
        return ()

    def reset(self, task, key: jax.Array) -> tuple[PoleState, jax.Array]:
        state = _begin(key, 0.0)
        return state, jnp.stack(_numbers(state))

    def step(self, task, state: PoleState, action, key) -> tuple[PoleState, Step]:
        state = move(state, action)
        up = (jnp.cos(state.angle) > self.height) & (jnp.abs(state.x) < TRACK)
        ended = ~up | (state.time >= STEPS)
        reward = up.astype(jnp.float32)
        return state, Step(jnp.stack(_numbers(state)), reward, ended, jnp.bool_(False))


class Demand(NamedTuple):
    """What counts as up; part of the task so that a whole sweep shares one compiled program."""

    height: jax.Array
    width: jax.Array


class Swingup:
    """The pole hangs at first. A step pays 1 where cos(angle) > `height`, |x| < `width` and the
    spin is below 1; every push costs 0.1. Only the end of the track or of the time ends it.

    bsuite's sweep narrows the width as it raises the height: `width` is 1 - `height` unless given.
    """

    name = "cartpole_swingup"
    num_actions = 3
    obs_shape: tuple[int, ...] = (8,)
    slowest, cost = 1.0, 0.1

    def __init__(self, height: float = 0.5, width: float | None = None):
        if not 0 <= height < 1:
            raise IdrlError(
                f"bsuite/cartpole_swingup: height is {height}; it must be from 0 to below 1."
            )
        self.height, self.width = height, 1 - height if width is None else width

    def task(self, key: jax.Array) -> Demand:
        return Demand(jnp.float32(self.height), jnp.float32(self.width))

    def reset(self, task: Demand, key: jax.Array) -> tuple[PoleState, jax.Array]:
        state = _begin(key, jnp.pi)
        return state, self._observe(task, state)

    def _observe(self, task: Demand, state: PoleState) -> jax.Array:
        central = jnp.where(jnp.abs(state.x) < task.width, 1.0, -1.0)
        slow = jnp.where(jnp.abs(state.spin) < self.slowest, 1.0, -1.0)
        return jnp.stack([*_numbers(state), central, slow])

    def step(self, task: Demand, state: PoleState, action, key) -> tuple[PoleState, Step]:
        state = move(state, action)
        central = jnp.abs(state.x) < task.width
        slow = jnp.abs(state.spin) < self.slowest
        up = (jnp.cos(state.angle) > task.height) & central & slow
        reward = up.astype(jnp.float32) - self.cost * jnp.abs(action - 1)
        ended = (state.time >= STEPS) | (jnp.abs(state.x) > TRACK)
        return state, Step(self._observe(task, state), reward, ended, jnp.bool_(False))
