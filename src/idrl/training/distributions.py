"""What the rule sees on a fixed batch of states, all of it rather than its ranges.

The states are drawn once, from what random play stored before learning starts, and kept in the
training state: whatever changes in these numbers is then the agent, not where it went.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from idrl import replay as ring
from idrl.agents import Agent

STATES = 64  # the paper's figures have 32; with two actions that leaves 3 values above 95%


def blank(obs: jax.Array) -> jax.Array:
    """Room for the states of one seed, whose E environments show `obs` `[E, ...]`."""
    return jnp.zeros((STATES, *obs.shape[1:]), obs.dtype)


def draw(replay: ring.Replay, key: jax.Array, written: int, stack: ring.Stack) -> jax.Array:
    """`[64, ...]` observations in which an action followed, of the `written` rows in `replay`."""
    time, env = ring.sample_indices(replay, key, jnp.int32(written), STATES, 1, stack)
    return ring.observations(replay, time, env, stack)


def describe(agent: Agent, params, prior, states, key, step) -> dict[str, Any]:
    """By the exploration rule, `[64, A]` each; no return variance where no head estimates it."""
    always, nothing = jnp.ones(STATES, bool), agent.blank_memory(STATES)
    decision, _, beliefs = agent.consider(
        agent.spec.explore, params, prior, states, always, nothing, key, step
    )
    variance = beliefs.return_variance
    return {
        "sigma2": decision.sigma**2,
        "rho2": decision.rho2,
        **({} if variance is None else {"return_variance": variance}),
        "regret": decision.regret,
        "info_gain": decision.info_gain,
        "ratio": decision.ratio,
    }
