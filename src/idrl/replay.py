"""Uniform replay: a ring of rows, one row a vector step, every observation stored once.

A transition is row t together with the observation of row t+1. Rows that are no transition exist
(after a time limit, the row that holds the last observation): they are marked and never drawn.
How many rows were written is the caller's vector-step counter, so nothing is counted twice.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from idrl.networks.heads import Transition

# A row that is no transition is drawn again, this often; the one before it is always a transition.
_REDRAWS = 4


class Row(NamedTuple):
    """What E environments did in one vector step; in the replay, `[T, E, ...]`."""

    obs: jax.Array  # [E, ...]
    action: jax.Array  # [E]
    reward: jax.Array  # [E]
    terminated: jax.Array  # [E]
    valid: jax.Array  # [E] false where this row is no transition
    mask: jax.Array | None = None  # [E, K] which heads may learn from it


def empty(row: Row, rows: int) -> Row:
    """A replay of `rows` rows shaped like `row` (arrays or their shapes)."""
    return jax.tree.map(lambda x: jnp.zeros((rows, *x.shape), x.dtype), row)


def add(replay: Row, row: Row, written: jax.Array) -> Row:
    """Write row number `written` (from 0), over the oldest once the ring is full."""
    cursor = written % replay.action.shape[0]
    return jax.tree.map(
        lambda ring, x: jax.lax.dynamic_update_index_in_dim(ring, x, cursor, 0), replay, row
    )


def sample(replay: Row, key: jax.Array, written: jax.Array, batch: int, gamma: float) -> Transition:
    """`batch` transitions, uniform over those in a replay that `written` rows went into."""
    time, env = sample_indices(replay, key, written, batch)
    return gather(replay, time, env, gamma)


def sample_indices(replay: Row, key: jax.Array, written: jax.Array, batch: int):
    """Rows and environments `[batch]`; the newest row has no successor yet and is left out."""
    rows, envs = replay.action.shape
    usable = jnp.minimum(written, rows) - 1
    uniform = jax.random.uniform(key, (2, _REDRAWS, batch))
    age = jnp.minimum((uniform[0] * usable).astype(jnp.int32), usable - 1)
    time = (written - 2 - age) % rows
    env = jnp.minimum((uniform[1] * envs).astype(jnp.int32), envs - 1)
    valid = replay.valid[time, env]
    pick = valid.argmax(0)[None]
    time = jnp.take_along_axis(time, pick, 0)[0]
    env = jnp.take_along_axis(env, pick, 0)[0]
    # All redraws failed (chance: the share of such rows to the 4th power): the row before a dead
    # one is a transition, unless the dead one is the oldest; then the row after it is.
    before, after = (time - 1) % rows, (time + 1) % rows
    oldest = time == (written - 1 - usable) % rows
    return jnp.where(valid.any(0), time, jnp.where(oldest, after, before)), env


def gather(replay: Row, time: jax.Array, env: jax.Array, gamma: float) -> Transition:
    following = (time + 1) % replay.action.shape[0]
    return Transition(
        s_tm1=replay.obs[time, env],
        a_tm1=replay.action[time, env],
        r_t=replay.reward[time, env],
        discount_t=gamma * (1.0 - replay.terminated[time, env]),
        s_t=replay.obs[following, env],
        mask=None if replay.mask is None else replay.mask[time, env],
    )
