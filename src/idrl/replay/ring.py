"""Replay: a ring of rows, one row a vector step, every observation stored once; where observations
are stacks of frames, every frame.

A transition is row t together with the observation of row t+1, or with n-step returns rows t to
t+n-1 with that of row t+n; all are as likely, or as likely as their priorities say. Rows that are
no transition exist (after a time limit, the row that holds the last observation): they are marked
and never drawn. Which actions an observation allows is stored in its own row, like the observation,
and read from the row that a return bootstraps from.
How many rows were written is the caller's vector-step counter, so nothing is counted twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from idrl.networks.heads import Transition
from idrl.replay import sum_tree as trees
from idrl.replay.magnitudes import Magnitudes, nothing
from idrl.replay.sum_tree import Priorities

# A row that is no transition is drawn again, this often; the one before it is always a transition.
_REDRAWS = 4

_ACTION, _REWARD, _TERMINATED, _VALID, _MASK = range(5)

_BITS = 24  # allowed actions in one column: whole numbers up to 2²⁴ are exact in float32


class Stack(NamedTuple):
    """How an observation is made of frames: the newest `depth` of its episode, newest last.

    What is missing before the first is zeros, or with `repeat_first` the first once more.
    """

    depth: int = 1  # 1: an observation is what is stored
    repeat_first: bool = False

    def push(self, stack: jax.Array, frame: jax.Array, first: jax.Array) -> jax.Array:
        """Observations `[E, ..., depth]` after `frame` `[E, ...]`; `first` `[E]` marks starts."""
        if self.depth == 1:
            return frame
        new = frame[..., None]
        start = jnp.broadcast_to(new, stack.shape) if self.repeat_first else jnp.zeros_like(stack)
        first = first.reshape(-1, *[1] * frame.ndim)
        return jnp.concatenate([jnp.where(first, start, stack)[..., 1:], new], -1)

    def newest(self, stack: jax.Array) -> jax.Array:
        return stack if self.depth == 1 else stack[..., -1]


WHOLE = Stack()


def least_rows(n_step: int, depth: int = 1) -> int:
    """Rows that a replay needs: two transitions start in it, of which one may be none. `depth` is
    that of the observations' `Stack`."""
    return n_step + depth + 1


class Row(NamedTuple):
    """What E environments did in one vector step."""

    obs: jax.Array  # [E, ...] (the newest frame of a stack)
    action: jax.Array  # [E], or [E, D] of continuous actions
    reward: jax.Array  # [E]
    terminated: jax.Array  # [E]
    valid: jax.Array  # [E] false where this row is no transition
    mask: jax.Array | None = None  # [E, K] which heads may learn from it
    allowed: jax.Array | None = None  # [E, A] actions that obs allows; None: always all


class Address(NamedTuple):
    """Where the frames of B observations are, whose rows the host keeps (`replay/host.py`)."""

    times: jax.Array  # [B, depth], newest first
    there: jax.Array  # [B, depth] false where the episode has no frame so far back
    env: jax.Array  # [B]


class Replay(NamedTuple):
    """T rows. All numbers of a row lie side by side in one array: one gather reads them, and a
    column of its own would be copied whole at every step, because XLA fuses the write of an array
    that is read once into the read, which then needs the array from before as well."""

    # [T, E, ...], the newest frame where observations are stacks; None in programs for the device
    # where the host keeps them
    obs: jax.Array | None
    # [T, E, 4 + K] float32: action, reward, terminated, valid, mask; behind these all but the first
    # of an action's several numbers, or ⌈A/24⌉ that say which actions are allowed
    facts: jax.Array
    priorities: Priorities | None = None  # T·E leaves; 0 for what is no transition (yet)
    magnitudes: Magnitudes | None = None  # of all rows ever, where they are asked for


def _pack(row: Row) -> Replay:
    action = row.action if row.action.ndim > 1 else row.action[:, None]
    columns = [action[:, 0], row.reward, row.terminated, row.valid]
    parts = [jnp.stack([column.astype(jnp.float32) for column in columns], -1)]
    if row.mask is not None:
        parts.append(row.mask.astype(jnp.float32))
    if row.allowed is not None:
        parts.append(_to_numbers(row.allowed))
    if action.shape[1] > 1:
        parts.append(action[:, 1:])
    return Replay(row.obs, jnp.concatenate(parts, -1))


def columns(actions: int) -> int:
    """How many numbers of a row say which of so many actions are allowed."""
    return -(-actions // _BITS)


def _to_numbers(allowed: jax.Array) -> jax.Array:
    """`[E, A]` booleans as the bits of `[E, columns(A)]` whole numbers."""
    envs, actions = allowed.shape
    bits = jnp.pad(allowed, ((0, 0), (0, columns(actions) * _BITS - actions)))
    powers = 2 ** jnp.arange(_BITS)
    return (bits.reshape(envs, -1, _BITS) * powers).sum(-1).astype(jnp.float32)


def empty(row: Row, rows: int, prioritised: bool = False, measured: bool = False) -> Replay:
    """A replay of `rows` rows shaped like `row` (arrays or their shapes)."""
    replay = jax.tree.map(
        lambda x: jnp.zeros((rows, *x.shape), x.dtype), jax.eval_shape(_pack, row)
    )
    envs = replay.facts.shape[1]
    if measured:
        replay = replay._replace(magnitudes=nothing(envs))
    return replay._replace(priorities=trees.empty(rows * envs)) if prioritised else replay


def add(
    replay: Replay, row: Row, written: jax.Array, n_step: int = 1, stack: Stack = WHOLE,
    gamma: float = 1.0,
) -> Replay:  # fmt: skip
    """Write row number `written` (from 0), over the oldest once the ring is full.

    New transitions get the largest priority so far, as soon as the row they end with is there;
    those whose stack would reach behind the oldest row have none. `gamma` is for the magnitudes.
    """
    rows, envs = replay.facts.shape[:2]
    cursor = written % rows
    packed = _pack(row)
    facts = jax.lax.dynamic_update_index_in_dim(replay.facts, packed.facts, cursor, 0)
    obs = replay.obs
    if obs is not None:
        obs = jax.lax.dynamic_update_index_in_dim(obs, packed.obs, cursor, 0)
    seen = replay.magnitudes
    if seen is not None:
        count = jnp.clip(written + 1, 1, rows)  # on the host -1 is written first, which is no row
        seen = seen.after(row.reward, row.terminated, row.valid, gamma, count, rows)
    if replay.priorities is None:
        return Replay(obs, facts, magnitudes=seen)
    complete = (written - n_step) % rows
    fresh = replay.priorities.largest * facts[complete, :, _VALID]
    env = jnp.arange(envs)
    lost = (cursor + jnp.arange(stack.depth)) % rows
    where = jnp.concatenate([(lost[:, None] * envs + env).reshape(-1), complete * envs + env])
    values = jnp.concatenate([jnp.zeros(stack.depth * envs), fresh])
    return Replay(obs, facts, trees.assign(replay.priorities, where, values), seen)


def sample(
    replay: Replay, key: jax.Array, written: jax.Array, batch: int, gamma: float, n_step: int = 1,
    importance: float | jax.Array = 1.0, stack: Stack = WHOLE, dims: int = 0, actions: int = 0,
) -> Transition:  # fmt: skip
    """`batch` transitions out of a replay that `written` rows went into; `dims` and `actions`: see
    `gather`.

    With priorities each comes with its importance weight: 1 over its probability to the power
    `importance` (β), as a share of the batch's largest.
    """
    if replay.priorities is None:
        time, env = sample_indices(replay, key, written, batch, n_step, stack)
        return gather(replay, time, env, gamma, n_step, stack, dims, actions)
    where, prob = trees.draw(replay.priorities, key, batch)
    envs = replay.facts.shape[1]
    weight = (prob.min() / prob) ** importance
    drawn = gather(replay, where // envs, where % envs, gamma, n_step, stack, dims, actions)
    return drawn._replace(weight=weight, where=where)


def reprioritise(
    replay: Replay, where: jax.Array | None, td_priority: jax.Array, power: float
) -> Replay:
    """Give the transitions at `where` priorities of `td_priority` to the `power` (α)."""
    assert replay.priorities is not None
    assert where is not None
    # Nothing is ever quite forgotten; a number gone wrong must not spoil the sums, nor one below
    # 0, whose power is NaN.
    values = (jnp.nan_to_num(jnp.maximum(td_priority, 0), posinf=1e6) + 1e-6) ** power
    tree = trees.assign(replay.priorities, where, values)
    return replay._replace(
        priorities=tree._replace(largest=jnp.maximum(tree.largest, values.max()))
    )


def with_unit(replay: Replay, factor: jax.Array, power: float) -> Replay:
    """With new transitions as surprising as if TD errors had been `factor` times as large. Those of
    before are when they are drawn again: to rewrite all would copy the tree at every update. So a
    factor below 1 changes nothing: the reward that made the unit grow would be drawn last."""
    assert replay.priorities is not None
    largest = replay.priorities.largest * jnp.maximum(factor, 1.0) ** power
    return replay._replace(priorities=replay.priorities._replace(largest=largest))


def sample_indices(
    replay: Replay, key: jax.Array, written: jax.Array, batch: int, n_step: int = 1,
    stack: Stack = WHOLE,
):  # fmt: skip
    """Rows and environments `[batch]`; the newest rows have no successor yet and are left out, and
    so are the oldest, whose earlier frames were written over."""
    rows, envs = replay.facts.shape[:2]
    usable = jnp.minimum(written, rows - (stack.depth - 1)) - n_step
    uniform = jax.random.uniform(key, (2, _REDRAWS, batch))
    age = jnp.minimum((uniform[0] * usable).astype(jnp.int32), usable - 1)
    time = (written - 1 - n_step - age) % rows
    env = jnp.minimum((uniform[1] * envs).astype(jnp.int32), envs - 1)
    valid = replay.facts[time, env, _VALID] > 0
    pick = valid.argmax(0)[None]
    time = jnp.take_along_axis(time, pick, 0)[0]
    env = jnp.take_along_axis(env, pick, 0)[0]
    # All redraws failed (chance: the share of such rows to the 4th power): the row before a dead
    # one is a transition, unless the dead one is the oldest; then the row after it is.
    before, after = (time - 1) % rows, (time + 1) % rows
    oldest = time == (written - n_step - usable) % rows
    return jnp.where(valid.any(0), time, jnp.where(oldest, after, before)), env


def gather(
    replay: Replay, time: jax.Array, env: jax.Array, gamma: float, n_step: int = 1,
    stack: Stack = WHOLE, dims: int = 0, actions: int = 0,
) -> Transition:  # fmt: skip
    """The transitions that start at `time` and `env` `[B]`. Of continuous actions `dims` is how
    many numbers they have; 0 is for whole numbers. `actions` is how many the rows say are allowed
    or not; 0: they say nothing.

    An n-step return ends early where its episode does: with nothing behind a termination, with the
    last observation's value behind a time limit. An observation that allows no action has no value:
    nothing can follow it.
    """
    rows = replay.facts.shape[0]
    first = facts = replay.facts[time, env]
    reward = facts[:, _REWARD]
    discount = gamma * (1.0 - facts[:, _TERMINATED])
    end = time + 1
    for taken in range(1, n_step):
        facts = replay.facts[end % rows, env]
        # A row that is no transition is the last observation before a time limit.
        goes_on = (discount > 0) & (facts[:, _VALID] > 0) & (end - time == taken)
        reward += jnp.where(goes_on, discount * facts[:, _REWARD], 0.0)
        discount = jnp.where(goes_on, discount * gamma * (1.0 - facts[:, _TERMINATED]), discount)
        end = jnp.where(goes_on, end + 1, end)
    end_mask = first.shape[1] - columns(actions) - max(dims - 1, 0)
    allowed_t = None
    if actions:
        allowed_t = allowed(replay, end % rows, env, actions)
        discount = jnp.where(allowed_t.any(-1), discount, 0.0)
    action = first[:, _ACTION].astype(jnp.int32)
    if dims:
        action = jnp.concatenate([first[:, _ACTION : _ACTION + 1], first[:, end_mask:]], 1)
    return Transition(
        s_tm1=observations(replay, time, env, stack),
        a_tm1=action,
        r_t=reward,
        discount_t=discount,
        s_t=observations(replay, end % rows, env, stack),
        mask=first[:, _MASK:end_mask] if end_mask > _MASK else None,
        allowed_t=allowed_t,
    )


def allowed(replay: Replay, time: jax.Array, env: jax.Array, actions: int) -> jax.Array:
    """`[B, A]`: which of so many actions the observations at rows `time` allow. Only where rows
    say so; then actions are whole numbers, and these columns the last."""
    numbers = replay.facts[time, env, -columns(actions) :].astype(jnp.int32)
    bits = numbers[..., None] >> jnp.arange(_BITS) & 1
    return bits.reshape(len(numbers), -1)[:, :actions] > 0


def observations(replay: Replay, time: jax.Array, env: jax.Array, stack: Stack) -> Any:
    """`[B, ...]`: what was seen at rows `time` by environments `env`. Where the host keeps it, its
    `Address`."""
    if stack.depth == 1 and replay.obs is not None:
        return replay.obs[time, env]
    address = _address(replay, time, env, stack)
    if replay.obs is None:
        return address
    return stacked(replay.obs[address.times, env[:, None]], address.there, stack)


def stacked(frames: jax.Array, there: jax.Array, stack: Stack) -> jax.Array:
    """Observations of the frames `[B, depth, ...]` at an `Address`."""
    if stack.depth == 1:
        return frames[:, 0]
    if not stack.repeat_first:
        frames = jnp.where(there.reshape(*there.shape, *[1] * (frames.ndim - 2)), frames, 0)
    return jnp.moveaxis(frames[:, ::-1], 1, -1)


def _address(replay: Replay, time: jax.Array, env: jax.Array, stack: Stack) -> Address:
    rows = replay.facts.shape[0]
    back = jnp.arange(stack.depth)
    before = (time[:, None] - back[1:]) % rows
    # A row that is no transition is the last of its episode: with the next one another begins.
    same = replay.facts[before, env[:, None], _VALID] > 0
    length = jnp.cumprod(same, -1, dtype=jnp.int32).sum(-1, keepdims=True)  # frames before this one
    return Address((time[:, None] - jnp.minimum(back, length)) % rows, back <= length, env)
