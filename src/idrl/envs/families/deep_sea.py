"""DeepSea (Osband et al. 2019), after the rules of bsuite.

An N×N grid, entered at the top left; every step sinks one row and goes one column left or right.
Right costs 0.01/N; going right in the last column pays 1. Only N rights in a row get there, and
which of the two actions is "right" is drawn anew for every cell. Dithering needs about 2^N
episodes.

With a gamble there is a third action in every cell, which goes left and is paid N(0, gamble²): it
teaches nothing and leads nowhere, but an episode still ends after N steps.
"""

from __future__ import annotations

import math
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
LEFT, RIGHT, GAMBLE = range(3)
DIVER, TRAIL, TREASURE = 5, 6, 8  # colours of a board's cells


@discrete
def preset(task: PresetContext) -> Settings:
    settings = deep_exploration(task.size, episodes=1000 if task.size <= 20 else 2500)
    # Three standard deviations of a gamble beside returns of 0 to 1.
    spread = 3 * task.options["gamble"]
    settings["kinds"]["categorical"] |= {"v_min": 0.0 - spread, "v_max": 1.0 + spread}
    return settings


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
    raw_return: jax.Array | None = None  # without the noise of rewards, where they have any
    gambles: jax.Array | None = None  # so far, where there is a gamble


@family(
    "deep_sea/N",
    options={"slip": 0.0, "stochastic": False, "gamble": 0.0},
    summary="N×N grid, one reward after N right moves; ?slip=0.05, ?stochastic=1, ?gamble=1.0",
    preset=preset,
    view=view,
    board=board,
    host=False,
)
class DeepSea:
    """`slip`: the executed action flips with that probability. `stochastic`: bsuite's windy form,
    where right fails with probability 1/N and the two corners of the last row pay N(0, 1) noise.
    `gamble`: the standard deviation of what a third action pays, which moves as left does (and,
    slipping, as right); 0: there are two."""

    def __init__(
        self, size: int = 10, slip: float = 0.0, stochastic: bool = False, gamble: float = 0.0
    ):
        if not 2 <= size <= 200:
            raise IdrlError(f"deep_sea/{size}: the size is a whole number from 2 to 200.")
        if not 0 <= slip < 0.5:
            raise IdrlError(f"deep_sea slip={slip}: a probability from 0 to below 0.5.")
        if not (math.isfinite(gamble) and gamble >= 0):
            raise IdrlError(f"deep_sea gamble={gamble}: a standard deviation, at least 0.")
        self.size, self.slip, self.stochastic = size, slip, bool(stochastic)
        self.gamble, self.num_actions = gamble, 3 if gamble else 2
        self.name = f"deep_sea/{size}"
        self.obs_shape: tuple[int, ...] = (size, size)

    def task(self, key: jax.Array) -> jax.Array:
        """Which action goes right, `[N, N]`; with a gamble what each means, `[N, N, 3]`."""
        if self.gamble:
            meanings = jnp.tile(jnp.arange(3), (self.size, self.size, 1))
            return jax.random.permutation(key, meanings, axis=2, independent=True)
        return jax.random.bernoulli(key, 0.5, (self.size, self.size)).astype(jnp.int32)

    def meanings(self, task: jax.Array) -> np.ndarray:
        """`[N, N, A]`: what each action means in a cell, LEFT, RIGHT or GAMBLE."""
        found = np.asarray(task)
        return found if self.gamble else (found[..., None] == np.arange(2)).astype(np.int32)

    def reset(self, task: jax.Array, key: jax.Array) -> tuple[DeepSeaState, jax.Array]:
        paid = jnp.float32(0) if self.stochastic or self.gamble else None
        gambles = jnp.int32(0) if self.gamble else None
        state = DeepSeaState(jnp.int32(0), jnp.int32(0), jnp.bool_(False), paid, gambles)
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
        here = task[state.row, state.column]
        chose_right = here[action] == RIGHT if self.gamble else action == here
        right = chose_right
        if self.slip:
            key, slip_key = jax.random.split(key)
            right = right ^ jax.random.bernoulli(slip_key, self.slip)
        reward = jnp.where(right & (state.column == last), 1.0, 0.0)
        reward -= jnp.where(right, MOVE_COST / self.size, 0.0)
        moved, info = right, {}
        if state.raw_return is not None:
            info["raw_return"] = state.raw_return + reward
        gambles = None
        if self.gamble:
            key, gamble_key = jax.random.split(key)
            gambled = here[action] == GAMBLE
            reward += jnp.where(gambled, self.gamble * jax.random.normal(gamble_key), 0.0)
            gambles = state.gambles + gambled
            info["gambles"] = gambles / (state.row + 1)  # share of the episode's actions
        if self.stochastic:
            wind_key, noise_key = jax.random.split(key)
            moved = right & ~jax.random.bernoulli(wind_key, 1 / self.size)
            corner = (state.row == last) & ((state.column == 0) | (state.column == last))
            reward += jnp.where(corner, jax.random.normal(noise_key), 0.0)
        # A right that the wind stops stays in its column.
        shift = jnp.where(right, moved.astype(jnp.int32), -1)
        # bsuite's "bad episode" is a wrong choice while still on the diagonal.
        bad = state.bad | ((state.row == state.column) & ~chose_right)
        column = jnp.clip(state.column + shift, 0, last)
        state = DeepSeaState(state.row + 1, column, bad, info.get("raw_return"), gambles)
        ended = state.row == self.size
        info = {"bad": bad.astype(jnp.float32)} | info
        return state, Step(self._observe(state), reward, ended, jnp.bool_(False), info)

    def optimal_return(self, task: jax.Array | None = None) -> float:
        """Expected undiscounted return of the best policy (bsuite's formula for its windy form)."""
        if self.stochastic and not self.slip:
            return (1 - 1 / self.size) ** (self.size - 1) - MOVE_COST
        return float(self.exact(1.0)[0][0, 0].max())

    def exact(self, gamma: float) -> tuple[np.ndarray, np.ndarray]:
        """Q* and the variance of the optimal policy's return, `[N, N, A]` each, with actions in the
        order of LEFT, RIGHT and GAMBLE (`meanings` has an agent's own). Row by row from the last,
        on the first two moments; of equal actions the policy takes the first, so it never gambles.
        """
        size, wind = self.size, 1 / self.size if self.stochastic else 0.0
        paid = np.full(size, -MOVE_COST / size)  # by a move right, by column
        paid[-1] += 1
        mean, second = np.zeros((2, size))  # of the row below
        q, variance = np.zeros((2, size, size, self.num_actions))
        for row in reversed(range(size)):
            noise2 = np.zeros(size)
            if self.stochastic and row == size - 1:
                noise2[[0, -1]] = 1.0

            def moves(here: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                """By left and right, a moment of what lies below."""
                beyond = np.append(here[1:], here[-1])
                return np.insert(here[:-1], 0, here[0]), (1 - wind) * beyond + wind * here

            (left, right), (left2, right2) = moves(gamma * mean), moves(gamma**2 * second)
            right2 = paid**2 + 2 * paid * right + right2
            right = paid + right
            slip, stay = self.slip, 1 - self.slip
            goes_left = stay * left + slip * right, stay * left2 + slip * right2 + noise2
            goes_right = stay * right + slip * left, stay * right2 + slip * left2 + noise2
            gambles = goes_left[0], goes_left[1] + self.gamble**2
            each = (goes_left, goes_right, gambles)[: self.num_actions]
            q[row] = np.stack([first for first, _ in each], -1)
            moments = np.stack([second for _, second in each], -1)
            variance[row] = np.maximum(moments - q[row] ** 2, 0)
            mean, best = q[row].max(-1), q[row].argmax(-1)
            second = np.take_along_axis(moments, best[:, None], -1)[:, 0]
        return q, variance
