"""A trained agent to act with: numpy in, numpy out."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from idrl.agents import Agent
from idrl.config import RunConfig
from idrl.errors import IdrlError
from idrl.ids import Decision


class Policy:
    """One seed's weights and the rules of its agent."""

    def __init__(self, config: RunConfig, agent: Agent, params: Any, prior: Any, seed: int):
        self.config, self.agent, self.seed = config, agent, seed
        self.params, self.prior = params, prior
        self._evaluate = jax.jit(lambda *args: self._choose(agent.spec.evaluate, False, *args))
        self._explore = jax.jit(lambda *args: self._choose(agent.spec.explore, True, *args))

    def _choose(self, rule, noisy, params, prior, obs, mask, key):
        n = obs.shape[0]
        steps = jnp.int32(self.config.training.steps)  # schedules at their end
        first, memory = jnp.ones(n, bool), jnp.zeros(n, jnp.int32)
        return self.agent.choose(
            rule, params, prior, obs, first, memory, key, steps, mask, noisy=noisy
        )[0]

    def predict(self, obs: Any, mask: Any = None) -> np.ndarray:
        """Actions by the agent's evaluation rule (greedy on the mean of the heads; Bootstrapped
        DQN: their vote), for one observation or a batch. `mask` is true where allowed."""
        return self._call(self._evaluate, obs, mask, 0).action

    def explain(self, obs: Any, mask: Any = None, seed: int = 0) -> Decision:
        """The full `Decision` of the rule it explores with. `seed` is for rules that draw."""
        return self._call(self._explore, obs, mask, seed)

    def _call(self, function, obs, mask, seed) -> Decision:
        obs = np.asarray(obs)
        shape = self.agent.obs_shape
        if obs.shape[obs.ndim - len(shape) :] != shape or obs.ndim not in (
            len(shape),
            len(shape) + 1,
        ):
            raise IdrlError(
                f"the agent takes observations of shape {shape}, or a batch of them, "
                f"not {obs.shape}."
            )
        single = obs.ndim == len(shape)
        if single:
            obs, mask = obs[None], None if mask is None else np.asarray(mask)[None]
        if obs.dtype == np.float64:
            obs = obs.astype(np.float32)
        decision = function(self.params, self.prior, obs, mask, jax.random.key(seed))
        return Decision(*(np.asarray(x)[0] if single else np.asarray(x) for x in decision))
