"""How large the rewards and returns of a run are, as far as its replay was told."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Magnitudes(NamedTuple):
    """There is no constant in it: rewards that are all multiplied by a power of two multiply it by
    the same, to the bit."""

    so_far: jax.Array  # [E] the discounted sum of an episode's rewards up to now
    square: jax.Array  # the mean of squared rewards, over about as many rows as the replay has
    largest: jax.Array  # |so_far| at its largest; it fades over as many
    lowest: jax.Array  # the smallest reward ever, or 0
    highest: jax.Array  # the largest reward ever, or 0

    def after(self, reward, terminated, valid, gamma: float, count: jax.Array) -> Magnitudes:
        """With one row of `[E]` more, as one of `count`; `valid`: see `ring.Row`."""
        reward = jnp.where(valid, reward, 0.0)
        so_far = jnp.where(valid, gamma * self.so_far + reward, 0.0)
        share = 1.0 / count
        return Magnitudes(
            jnp.where(terminated, 0.0, so_far),
            self.square + ((reward**2).mean() - self.square) * share,
            jnp.maximum(self.largest * (1.0 - share), jnp.abs(so_far).max()),
            jnp.minimum(self.lowest, reward.min()),
            jnp.maximum(self.highest, reward.max()),
        )

    def bounds(self, gamma: float) -> tuple[jax.Array, jax.Array]:
        """No return of such rewards is below the first or above the second: an episode that ends
        gets nothing more, one that goes on the smallest or the largest reward for ever."""
        low, high = (
            jnp.where(reward == 0, 0.0, reward / (1.0 - gamma))
            for reward in (self.lowest, self.highest)
        )
        return low, high


def nothing(envs: int) -> Magnitudes:
    return Magnitudes(jnp.zeros(envs), *(jnp.float32(0) for _ in range(4)))
