"""A maze with action masks: are the values of actions that cannot be taken kept out of learning?

N×N cells, entered at the bottom right; the door is at the top left. Five actions: north, west,
south, east, and open the door. Walls are drawn anew for every seed. Moves into walls are not
allowed, nor is opening elsewhere than at the door; where the mask is hidden they do nothing. Every
action costs 0.05, but opening the door pays 1 and ends the episode; 10·N² steps cut it short.

Opening is the best there is wherever it was ever tried, so an agent that does not leave it out of
its targets elsewhere takes every cell for one beside the prize, and never finds the way.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from idrl.envs.base import Step
from idrl.envs.declaring import family
from idrl.envs.presets import PresetContext, Settings, deep_exploration, discrete
from idrl.errors import IdrlError

NORTH, WEST, SOUTH, EAST, OPEN = range(5)
COST = 0.05


@discrete
def preset(task: PresetContext) -> Settings:
    """A short way to one reward, with costs on the way and actions that are not always allowed.

    Networks and priors are deep_sea's. Its quick targets and steps are not: here one can walk in
    circles, and with them c51-ids lost the way again on 4 of 4 seeds, masks shown or hidden (seeds
    0 to 3 of N = 5, 7,500 steps).
    """
    limit = 10 * task.size**2  # steps of an episode
    gamma = 1 - 1 / (2 * task.size)  # looks as far ahead as the way is long
    settings = deep_exploration(task.size, episodes=0)
    # Opening pays 1; never to find the door costs 0.05 a step.
    kinds = settings["kinds"]
    kinds["categorical"] |= {"v_min": -COST / (1 - gamma), "v_max": 1.0}
    # Nothing here is noisy, and values are small: noise of 1 drowns them (bdqn, masks hidden, seeds
    # 0 to 7: 6 evaluations each, of which 30 of 48 found the best way, with 0.1 all).
    kinds["bayesian"] = kinds["bayesian"] | {"noise_std": 0.1}
    settings["optimiser"] |= {"lr": 1e-3}
    settings["learning"] |= {
        "gamma": gamma,
        "target_every_steps": 50,
        # Who explores is not the question here, so random play finds the door: by then on 99 of
        # 100 seeds of N = 4 with masks hidden (in a third of the time with masks shown).
        "learning_starts_steps": 8 * limit,
    }
    settings["training"] |= {"steps": 32 * limit, "log_every_steps": 4 * limit}
    settings["evaluation"] |= {"every_steps": 4 * limit, "steps": 2 * limit}
    return settings


class MazeState(NamedTuple):
    row: jax.Array
    column: jax.Array
    time: jax.Array
    blocked: jax.Array  # actions so far that did nothing


@family(
    "maze/N",
    options={"mask": True},
    summary="N×N cells, a door at the end, action masks; ?mask=0 hides them",
    preset=preset,
    host=False,
)
class Maze:
    """`mask`: whether it says which actions are allowed."""

    num_actions = 5

    def __init__(self, size: int = 4, mask: bool = True):
        if not 2 <= size <= 100:
            raise IdrlError(f"maze/{size}: the size is a whole number from 2 to 100.")
        self.size, self.limit = size, 10 * size**2
        self.name = f"maze/{size}"
        self.obs_shape: tuple[int, ...] = (size * size,)
        self.allowed = self.possible if mask else None

    def task(self, key: jax.Array) -> jax.Array:
        """`[N, N]`: whether the way to the door leads north from a cell, else west. One or the
        other from each makes a tree: every cell can be reached, along one way."""
        north = jax.random.bernoulli(key, 0.5, (self.size, self.size))
        return north.at[:, 0].set(True).at[0].set(False)

    def possible(self, task: jax.Array, state: MazeState) -> jax.Array:
        """`[5]`: what does something here. Passages are open in both directions."""
        row, column, last = state.row, state.column, self.size - 1
        door = (row == 0) & (column == 0)
        north = task[row, column]
        south = (row < last) & task[jnp.minimum(row + 1, last), column]
        east = (column < last) & ~task[row, jnp.minimum(column + 1, last)]
        return jnp.stack([north, ~north & ~door, south, east, door])

    def reset(self, task: jax.Array, key: jax.Array) -> tuple[MazeState, jax.Array]:
        corner, zero = jnp.int32(self.size - 1), jnp.int32(0)
        state = MazeState(corner, corner, zero, zero)
        return state, self._observe(state)

    def _observe(self, state: MazeState) -> jax.Array:
        where = state.row * self.size + state.column
        return (jnp.arange(self.size**2) == where).astype(jnp.uint8)

    def step(self, task, state: MazeState, action, key) -> tuple[MazeState, Step]:
        possible = self.possible(task, state)[action]
        opened = possible & (action == OPEN)
        down = (action == SOUTH).astype(jnp.int32) - (action == NORTH)
        right = (action == EAST).astype(jnp.int32) - (action == WEST)
        state = MazeState(
            state.row + possible * down,
            state.column + possible * right,
            state.time + 1,
            state.blocked + ~possible,
        )
        reward = jnp.where(opened, 1.0, -COST)
        truncated = (state.time >= self.limit) & ~opened
        info = {"blocked": state.blocked.astype(jnp.float32)}
        return state, Step(self._observe(state), reward, opened, truncated, info)

    def optimal_return(self, task: jax.Array | None = None) -> float:
        """Every way to the door goes north or west alone, so all are of the same length."""
        return 1.0 - COST * 2 * (self.size - 1)
