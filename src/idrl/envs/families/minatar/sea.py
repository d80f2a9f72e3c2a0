"""What swims in seaquest: things with a place and a way, each packed into a number."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs.families.minatar.boards import SIDE

# bits of the fields of a packed thing, the lowest first
_FIELDS = (2, 1, 4, 4, 3, 4)
_SHIFTS = tuple(sum(_FIELDS[:i]) for i in range(len(_FIELDS)))
_PAIRS, _HALVES = np.arange(SIDE // 2), np.array([0, 16])
_NOWHERE = 255


class Swimmer(NamedTuple):
    """Arrays of the same shape."""

    kind: jax.Array  # 0 for nothing
    heads_right: jax.Array
    x: jax.Array
    y: jax.Array
    wait: jax.Array | int = 0  # frames until it moves, of what does not move in every frame
    reload: jax.Array | int = 0  # frames until it shoots

    def next_x(self) -> jax.Array:
        return self.x + 2 * self.heads_right - 1

    def last_x(self) -> jax.Array:
        return self.x + 1 - 2 * self.heads_right

    def at(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return (self.kind > 0) & (self.x == x) & (self.y == y)

    def or_where(self, here: jax.Array, other: Swimmer) -> Swimmer:
        """`other` in the places `here`."""
        return Swimmer(*(jnp.where(here, new, old) for old, new in zip(self, other, strict=True)))


def pack(things: Swimmer) -> jax.Array:
    """Whatever has left the board is dropped."""
    there = (things.kind > 0) & is_column(things.x)
    packed = sum(jnp.asarray(each) << shift for each, shift in zip(things, _SHIFTS, strict=True))
    return jnp.where(there, packed, 0)


def unpack(packed: jax.Array) -> Swimmer:
    pairs = zip(_SHIFTS, _FIELDS, strict=True)
    return Swimmer(*((packed >> shift) & ((1 << bits) - 1) for shift, bits in pairs))


def push(packed: jax.Array, enters: jax.Array, new: Swimmer) -> jax.Array:
    """Of two, where `enters`: the older makes room for a new one, which comes last."""
    pushed = jnp.where(np.arange(2) == 0, packed[::-1], pack(new))
    return jnp.where(enters, pushed, packed)


def is_column(x: jax.Array) -> jax.Array:
    return (x >= 0) & (x < SIDE)


def spot(x: jax.Array, y: jax.Array, there: jax.Array) -> jax.Array:
    """Where something is, as one number."""
    return jnp.where(there & is_column(x), (y << 4) | x, _NOWHERE)


def rows_of(spots: jax.Array) -> jax.Array:
    """`[..., N]` → the rows `[..., SIDE]` of a board, a bit for each column, with all that is at
    these spots."""
    # Two rows share a number: half as many sums over all spots.
    spots = spots[..., None, :]
    pairs = jnp.where((spots >> 5) == _PAIRS[:, None], 1 << (spots & 31), 0)
    words = jax.lax.reduce(pairs, np.int32(0), jax.lax.bitwise_or, (pairs.ndim - 1,))
    rows = (words[..., None] >> _HALVES) & (2**SIDE - 1)
    return rows.reshape(*spots.shape[:-2], SIDE)
