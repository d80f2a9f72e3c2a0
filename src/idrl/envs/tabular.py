"""Finite MDPs whose true values are computed exactly, to check what agents learn."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs.base import Step

FOREVER = 1_000_000


class Mdp(NamedTuple):
    """S states, A actions. Rewards are drawn from N(reward, noise²)."""

    obs: np.ndarray  # [S, D]; states that share a row cannot be told apart
    start: np.ndarray  # [S] probabilities
    move: np.ndarray  # [S, A, S] probabilities
    reward: np.ndarray  # [S, A]
    noise: np.ndarray  # [S, A]
    ends: np.ndarray  # [S, A] probability that the episode terminates with the action
    limit: int = FOREVER  # steps until truncation


class TabularState(NamedTuple):
    where: jax.Array
    time: jax.Array
    raw_return: jax.Array  # without the noise of rewards


class Tabular:
    """An environment that plays one of several `Mdp`s of the same size; a seed's task picks."""

    def __init__(self, name: str, *mdps: Mdp):
        self.name, self.mdps = name, mdps
        self.num_actions = mdps[0].reward.shape[1]
        self.obs_shape: tuple[int, ...] = mdps[0].obs.shape[1:]

    def task(self, key: jax.Array) -> Mdp:
        which = jax.random.randint(key, (), 0, len(self.mdps))
        return jax.tree.map(
            lambda *each: jnp.stack([jnp.asarray(x) for x in each])[which], *self.mdps
        )

    def reset(self, task: Mdp, key: jax.Array) -> tuple[TabularState, jax.Array]:
        where = jax.random.categorical(key, jnp.log(task.start))
        return TabularState(where, jnp.int32(0), jnp.float32(0)), task.obs[where].astype(
            jnp.float32
        )

    def step(self, task: Mdp, state: TabularState, action, key) -> tuple[TabularState, Step]:
        move_key, noise_key, end_key = jax.random.split(key, 3)
        here = (state.where, action)
        reward = task.reward[here] + task.noise[here] * jax.random.normal(noise_key)
        where = jax.random.categorical(move_key, jnp.log(task.move[here]))
        ended = jax.random.uniform(end_key) < task.ends[here]
        raw_return = (state.raw_return + task.reward[here]).astype(jnp.float32)
        state = TabularState(where, state.time + 1, raw_return)
        return state, Step(
            task.obs[where].astype(jnp.float32), reward.astype(jnp.float32), ended,
            state.time >= task.limit, {"raw_return": raw_return},
        )  # fmt: skip

    def optimal_return(self, task: Mdp) -> float | None:
        """Of the best policy that sees the observation alone."""
        from idrl.envs.optimum import best_return  # which needs `Mdp` from here

        return best_return(task)


def exact(mdp: Mdp, gamma: float, sweeps: int = 2_000) -> tuple[np.ndarray, np.ndarray]:
    """Q* and the variance of the return of the optimal policy, `[S, A]` each.

    By dynamic programming on the first two moments of Z = R + γ·Z' (Z' = 0 after termination).
    Time limits are no part of the value.
    """
    q = second = np.zeros(mdp.reward.shape)
    going = 1.0 - mdp.ends
    for _ in range(sweeps):
        best = q.argmax(1)
        value, value2 = q.max(1), second[np.arange(len(q)), best]
        ahead, ahead2 = going * (mdp.move @ value), going * (mdp.move @ value2)
        second = mdp.reward**2 + mdp.noise**2 + 2 * gamma * mdp.reward * ahead + gamma**2 * ahead2
        q = mdp.reward + gamma * ahead
    return q, np.maximum(second - q**2, 0)
