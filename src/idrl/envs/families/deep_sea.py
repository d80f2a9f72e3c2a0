"""DeepSea (Osband et al. 2019), after the rules of bsuite.

An N×N grid, entered at the top left; every step sinks one row and goes one column left or right.
Right costs 0.01/N; going right in the last column pays 1. Only N rights in a row get there, and
which of the two actions is "right" is drawn anew for every cell. Dithering needs about 2^N
episodes.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs.base import Step
from idrl.envs.declaring import family
from idrl.envs.presets import PresetContext, Settings, deep_exploration, discrete
from idrl.envs.views import View
from idrl.errors import IdrlError

MOVE_COST = 0.01
LARGEST_MAP = 50  # sides: 1,275 places
DIVER, TRAIL, TREASURE = 5, 6, 8  # colours of a board's cells


@discrete
def preset(task: PresetContext) -> Settings:
    return deep_exploration(task.size, episodes=1000 if task.size <= 20 else 2500)


def view(seen: np.ndarray) -> View:
    """`[T, N, N]` one-hot places → cells with the way behind the agent."""
    here = seen.astype(bool)
    been = np.logical_or.accumulate(here, axis=0) & ~here
    cells = np.where(here, DIVER, np.where(been, TRAIL, 0)).astype(np.uint8)
    corner = cells[:, -1, -1]
    cells[:, -1, -1] = np.where(corner == 0, TREASURE, corner)
    about = "The sea: orange is the agent, light blue its way so far, yellow the treasure"
    return View("cells", cells, about)


def board(values: np.ndarray) -> np.ndarray:
    """`[…, N(N+1)/2]` of `DeepSea.mapped_states` → `[…, N, N]`, NaN where no way leads."""
    side = int((np.sqrt(8 * values.shape[-1] + 1) - 1) / 2)
    maps = np.full((*values.shape[:-1], side, side), np.nan)
    maps[..., *np.tril_indices(side)] = values
    return maps


class DeepSeaState(NamedTuple):
    row: jax.Array
    column: jax.Array
    bad: jax.Array  # left the diagonal by its own choice
    raw_return: jax.Array | None = None  # without the noise of the corners, where they have any


@family(
    "deep_sea/N",
    options={"slip": 0.0, "stochastic": False},
    summary="N×N grid, one reward after N right moves; ?slip=0.05, ?stochastic=1",
    preset=preset,
    view=view,
    board=board,
    host=False,
)
class DeepSea:
    """`slip`: the executed action flips with that probability. `stochastic`: bsuite's windy form,
    where right fails with probability 1/N and the two corners of the last row pay N(0, 1) noise."""

    num_actions = 2

    def __init__(self, size: int = 10, slip: float = 0.0, stochastic: bool = False):
        if not 2 <= size <= 200:
            raise IdrlError(f"deep_sea/{size}: the size is a whole number from 2 to 200.")
        if not 0 <= slip < 0.5:
            raise IdrlError(f"deep_sea slip={slip}: a probability from 0 to below 0.5.")
        self.size, self.slip, self.stochastic = size, slip, bool(stochastic)
        self.name = f"deep_sea/{size}"
        self.obs_shape: tuple[int, ...] = (size, size)

    def task(self, key: jax.Array) -> jax.Array:
        """Which action goes right, per cell."""
        return jax.random.bernoulli(key, 0.5, (self.size, self.size)).astype(jnp.int32)

    def reset(self, task: jax.Array, key: jax.Array) -> tuple[DeepSeaState, jax.Array]:
        paid = jnp.float32(0) if self.stochastic else None
        state = DeepSeaState(jnp.int32(0), jnp.int32(0), jnp.bool_(False), paid)
        return state, self._observe(state)

    def _observe(self, state: DeepSeaState) -> jax.Array:
        """One-hot cell; nothing below the last row. A byte a cell keeps the replay small."""
        cells = jnp.arange(self.size)
        return ((cells == state.row)[:, None] & (cells == state.column)[None, :]).astype(jnp.uint8)

    def mapped_states(self) -> np.ndarray | None:
        """All places that can be reached, row by row, as they are observed; None if too many."""
        if self.size > LARGEST_MAP:
            return None
        rows, columns = np.tril_indices(self.size)  # every step sinks: no column beyond the row
        seen = np.zeros((len(rows), *self.obs_shape), np.uint8)
        seen[np.arange(len(rows)), rows, columns] = 1
        return seen

    def step(self, task, state: DeepSeaState, action, key) -> tuple[DeepSeaState, Step]:
        last = self.size - 1
        chose_right = action == task[state.row, state.column]
        right = chose_right
        if self.slip:
            key, slip_key = jax.random.split(key)
            right = right ^ jax.random.bernoulli(slip_key, self.slip)
        reward = jnp.where(right & (state.column == last), 1.0, 0.0)
        reward -= jnp.where(right, MOVE_COST / self.size, 0.0)
        moved, info = right, {}
        if self.stochastic:
            wind_key, noise_key = jax.random.split(key)
            moved = right & ~jax.random.bernoulli(wind_key, 1 / self.size)
            before = 0.0 if state.raw_return is None else state.raw_return
            info["raw_return"] = before + reward
            corner = (state.row == last) & ((state.column == 0) | (state.column == last))
            reward += jnp.where(corner, jax.random.normal(noise_key), 0.0)
        # A right that the wind stops stays in its column.
        shift = jnp.where(right, moved.astype(jnp.int32), -1)
        # bsuite's "bad episode" is a wrong choice while still on the diagonal.
        bad = state.bad | ((state.row == state.column) & ~chose_right)
        column = jnp.clip(state.column + shift, 0, last)
        state = DeepSeaState(state.row + 1, column, bad, info.get("raw_return"))
        ended = state.row == self.size
        info = {"bad": bad.astype(jnp.float32)} | info
        return state, Step(self._observe(state), reward, ended, jnp.bool_(False), info)

    def optimal_return(self, task: jax.Array | None = None) -> float:
        """Expected undiscounted return of the best policy (bsuite's formula for its windy form)."""
        if self.stochastic and not self.slip:
            return (1 - 1 / self.size) ** (self.size - 1) - MOVE_COST
        wind = 1 / self.size if self.stochastic else 0.0
        values = np.zeros(self.size + 2)  # by column, padded on both sides
        for _ in range(self.size):
            here = values[1:-1]
            right = (1 - wind) * np.append(here[1:], here[-1]) + wind * here
            right -= MOVE_COST / self.size
            right[-1] += 1
            left = np.insert(here[:-1], 0, here[0])
            values[1:-1] = np.maximum(
                (1 - self.slip) * right + self.slip * left,
                (1 - self.slip) * left + self.slip * right,
            )
        return float(values[1])
