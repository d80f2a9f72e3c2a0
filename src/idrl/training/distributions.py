"""What the rule sees on a fixed batch of states, all of it rather than its ranges.

The states are drawn once, from what random play stored before learning starts, and kept in the
training state: whatever changes in these numbers is then the agent, not where it went.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from idrl.agents import Agent
from idrl.agents.telling import told
from idrl.replay import ring as ring

_DECIDED = ("regret", "info_gain", "ratio")
STATES = 64  # the paper's figures have 32; with two actions that leaves 3 values above 95%


class Masked(NamedTuple):
    """States of an environment that says which actions are allowed. Others are observations alone,
    as they were before there were masks: so their checkpoints still fit."""

    obs: jax.Array  # [64, ...]
    allowed: jax.Array  # [64, A]


def blank(obs: jax.Array, actions: int = 0) -> jax.Array | Masked:
    """Room for the states of one seed, whose E environments show `obs` `[E, ...]` and say which of
    so many `actions` are allowed, if any."""
    states = jnp.zeros((STATES, *obs.shape[1:]), obs.dtype)
    return Masked(states, jnp.zeros((STATES, actions), bool)) if actions else states


def draw(
    replay: ring.Replay, key: jax.Array, written: int, stack: ring.Stack, actions: int = 0
) -> jax.Array | Masked:
    """`[64, ...]` observations in which an action followed, of the `written` rows in `replay`."""
    time, env = ring.sample_indices(replay, key, jnp.int32(written), STATES, 1, stack)
    obs = ring.observations(replay, time, env, stack)
    return Masked(obs, ring.allowed(replay, time, env, actions)) if actions else obs


def describe(agent: Agent, params, prior, states, key, step) -> dict[str, Any]:
    """By the exploration rule, `[64, A]` each; what means something for the agent's parts, and the
    return's variance where a head estimates it. With masks `allowed` is beside them: what is said
    of other actions means nothing."""
    always, nothing = jnp.ones(STATES, bool), agent.blank_memory(STATES)
    masked = isinstance(states, Masked)
    obs, allowed = states if masked else (states, None)
    considered = agent.consider(
        agent.spec.explore, params, prior, obs, always, nothing, key, step, allowed
    )
    decision, variance = considered.decision, considered.beliefs.return_variance
    names = told(agent.spec)
    return {
        **({"sigma2": decision.sigma**2} if "sigma" in names else {}),
        **({"rho2": decision.rho2} if "rho2" in names else {}),
        **({} if variance is None else {"return_variance": variance}),
        **{name: getattr(decision, name) for name in _DECIDED if name in names},
        **({"allowed": allowed} if masked else {}),
    }
