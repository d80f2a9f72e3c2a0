"""Small tasks with known optima: grids, a river, a taxi. A few dozen to a few hundred states each.

Nothing here is tuned for an agent: the settings are those of tasks that nothing is known of.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs.base import Step
from idrl.envs.declaring import family
from idrl.envs.families.grid.outcomes import best_return, exact, lay_out
from idrl.envs.families.grid.tasks import TASKS
from idrl.envs.presets import PresetContext, Settings
from idrl.envs.views import View
from idrl.errors import IdrlError

WALKER, TRAIL = 5, 6  # colours of a board's cells


def preset(task: PresetContext) -> Settings | None:
    """How long to train, and no more."""
    rules = TASKS.get(str(task.argument))
    if rules is None or task.continuous:  # who makes it says so
        return None
    return {
        "training": {"steps": rules.steps},
        # 1,000 steps in each: few are lost with the episode that is cut off, and one without a
        # time limit has the time to end.
        "evaluation": {"every_steps": 5_000, "steps": 5_000, "envs": 5},
    }


def view(seen: np.ndarray) -> View | None:
    """`[T, H, W]` one-hot cells with the way behind the agent; None for other observations."""
    if seen.ndim != 3:
        return None
    here = seen.astype(bool)
    been = np.logical_or.accumulate(here, axis=0) & ~here
    cells = np.where(here, WALKER, np.where(been, TRAIL, 0)).astype(np.uint8)
    return View("cells", cells, "The grid: orange is the agent, light blue its way so far")


class GridState(NamedTuple):
    where: jax.Array  # a row of the table
    time: jax.Array


@family(
    "grid/NAME",
    options={"limit": int, "scale": 1.0},
    arguments={name: f"{rules.line}; ?limit=100, ?scale=100" for name, rules in TASKS.items()},
    noun="task of grid",
    preset=preset,
    view=view,
    host=False,
)
class GridTask:
    """`limit`: steps after which an episode is truncated, 0 for none (default: the task's own).
    `scale`: all rewards are multiplied by it. It is a part of the task, which is a part of a run's
    state: the compiled program is the same for all of them."""

    def __init__(self, name: str, limit: int | None = None, scale: float = 1.0):
        rules = TASKS[name]
        self.limit = rules.limit if limit is None else limit
        if not 0 <= self.limit < 2**31:
            raise IdrlError(f"grid limit={limit}: a number of steps, or 0 for none.")
        if not (math.isfinite(np.float32(scale)) and np.float32(scale) > 0):
            raise IdrlError(f"grid scale={scale}: a positive number.")
        self.name, self.scale, self.sparse = f"grid/{name}", scale, rules.sparse
        self.num_actions = rules.actions
        self.table = lay_out(rules)
        self.obs_shape: tuple[int, ...] = self.table.obs.shape[1:]
        # the last outcome takes what rounding leaves
        self._below = self.table.chance.cumsum(-1)[..., :-1].astype(np.float32)
        self._reward = self.table.reward.astype(np.float32)

    def task(self, key: jax.Array) -> jax.Array:
        """The factor of all rewards."""
        return jnp.float32(self.scale)

    def reset(self, task: jax.Array, key: jax.Array) -> tuple[GridState, jax.Array]:
        starts = jnp.asarray(self.table.starts)
        where = starts[0]
        if len(starts) > 1:
            where = starts[jax.random.randint(key, (), 0, len(starts))]
        state = GridState(where, jnp.int32(0))
        return state, self._observe(state)

    def _observe(self, state: GridState) -> jax.Array:
        return jnp.asarray(self.table.obs)[state.where]

    def step(self, task, state: GridState, action, key) -> tuple[GridState, Step]:
        which = jnp.int32(0)
        if self._below.shape[-1]:
            below = jnp.asarray(self._below)[state.where, action]
            which = (jax.random.uniform(key) >= below).sum()
        here = (state.where, action, which)
        ended = jnp.asarray(self.table.ends)[here]
        reward = jnp.asarray(self._reward)[here] * task
        state = GridState(jnp.asarray(self.table.state)[here], state.time + 1)
        late = state.time >= self.limit if self.limit else jnp.bool_(False)
        return state, Step(self._observe(state), reward, ended, late & ~ended)

    def optimal_return(self, task: jax.Array | None = None) -> float | None:
        """The largest expected undiscounted return of an episode; None where there is none."""
        found = best_return(self.table, self.limit)
        return None if found is None else self.scale * found

    def exact(self, gamma: float) -> tuple[np.ndarray, np.ndarray]:
        """Q* and Var Z of the optimal policy, `[S, A]` each, by rows of `table`; a time limit is no
        part of them."""
        q, variance = exact(self.table, gamma)
        return self.scale * q, self.scale**2 * variance
