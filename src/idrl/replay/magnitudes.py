"""How large the rewards and returns of a run are, as far as its replay was told."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Magnitudes(NamedTuple):
    """There is no constant in it: rewards that are all multiplied by a power of two multiply it by
    the same, to the bit."""

    gain: jax.Array  # [E] the largest discounted sum of rewards that ends now
    loss: jax.Array  # [E] the smallest
    square: jax.Array  # the mean of squared rewards in the run so far, or about a replay of it
    largest: jax.Array  # |gain| or |loss| at its largest; it fades over as many rows
    lowest: jax.Array  # the smallest reward ever, or 0
    highest: jax.Array  # the largest reward ever, or 0

    def after(self, reward, terminated, valid, gamma: float, count: jax.Array, rows: int):
        """With one row of `[E]` more, as one of `count`, of which the replay holds at most `rows`;
        `valid`: see `ring.Row`."""
        reward = jnp.where(valid, reward, 0.0)
        # Not the sum since an episode began: costs on the way would hide what its end pays.
        gain = jnp.where(valid, gamma * jnp.maximum(self.gain, 0.0) + reward, 0.0)
        loss = jnp.where(valid, gamma * jnp.minimum(self.loss, 0.0) + reward, 0.0)
        size = jnp.maximum(jnp.abs(gain), jnp.abs(loss)).max()
        lowest = jnp.minimum(self.lowest, reward.min())
        highest = jnp.maximum(self.highest, reward.max())
        # Squares are of rewards as shares of the power of two above the largest: squares of very
        # large or small rewards would be no numbers.
        before, now = _above(self.lowest, self.highest), _above(lowest, highest)
        square = jnp.where(self.square > 0, self.square * (before / now) ** 2, 0.0)
        return Magnitudes(
            jnp.where(terminated, 0.0, gain),
            jnp.where(terminated, 0.0, loss),
            square + (((reward / now) ** 2).mean() - square) / count,
            jnp.maximum(self.largest * (1.0 - 1.0 / rows), size),
            lowest,
            highest,
        )

    @property
    def typical(self) -> jax.Array:
        """The root mean square of the rewards."""
        return jnp.sqrt(self.square) * _above(self.lowest, self.highest)

    def bounds(self, gamma: float) -> tuple[jax.Array, jax.Array]:
        """No return of such rewards is below the first or above the second: an episode that ends
        gets nothing more, one that goes on the smallest or the largest reward for ever."""
        low, high = (
            jnp.where(reward == 0, 0.0, reward / (1.0 - gamma))
            for reward in (self.lowest, self.highest)
        )
        return low, high


def nothing(envs: int) -> Magnitudes:
    return Magnitudes(jnp.zeros(envs), jnp.zeros(envs), *(jnp.float32(0) for _ in range(4)))


def above(x: jax.Array) -> jax.Array:
    """The power of two above a number that is positive."""
    return jnp.ldexp(jnp.float32(1), jnp.frexp(x)[1])


def _above(lowest: jax.Array, highest: jax.Array) -> jax.Array:
    largest = jnp.maximum(-lowest, highest)
    return jnp.where(largest > 0, above(largest), 1.0)
