"""Whether a run can fit into memory, from its config alone: asked before anything is allocated."""

from __future__ import annotations

import math
import os

import jax
import numpy as np

from idrl.agents import Agent
from idrl.config import RunConfig
from idrl.errors import IdrlError


def check_memory(agent: Agent, config: RunConfig) -> None:
    """Refuse what is sure not to fit. The estimate is low: an observation's number may take more
    than a byte, and what a computation needs on the way is left out."""
    seen = math.prod(agent.obs_shape)
    learning, evaluation = config.learning, config.evaluation
    parts = {
        "learning.replay_capacity": learning.replay_capacity * (seen + 16),
        "learning.batch_size": learning.batch_size * 2 * seen,
        "training.envs": config.training.envs * seen,
        "evaluation.envs": evaluation.envs * seen,
        "evaluation.steps": evaluation.steps * 9,
        "the agent's networks": 20 * parameters(agent),  # online, target, best, and Adam's two
    }
    name, size = max(parts.items(), key=lambda part: part[1])
    need, have = sum(parts.values()) * config.seeds, memory()
    if need > have:
        raise IdrlError(
            f"this run needs at least {_shown(need)} of memory and there are {_shown(have)}; most "
            f"of it, {_shown(size * config.seeds)}, is for {name} of {config.seeds} seeds."
        )


def parameters(agent: Agent) -> int:
    """Numbers in the agent's networks, without making them."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes(agent)[0]))


def shapes(agent: Agent):
    """The shapes of parameters and priors."""
    example = jax.ShapeDtypeStruct((1, *agent.obs_shape), np.float32)
    try:
        state = jax.eval_shape(agent.init, jax.random.key(0), example)
    except (OverflowError, TypeError, ValueError) as error:  # more than an array can have
        line = " ".join(str(error).split())[:200]
        raise IdrlError(f"the agent's networks cannot be built: {line}.") from None
    return state.params, state.prior


def memory() -> int:
    """Bytes that a run's arrays could take at most."""
    devices = jax.local_devices()
    limits = [(device.memory_stats() or {}).get("bytes_limit", 0) for device in devices]
    if all(limits):
        return sum(limits)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _shown(size: float) -> str:
    return f"{size / 1e9:,.3g} GB" if size < 1e15 else f"{size / 1e9:.0e} GB"
