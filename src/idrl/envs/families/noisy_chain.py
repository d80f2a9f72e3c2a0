"""A chain with a distraction: is noise mistaken for something to learn?

N states in a row, entered at 0. Three actions, whose meaning is drawn anew for every state: forward
(+1), back (−1, not below 0), and gamble (stay, and be paid N(0, noise²)). Reaching state N−1 pays 1
and ends the episode; 3N steps cut it short. A gamble teaches nothing and pays nothing on average,
but its value stays uncertain to whoever has seen few of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs.base import Step
from idrl.envs.tabular import Mdp
from idrl.errors import IdrlError

FORWARD, BACK, GAMBLE = range(3)


class NoisyChainState(NamedTuple):
    where: jax.Array
    time: jax.Array
    gambles: jax.Array


class NoisyChain:
    """`noise`: the standard deviation of what a gamble pays."""

    num_actions = 3

    def __init__(self, size: int = 10, noise: float = 1.0):
        if not 2 <= size <= 1000:
            raise IdrlError(f"noisy_chain/{size}: the size is a whole number from 2 to 1000.")
        if not (math.isfinite(noise) and noise >= 0):
            raise IdrlError(f"noisy_chain noise={noise}: a standard deviation, at least 0.")
        self.size, self.noise, self.limit = size, noise, 3 * size
        self.name = f"noisy_chain/{size}"
        self.obs_shape: tuple[int, ...] = (size,)

    def task(self, key: jax.Array) -> jax.Array:
        """`[N, 3]`: what each action means (forward, back, gamble), per state."""
        meanings = jnp.tile(jnp.arange(3), (self.size, 1))
        return jax.random.permutation(key, meanings, axis=1, independent=True)

    def reset(self, task: jax.Array, key: jax.Array) -> tuple[NoisyChainState, jax.Array]:
        state = NoisyChainState(jnp.int32(0), jnp.int32(0), jnp.int32(0))
        return state, self._observe(state)

    def _observe(self, state: NoisyChainState) -> jax.Array:
        return (jnp.arange(self.size) == state.where).astype(jnp.uint8)

    def step(self, task, state: NoisyChainState, action, key) -> tuple[NoisyChainState, Step]:
        meaning = task[state.where, action]
        gambled = meaning == GAMBLE
        move = jnp.where(gambled, 0, jnp.where(meaning == FORWARD, 1, -1))
        state = NoisyChainState(
            jnp.clip(state.where + move, 0, self.size - 1),
            state.time + 1,
            state.gambles + gambled,
        )
        solved = state.where == self.size - 1
        paid = self.noise * jax.random.normal(key)
        reward = jnp.where(solved, 1.0, jnp.where(gambled, paid, 0.0))
        info = {
            "bad": (~solved).astype(jnp.float32),  # 0 where the goal was reached
            "gambles": state.gambles / state.time,  # share of the episode's actions
            "raw_return": solved.astype(jnp.float32),  # without what the gambles paid
        }
        truncated = (state.time >= self.limit) & ~solved
        return state, Step(self._observe(state), reward, solved, truncated, info)

    def optimal_return(self, task: jax.Array | None = None) -> float:
        """Expected undiscounted return of the best policy: the goal is always within 3N steps, and
        whatever is gambled on the way pays 0 on average."""
        return 1.0

    def mdp(self) -> Mdp:
        """The same task with its actions in order (forward, back, gamble), for exact values.

        Its time limit is left away, as the agents' bootstrap does.
        """
        size = self.size
        move = np.zeros((size, 3, size))
        for s in range(size):
            move[s, FORWARD, min(s + 1, size - 1)] = 1
            move[s, BACK, max(s - 1, 0)] = 1
            move[s, GAMBLE, s] = 1
        reward, ends, noise = np.zeros((3, size, 3))
        reward[size - 2, FORWARD] = ends[size - 2, FORWARD] = 1
        ends[size - 1] = 1  # never acted in
        noise[: size - 1, GAMBLE] = self.noise
        return Mdp(np.eye(size), np.eye(size)[0], move, reward, noise, ends)
