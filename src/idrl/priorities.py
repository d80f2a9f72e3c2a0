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
    (Schaul et al. 2016)."""
    total = priorities.levels[-1].sum()
    rest = (jnp.arange(count) + jax.random.uniform(key, (count,))) / count * total
    node = jnp.zeros(count, jnp.int32)
    for level in reversed(priorities.levels):
        children = level.reshape(-1, FAN)[node]
        upto = children.cumsum(-1)
        # The first child whose cumulative sum passes `rest` has a priority above 0. Where rounding
        # lets none pass, it is the last one that has.
        last = FAN - 1 - (children > 0)[:, ::-1].argmax(-1)
        child = jnp.minimum((upto <= rest[:, None]).sum(-1), last)
        own = jnp.take_along_axis(children, child[:, None], -1)[:, 0]
        rest -= jnp.take_along_axis(upto, child[:, None], -1)[:, 0] - own
        node = node * FAN + child
    return node, own / total
