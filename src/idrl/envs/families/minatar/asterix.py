"""Asterix by MinAtar's rules (Young & Tian 2019, version 1.0.15).

The player walks in rows 1 to 8. Enemies and gold enter a free row from either side, one at most in
each, and cross it. Gold is worth 1 when the player and it meet; an enemy ends the game. The longer
the game, the more of both there are and the faster they are.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs.families.minatar.boards import BACK, FORTH, SIDE, Turn, below, draw

ENEMY, GOLD = 1, 2
LEVEL_FRAMES, LAST_LEVEL = 102, 9  # then something enters and everything moves in every frame

_EVERY = np.array([10, 5])  # frames at level 0: until something enters, until everything moves
_HALVED = np.array([0, 1])  # a level takes a frame off the first, two levels one off the second
_LINES = np.arange(SIDE)
_OPEN = (_LINES >= 1) & (_LINES <= 8)  # rows that things can be in
_FIRST, _LAST = np.array([0, 1]), np.array([9, 8])  # x and y that the player can be at
_SHIFTS = np.where(_OPEN, 4 * (_LINES - 1), 0).astype(np.uint32)  # of a row's bits in a word
_BITS = np.where(_OPEN, 15, 0).astype(np.uint32)
_NOWHERE = -1


class Things(NamedTuple):
    """What is in the rows of the board, `[SIDE]` each; the first and the last are empty."""

    kind: jax.Array  # 0 for nothing
    heads_right: jax.Array
    x: jax.Array


class AsterixState(NamedTuple):
    """Each of rows 1 to 8 has four bits of a word. So a board is drawn from two numbers: XLA would
    compute a frame again for every cell, were it not for the sums that pack them."""

    kinds: jax.Array  # kind + 4·heads_right
    places: jax.Array  # x
    player: jax.Array  # x, y
    timers: jax.Array  # frames until something enters, and until everything moves


def pack(things: Things) -> tuple[jax.Array, jax.Array]:
    """`kinds` and `places`."""
    rows = things.kind + 4 * things.heads_right, things.x
    there = things.kind > 0
    kinds, places = (jnp.where(there, each, 0).astype(jnp.uint32) << _SHIFTS for each in rows)
    return kinds.sum(dtype=jnp.uint32), places.sum(dtype=jnp.uint32)


def unpack(kinds: jax.Array, places: jax.Array) -> Things:
    codes, x = (((each >> _SHIFTS) & _BITS).astype(jnp.int32) for each in (kinds, places))
    return Things(codes & 3, codes >> 2, x)


class Asterix:
    """The rules of the game, for `BoardGame`."""

    num_actions = 5
    channels = 4  # player, enemies, trails, gold

    def start(self) -> AsterixState:
        return AsterixState(
            jnp.uint32(0), jnp.uint32(0), jnp.array([5, 5], jnp.int32), jnp.asarray(_EVERY, "int32")
        )

    def play(
        self, state: AsterixState, action: jax.Array, frame: jax.Array, bits: jax.Array
    ) -> Turn:
        level = jnp.minimum(jax.lax.div(frame, jnp.int32(LEVEL_FRAMES)), LAST_LEVEL)
        due = state.timers == 0
        timers = jnp.where(due, _EVERY - (level >> _HALVED), state.timers) - 1
        kind, heads_right, x = _enter(state, due[0], bits)
        way = (action == FORTH).astype(jnp.int32) - (action == BACK)
        player = jnp.clip(state.player + way, _FIRST, _LAST)

        moved = jnp.where(due[1], x + 2 * heads_right - 1, x)
        # The player meets what is there, before and after it moves.
        met = (player[1] == _LINES) & ((x == player[0]) | (moved == player[0]))
        taken, caught = met & (kind == GOLD), met & (kind == ENEMY)
        stays = (moved >= 0) & (moved < SIDE) & ~taken
        packed = pack(Things(jnp.where(stays, kind, 0), heads_right, moved))
        return Turn(AsterixState(*packed, player, timers), taken.any(), caught.any())

    def observe(self, state: AsterixState) -> jax.Array:
        kind, heads_right, x = unpack(state.kinds, state.places)
        # In every row a channel has one cell at most: its column, or one that is not there.
        columns = jnp.stack([
            jnp.where(state.player[1] == _LINES, state.player[0], _NOWHERE),
            jnp.where(kind == ENEMY, x, _NOWHERE),
            jnp.where(kind > 0, x + 1 - 2 * heads_right, _NOWHERE),
            jnp.where(kind == GOLD, x, _NOWHERE),
        ], -1)  # fmt: skip
        return columns[:, None, :] == _LINES[None, :, None]


def _enter(state: AsterixState, enters: jax.Array, bits: jax.Array) -> Things:
    """What is in the rows, and something new, a third of the time gold, in a row that is free, each
    as likely. Where none is, nothing enters."""
    kind, heads_right, x = unpack(state.kinds, state.places)
    free = ~(state.kinds | (state.kinds >> 1)) & np.uint32(0x11111111)  # a bit for each row
    row = draw(bits[0], jax.lax.population_count(free).astype(jnp.int32))  # among these
    before = jax.lax.population_count(free & ((np.uint32(1) << _SHIFTS) - 1)).astype(jnp.int32)
    new = enters & _OPEN & (kind == 0) & (before == row)
    right = (bits[0] & 1).astype(jnp.int32)
    new_kind = jnp.where(bits[1] < below(1 / 3), GOLD, ENEMY)
    return Things(
        jnp.where(new, new_kind, kind),
        jnp.where(new, right, heads_right),
        jnp.where(new, (SIDE - 1) * (1 - right), x),
    )
