"""How much a block holds: a run is looked at, saved and stopped between two of them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from idrl.agents import Agent
from idrl.replay import ring


def block_of_a_second(agent: Agent, seeds: int) -> int:
    """Iterations of about a second, from the operations that one update takes."""
    size = agent.spec.learning.batch_size
    obs: Any = jax.ShapeDtypeStruct((size, *agent.obs_shape), jnp.float32)
    number: Any = jax.ShapeDtypeStruct((size,), jnp.float32)
    action: Any = jax.eval_shape(lambda: agent.blank_actions(size))
    state = jax.eval_shape(agent.init, jax.random.key(0), obs)
    batch = ring.Transition(obs, action, number, number, obs)
    cost = jax.jit(agent.learn).lower(state, batch).cost_analysis() or {}
    work = max(float(cost.get("flops", 0.0)), 1e5) * seeds
    rate = 2e10 if jax.default_backend() == "cpu" else 5e12  # operations a second, roughly
    return int(np.clip(rate / work, 1, 8192))
