"""How unsure an agent is of every state, where there are few enough to ask about them all."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from idrl import ids
from idrl.agents import Agent
from idrl.envs.base import mask_of
from idrl.training.ahead import quick


class Survey:
    """σ over the states that an environment lists, averaged over the actions. It lists them by
    `mapped_states()`: observations `[N, ...]`, or None. Without it, an ensemble or
    discrete actions nothing is asked, nor where only some actions are allowed in a state."""

    def __init__(self, agent: Agent, env: Any):
        listed = getattr(env, "mapped_states", None)
        all_count = isinstance(agent.actions, int) and mask_of(env) is None
        self.states = listed() if listed is not None and all_count and agent.k > 1 else None

        def one(params, prior, states):
            _, sigma2 = ids.moments(agent.beliefs(params, prior, states).q_heads)
            return (sigma2**0.5).mean(-1)

        self._ask = jax.jit(jax.vmap(one, (0, 0, None)), compiler_options=quick())

    def due(self, number: int) -> bool:
        """At which evaluations: all of the first 32, then 16 in every doubling, so that a long run
        does not fill the disk with maps."""
        return self.states is not None and number % max(1, 1 << number.bit_length() >> 5) == 0

    def sigma(self, params: Any, prior: Any) -> np.ndarray:
        """`[S, N]`."""
        return np.asarray(self._ask(params, prior, self.states))
