"""Draw numbers in proportion to priorities: a sum tree, but wide.

Every node holds the sum of its 128 children, so a million leaves are three levels deep: a draw
looks at three rows of 128 numbers instead of walking twenty levels one by one, and all draws of a
batch go side by side. Sums are recomputed from the children at every change, so they never drift.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

FAN = 128


class Priorities(NamedTuple):
    levels: tuple[jax.Array, ...]  # leaves first, the last of at most 128 entries
    largest: jax.Array  # of all that were ever set: what new entries get


def empty(leaves: int) -> Priorities:
    """All zero: nothing can be drawn yet."""
    levels, count = [], leaves
    while True:
        padded = math.ceil(count / FAN) * FAN
        levels.append(jnp.zeros(padded))
        if padded == FAN:
            return Priorities(tuple(levels), jnp.float32(1.0))
        count = padded // FAN


def assign(priorities: Priorities, where: jax.Array, values: jax.Array) -> Priorities:
    """Set the leaves `where` `[M]`; of several values for one leaf the largest stays, in whatever
    order a device does them."""
    levels = list(priorities.levels)
    levels[0] = levels[0].at[where].set(0.0).at[where].max(values)
    for depth in range(1, len(levels)):
        where = where // FAN
        sums = levels[depth - 1].reshape(-1, FAN)[where].sum(-1)
        levels[depth] = levels[depth].at[where].set(sums)
    return priorities._replace(levels=tuple(levels))


def draw(priorities: Priorities, key: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """`count` leaves and their probabilities, one from each of as many equal parts of the total
    (Schaul et al. 2016). In a tree of zeros there is nothing to draw: probabilities are NaN."""
    total = priorities.levels[-1].sum()
    uniform = (jnp.arange(count) + jax.random.uniform(key, (count,))) / count
    leaf, own = find(priorities, uniform * total)
    return leaf, own / total


def find(priorities: Priorities, rest: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The leaves `[M]` where the running sum of priorities passes `rest`, and their priorities.

    Whatever rounding makes of `rest` on the way down, only children above 0 are taken, and a node
    above 0 has one: a leaf of priority 0 is never found.
    """
    node, index = jnp.zeros(rest.shape, jnp.int32), jnp.arange(FAN)
    for level in reversed(priorities.levels):
        children = level.reshape(-1, FAN)[node]
        upto = children.cumsum(-1)
        there = children > 0
        first = jnp.where(there & (upto > rest[:, None]), index, FAN).min(-1)
        last = jnp.where(there, index, 0).max(-1)  # where rounding lets none pass
        child = jnp.minimum(first, last)
        own = jnp.take_along_axis(children, child[:, None], -1)[:, 0]
        rest -= jnp.take_along_axis(upto, child[:, None], -1)[:, 0] - own
        node = node * FAN + child
    return node, own
