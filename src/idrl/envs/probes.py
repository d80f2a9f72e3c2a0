"""Probe environments: tasks so small that the right values are known by hand.

If an agent learns one and fails the next, the difference between the two names the broken part.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from idrl.envs.base import Step


class _Probe:
    num_actions = 2
    obs_shape: tuple[int, ...] = (1,)

    @property
    def name(self) -> str:
        return type(self).__name__

    def task(self, key):
        return ()


class OneReward(_Probe):
    """One state, one step, reward 1 whatever the action: Q = 1. Tests the loss."""

    def reset(self, task, key):
        return jnp.int32(0), jnp.ones(1)

    def step(self, task, state, action, key):
        return state, Step(jnp.ones(1), jnp.float32(1), jnp.bool_(True), jnp.bool_(False))


class SeesContext(_Probe):
    """One step; the observation ±1 is the reward: Q(s) = s. Tests the trunk."""

    def reset(self, task, key):
        obs = jnp.where(jax.random.bernoulli(key), 1.0, -1.0)[None]
        return obs, obs

    def step(self, task, state, action, key):
        return state, Step(state, state[0], jnp.bool_(True), jnp.bool_(False))


class TwoSteps(_Probe):
    """Two states in a row, reward 1 at the end: Q = γ, then 1. Tests bootstrapping."""

    def reset(self, task, key):
        return jnp.int32(0), jnp.zeros(1)

    def step(self, task, state, action, key):
        state = state + 1
        reward = jnp.where(state == 2, 1.0, 0.0)
        return state, Step(jnp.ones(1) * state, reward, state == 2, jnp.bool_(False))


class ActionMatters(_Probe):
    """One state, one step, reward +1 for action 1 and -1 for action 0. Tests the policy."""

    def reset(self, task, key):
        return jnp.int32(0), jnp.ones(1)

    def step(self, task, state, action, key):
        reward = jnp.where(action == 1, 1.0, -1.0)
        return state, Step(jnp.ones(1), reward, jnp.bool_(True), jnp.bool_(False))


class ActionSeesContext(_Probe):
    """One step; reward +1 if the action matches the observation, else -1. Tests both at once."""

    def reset(self, task, key):
        side = jax.random.bernoulli(key).astype(jnp.int32)
        return side, (2.0 * side - 1)[None]

    def step(self, task, state, action, key):
        reward = jnp.where(action == state, 1.0, -1.0)
        obs = (2.0 * state - 1)[None]
        return state, Step(obs, reward, jnp.bool_(True), jnp.bool_(False))


class Truncates(_Probe):
    """Reward 1 a step for ever, cut after 3 steps by a time limit: Q = 1/(1-γ), not 1+γ+γ²."""

    limit = 3

    def reset(self, task, key):
        return jnp.int32(0), jnp.ones(1)

    def step(self, task, state, action, key):
        state = state + 1
        return state, Step(jnp.ones(1), jnp.float32(1), jnp.bool_(False), state >= self.limit)


class CoinFlip(_Probe):
    """One step; action 0 pays 0, action 1 pays ±1 by a coin: Var Z = (0, 1). Tests the noise."""

    def reset(self, task, key):
        return jnp.int32(0), jnp.ones(1)

    def step(self, task, state, action, key):
        coin = jnp.where(jax.random.bernoulli(key), 1.0, -1.0)
        reward = jnp.where(action == 1, coin, 0.0)
        return state, Step(jnp.ones(1), reward, jnp.bool_(True), jnp.bool_(False))


PROBES = (
    OneReward, SeesContext, TwoSteps, ActionMatters, ActionSeesContext, Truncates, CoinFlip,
)  # fmt: skip
