"""What our own games share: sticky actions, a time limit, random bits.

They are written for GPUs, where a step costs its number of kernels, not its arithmetic. So a state
is a few arrays of fixed shape, everything that can be on a board is updated at once by `where`, no
operation gathers, scatters, sorts or loops, and a step draws its random bits in one call. What a
board is drawn from ends in sums over things (bits of words, `any`): XLA computes these once, where
it would compute plain arithmetic again for every cell.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs.base import Step

SIDE = 10
STILL, LEFT, UP, RIGHT, DOWN, FIRE = range(6)
BACK, FORTH = np.array([LEFT, UP]), np.array([RIGHT, DOWN])  # in x and in y
WORDS = 2  # of random bits that a game gets in every frame
NONE = 2**31 - 1  # a limit that is never reached: frames are counted in 32 bits


class Turn(NamedTuple):
    """What a frame led to."""

    state: Any
    reward: jax.Array  # a whole number
    over: jax.Array


class GameRules(Protocol):
    """A game's rules: pure functions of its state."""

    num_actions: int
    channels: int

    def start(self) -> Any:
        """The state that every episode begins in."""
        ...

    def play(self, state: Any, action: jax.Array, frame: jax.Array, bits: jax.Array) -> Turn:
        """The next frame. `frame` counts those before it; `bits` are `WORDS` random uint32."""
        ...

    def observe(self, state: Any) -> jax.Array:
        """Booleans `[SIDE, SIDE, channels]`."""
        ...


class BoardState(NamedTuple):
    game: Any
    last_action: jax.Array
    frame: jax.Array  # frames since the episode began


class BoardGame:
    """A game of ours behind the protocol of environments. Its task is its time limit."""

    def __init__(self, name: str, rules: GameRules, sticky: float, limit: int):
        self.name, self.rules, self.limit = name, rules, limit or NONE
        self.num_actions = rules.num_actions
        self.obs_shape: tuple[int, ...] = (SIDE, SIDE, rules.channels)
        self._repeats = below(sticky)

    def task(self, key: jax.Array) -> jax.Array:
        """Frames after which an episode is truncated."""
        return jnp.int32(self.limit)

    def reset(self, task: jax.Array, key: jax.Array) -> tuple[BoardState, jax.Array]:
        game = self.rules.start()
        return BoardState(game, jnp.int32(STILL), jnp.int32(0)), self._observe(game)

    def _observe(self, game: Any) -> jax.Array:
        return self.rules.observe(game).astype(jnp.uint8)

    def step(
        self, task: jax.Array, state: BoardState, action: jax.Array, key: jax.Array
    ) -> tuple[BoardState, Step]:
        bits = jax.random.bits(key, (1 + WORDS,), jnp.uint32)
        action = jnp.where(bits[0] < self._repeats, state.last_action, action).astype(jnp.int32)
        game, reward, over = self.rules.play(state.game, action, state.frame, bits[1:])
        frame = state.frame + 1
        step = Step(self._observe(game), reward.astype(jnp.float32), over, frame >= task)
        return BoardState(game, action, frame), step


def below(chance: float) -> jax.Array:
    """A random uint32 is below this with probability `chance`, to within 2⁻³²."""
    return jnp.uint32(min(round(chance * 2**32), 2**32 - 1))


def draw(bits: jax.Array, options: jax.Array) -> jax.Array:
    """A whole number below `options`, which are at most 8, of a uint32; its lowest four bits are
    free for other uses. The chances of two numbers differ by at most 2⁻²⁸."""
    return (((bits >> 4).astype(jnp.int32) * options) >> 28).astype(jnp.int32)
