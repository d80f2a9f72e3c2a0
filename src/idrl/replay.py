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

_ACTION, _REWARD, _TERMINATED, _VALID, _MASK = range(5)


class Row(NamedTuple):
    """What E environments did in one vector step."""

    obs: jax.Array  # [E, ...]
    action: jax.Array  # [E]
    reward: jax.Array  # [E]
    terminated: jax.Array  # [E]
    valid: jax.Array  # [E] false where this row is no transition
    mask: jax.Array | None = None  # [E, K] which heads may learn from it


class Replay(NamedTuple):
    """T rows. All numbers of a row lie side by side in one array: one gather reads them, and a
    column of its own would be copied whole at every step, because XLA fuses the write of an array
    that is read once into the read, which then needs the array from before as well."""

    obs: jax.Array  # [T, E, ...]
    facts: jax.Array  # [T, E, 4 + K] float32: action, reward, terminated, valid, mask


def _pack(row: Row) -> Replay:
    columns = [row.action, row.reward, row.terminated, row.valid]
    facts = jnp.stack([column.astype(jnp.float32) for column in columns], -1)
    if row.mask is not None:
        facts = jnp.concatenate([facts, row.mask.astype(jnp.float32)], -1)
    return Replay(row.obs, facts)


def empty(row: Row, rows: int) -> Replay:
    """A replay of `rows` rows shaped like `row` (arrays or their shapes)."""
    return jax.tree.map(lambda x: jnp.zeros((rows, *x.shape), x.dtype), jax.eval_shape(_pack, row))


def add(replay: Replay, row: Row, written: jax.Array) -> Replay:
    """Write row number `written` (from 0), over the oldest once the ring is full."""
    cursor = written % replay.facts.shape[0]
    return jax.tree.map(
        lambda ring, x: jax.lax.dynamic_update_index_in_dim(ring, x, cursor, 0),
        replay,
        _pack(row),
    )


def sample(
    replay: Replay, key: jax.Array, written: jax.Array, batch: int, gamma: float
) -> Transition:
    """`batch` transitions, uniform over those in a replay that `written` rows went into."""
    time, env = sample_indices(replay, key, written, batch)
    return gather(replay, time, env, gamma)


def sample_indices(replay: Replay, key: jax.Array, written: jax.Array, batch: int):
    """Rows and environments `[batch]`; the newest row has no successor yet and is left out."""
    rows, envs = replay.facts.shape[:2]
    usable = jnp.minimum(written, rows) - 1
    uniform = jax.random.uniform(key, (2, _REDRAWS, batch))
    age = jnp.minimum((uniform[0] * usable).astype(jnp.int32), usable - 1)
    time = (written - 2 - age) % rows
    env = jnp.minimum((uniform[1] * envs).astype(jnp.int32), envs - 1)
    valid = replay.facts[time, env, _VALID] > 0
    pick = valid.argmax(0)[None]
    time = jnp.take_along_axis(time, pick, 0)[0]
    env = jnp.take_along_axis(env, pick, 0)[0]
    # All redraws failed (chance: the share of such rows to the 4th power): the row before a dead
    # one is a transition, unless the dead one is the oldest; then the row after it is.
    before, after = (time - 1) % rows, (time + 1) % rows
    oldest = time == (written - 1 - usable) % rows
    return jnp.where(valid.any(0), time, jnp.where(oldest, after, before)), env


def gather(replay: Replay, time: jax.Array, env: jax.Array, gamma: float) -> Transition:
    following = (time + 1) % replay.facts.shape[0]
    facts = replay.facts[time, env]
    return Transition(
        s_tm1=replay.obs[time, env],
        a_tm1=facts[:, _ACTION].astype(jnp.int32),
        r_t=facts[:, _REWARD],
        discount_t=gamma * (1.0 - facts[:, _TERMINATED]),
        s_t=replay.obs[following, env],
        mask=facts[:, _MASK:] if facts.shape[1] > _MASK else None,
    )
