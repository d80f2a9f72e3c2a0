"""Noise on rewards, and the return without it, which is what bsuite scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from idrl.envs.base import Step


class Task(NamedTuple):
    inner: Any
    # A number of the task, not of the program: all noise levels share one compiled program.
    noise: jax.Array


class NoisyRewardState(NamedTuple):
    inner: Any
    raw_return: jax.Array


class Noisy:
    """Adds N(0, noise²) to every reward. `info["raw_return"]` is the episode's sum without it."""

    def __init__(self, name: str, inner: Any, noise: float = 0.0, optimum: float | None = None):
        self.name, self.inner, self.noise, self.optimum = name, inner, noise, optimum
        self.num_actions: int = inner.num_actions
        self.obs_shape: tuple[int, ...] = inner.obs_shape

    def task(self, key: jax.Array) -> Task:
        return Task(self.inner.task(key), jnp.float32(self.noise))

    def optimal_return(self, task: Task | None = None) -> float | None:
        return self.optimum

    def reset(self, task: Task, key: jax.Array) -> tuple[NoisyRewardState, jax.Array]:
        state, obs = self.inner.reset(task.inner, key)
        return NoisyRewardState(state, jnp.float32(0)), obs

    def step(
        self, task: Task, state: NoisyRewardState, action, key
    ) -> tuple[NoisyRewardState, Step]:
        step_key, noise_key = jax.random.split(key)
        inner, step = self.inner.step(task.inner, state.inner, action, step_key)
        raw_return = state.raw_return + step.reward
        reward = step.reward + task.noise * jax.random.normal(noise_key)
        info = {**step.info, "raw_return": raw_return}
        return NoisyRewardState(inner, raw_return), step._replace(reward=reward, info=info)
