"""The shapes of what a run with environments on the host computes with, before any is there."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from idrl.training.batching import over_seeds
from idrl.training.hosted import fleet as fleets
from idrl.training.hosted.env_state import HostEnvState, Shown
from idrl.training.hosted.host_replay import whole
from idrl.training.learner import EXAMPLE_STEPS
from idrl.training.program import TrainState, acting_view

# `program` is a `Hosted` everywhere.


def begun_from(program: Any) -> tuple[Any, Any]:
    """Keys of the seeds, and the observations of `random_examples`: what a state begins with."""
    env = program.env
    shape = (program.seeds, EXAMPLE_STEPS, *env.obs_shape)
    examples = program._placed(jax.ShapeDtypeStruct(shape, env.obs_dtype))
    return program._key_shapes(), examples


def state_like(program: Any) -> TrainState:
    """Of a whole state; the number of the journal's actions is unknown."""
    state = jax.eval_shape(program._begin.jitted, *begun_from(program))
    count = program.seeds * program.envs
    journal = fleets.open_journal(program.env, np.zeros(count, np.int64))
    shape, dtype = (None, *journal.actions.shape[1:]), journal.actions.dtype
    journal = journal._replace(actions=SimpleNamespace(shape=shape, dtype=dtype))  # type: ignore[arg-type]
    fleet = fleets.blank(program.env, count)
    if program.host is not None:
        state = whole(program.host, state, program.host.like)
    return state._replace(worlds=HostEnvState(state.worlds, fleet, journal))


def sums_like(program: Any, state: TrainState, shown: Shown) -> Any:
    """Of what a block sums: what the acting rule saw, and the metrics of updates. `state`, which is
    the device's part, and `shown` may be shapes."""
    if program.sums is not None:  # traced once
        return program.sums
    explore = functools.partial(program._decide, program.agent.spec.explore)
    decide = over_seeds(explore, (0, 0, 0, None))
    _, diagnostics, _ = jax.eval_shape(decide, acting_view(state), state.worlds, shown, 0)
    batches = None if program.host is None else program.host.batches_like(state)
    updates = functools.partial(program._updates, count=1)
    _, metrics = jax.eval_shape(updates, state, 2, 0, batches=batches)
    one = jax.ShapeDtypeStruct((program.seeds,), np.float32)
    program.sums = tuple(dict.fromkeys(told, one) for told in (diagnostics, metrics))
    return program.sums
