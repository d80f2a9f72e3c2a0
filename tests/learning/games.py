"""Catch as a picture of 36×36 bytes, once for the compiled loop and once for Gymnasium's.

bsuite's rules on a board of four rows and five columns: an episode is three moves, and what the
last of them pays has to be bootstrapped to the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs.base import Step

ROWS, COLUMNS = 4, 5
MOVES = ROWS - 1  # two of them reach every column from the middle
SIDE = 36  # the smallest that the convolutions of Mnih et al. take
RANDOM, OPTIMUM = -0.6, 1.0  # the ball's column is uniform, whatever the paddle does


def picture(xp: Any, row, column, paddle):
    """`[SIDE, SIDE, 1]` of bytes; `xp` is NumPy or its twin in JAX."""
    rows = xp.arange(SIDE)[:, None] // (SIDE // ROWS)
    columns = xp.arange(SIDE)[None] // (SIDE // COLUMNS)
    ball = (columns == column) & (rows == row)
    bar = (columns == paddle) & (rows == ROWS - 1)
    return ((ball | bar) * 255).astype(xp.uint8)[..., None]


class State(NamedTuple):
    row: jax.Array
    column: jax.Array
    paddle: jax.Array


class Catch:
    name = "picture-catch"
    num_actions = 3
    obs_shape = (SIDE, SIDE, 1)

    def task(self, key):
        return ()

    def reset(self, task, key):
        column = jax.random.randint(key, (), 0, COLUMNS)
        state = State(jnp.int32(0), column, jnp.int32(COLUMNS // 2))
        return state, picture(jnp, *state)

    def step(self, task, state, action, key):
        paddle = jnp.clip(state.paddle + action - 1, 0, COLUMNS - 1)
        state = State(state.row + 1, state.column, paddle)
        over = state.row == ROWS - 1
        caught = jnp.where(state.paddle == state.column, 1.0, -1.0)
        reward = jnp.where(over, caught, 0.0)
        return state, Step(picture(jnp, *state), reward, over, jnp.bool_(False))


class GymCatch(gymnasium.Env):
    """The same for ±`reward`."""

    reward = 20.0
    action_space = gymnasium.spaces.Discrete(3)
    observation_space = gymnasium.spaces.Box(0, 255, (SIDE, SIDE, 1), np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.row, self.paddle = 0, COLUMNS // 2
        self.column = int(self.np_random.integers(COLUMNS))
        return picture(np, self.row, self.column, self.paddle), {}

    def step(self, action):
        self.paddle = int(np.clip(self.paddle + action - 1, 0, COLUMNS - 1))
        self.row += 1
        over = self.row == ROWS - 1
        won = self.reward if self.paddle == self.column else -self.reward
        seen = picture(np, self.row, self.column, self.paddle)
        return seen, won if over else 0.0, over, False, {}
