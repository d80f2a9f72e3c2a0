"""Seaquest by MinAtar's rules (Young & Tian 2019, version 1.0.15).

Fish and submarines cross rows 1 to 8; the player shoots them for 1 each, and collects up to six
divers. Oxygen lasts 200 frames below the surface. Surfacing fills it up and costs a diver (without
one the game is over); six are delivered, and pay 1 for every 20 frames of oxygen left. Each time
enemies come more often, and every other time they swim faster, down to a limit. An enemy, a shot or
a lack of oxygen ends the game.

In the reference the six that are delivered leave -1 aboard, with which one can surface again. So
they do here.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs.families.minatar.boards import (
    BACK,
    FIRE,
    FORTH,
    LEFT,
    RIGHT,
    SIDE,
    Turn,
    below,
)
from idrl.envs.families.minatar.sea import Swimmer, is_column, pack, push, rows_of, spot, unpack

FISH, SUBMARINE = 1, 2
# At the last level an enemy comes in every frame, and each leaves with its tenth move, one in three
# frames: 30 at a time. While they are slower (60 frames at first) they are 14 frames or more apart.
SLOTS = 30
OXYGEN, CREW, PER_POINT = 200, 6, 20
RELOAD, DIVER_PACE = 10, 5  # frames between shots of a submarine, and between moves of a diver
LAST_LEVEL = 19

_EVERY = np.array([20, 30, 5])  # frames between enemies, between divers, between the player's shots
_FASTER = np.array([1, 0, 0])  # what a level takes off them
_BY_ITSELF = np.array([True, True, False])  # which of these need no action
_FIRST, _LAST = np.array([0, 0]), np.array([9, 8])  # x and y that the player can be at
_LINES, _SLOTS = np.arange(SIDE), np.arange(SLOTS)
_NONE = 99


class SeaquestState(NamedTuple):
    """Things are packed (`sea.pack`). Of two the older comes first: a diver comes every 30 frames
    and is gone after 60, and the player's bullet is gone after 10, two shots later."""

    enemies: jax.Array  # [SLOTS], a ring
    shots: jax.Array  # [SLOTS], by the enemy of the slot: a shot is gone before the next is due
    divers: jax.Array  # [2]
    bullets: jax.Array  # [2], the player's
    place: jax.Array  # the player's x, y
    timers: jax.Array  # frames until an enemy comes, a diver comes, the player can shoot
    faces_right: jax.Array
    oxygen: jax.Array
    aboard: jax.Array  # divers
    surfaced: jax.Array  # whether the player is at the surface and has been received there
    level: jax.Array
    slot: jax.Array  # of the next enemy


class Seaquest:
    """The rules of the game, for `BoardGame`."""

    num_actions = 6
    # the player's front and back, bullets, trails, shots, fish, submarines, oxygen, divers aboard,
    # divers
    channels = 10

    def start(self) -> SeaquestState:
        enemies, shots, divers, bullets = (
            jnp.zeros(count, jnp.int32) for count in (SLOTS, SLOTS, 2, 2)
        )
        return SeaquestState(
            enemies, shots, divers, bullets, place=jnp.array([5, 0], jnp.int32),
            timers=jnp.array([20, 30, 0], jnp.int32), faces_right=jnp.int32(0),
            oxygen=jnp.int32(OXYGEN), aboard=jnp.int32(0), surfaced=jnp.int32(1),
            level=jnp.int32(0), slot=jnp.int32(0),
        )  # fmt: skip

    def play(
        self, state: SeaquestState, action: jax.Array, frame: jax.Array, bits: jax.Array
    ) -> Turn:
        pace = jnp.maximum(5 - (state.level >> 1), 2)  # frames between moves of an enemy
        acts = (state.timers == 0) & (_BY_ITSELF | (action == FIRE))
        timers = jnp.where(acts, _EVERY - state.level * _FASTER, state.timers)
        enemies, slot = _enemy_enters(state, acts[0], pace, bits)
        divers = _diver_enters(state, acts[1], bits)
        bullet = Swimmer(jnp.int32(1), state.faces_right, state.place[0], state.place[1])
        bullets = unpack(push(state.bullets, acts[2], bullet))
        way = (action == FORTH).astype(jnp.int32) - (action == BACK)
        place = jnp.clip(state.place + way, _FIRST, _LAST)
        faces_right = jnp.where(action == RIGHT, 1, jnp.where(action == LEFT, 0, state.faces_right))

        x = bullets.next_x()
        bullets = bullets._replace(kind=jnp.where(is_column(x), bullets.kind, 0), x=x)
        enemies, bullets, struck = _strike(enemies, bullets)
        divers, aboard = _collect(divers, place, state.aboard)
        shots = _shoot(unpack(state.shots), enemies)
        enemies, bullets, run_into, met = _swim(enemies, bullets, place, pace)
        hit = shots.at(*place)
        shots = shots._replace(x=shots.next_x())
        hit |= shots.at(*place)

        dives = place[1] > 0
        arrives = ~dives & (state.surfaced == 0)
        received = arrives & (aboard != 0)
        delivers = received & (aboard == CREW)
        over = (met | hit | (state.oxygen <= 0) | (arrives & ~received)).any()
        paid = jnp.where(delivers, state.oxygen // PER_POINT, 0)
        oxygen = jnp.where(dives, state.oxygen - 1, jnp.where(received, OXYGEN, state.oxygen))
        state = SeaquestState(
            pack(enemies), pack(shots), pack(divers), pack(bullets), place,
            jnp.maximum(timers - 1, 0), faces_right, oxygen,
            jnp.where(received, jnp.where(delivers, 0, aboard) - 1, aboard),
            jnp.where(dives, 0, state.surfaced | received),
            jnp.minimum(state.level + received, LAST_LEVEL), slot,
        )  # fmt: skip
        return Turn(state, struck + run_into + paid, over)

    def observe(self, state: SeaquestState) -> jax.Array:
        enemies, shots = unpack(state.enemies), unpack(state.shots)
        divers, bullets = unpack(state.divers), unpack(state.bullets)
        trails, shot_at, fish, submarines = rows_of(
            jnp.stack([
                spot(enemies.last_x(), enemies.y, enemies.kind > 0),
                spot(shots.x, shots.y, shots.kind > 0),
                spot(enemies.x, enemies.y, enemies.kind == FISH),
                spot(enemies.x, enemies.y, enemies.kind == SUBMARINE),
            ])
        )  # fmt: skip
        diver_trails, diver_at, bullet_at = rows_of(
            jnp.stack([
                spot(divers.last_x(), divers.y, divers.kind > 0),
                spot(divers.x, divers.y, divers.kind > 0),
                spot(bullets.x, bullets.y, bullets.kind > 0),
            ])
        )  # fmt: skip
        x, y, bottom = state.place[0], state.place[1], _LINES == SIDE - 1
        left = jax.lax.div(jnp.maximum(state.oxygen, 0), jnp.int32(PER_POINT))
        crew = jnp.maximum(state.aboard, 0)
        rows = jnp.stack([  # of each channel, a bit for each column
            jnp.where(y == _LINES, 1 << x, 0),
            jnp.where(y == _LINES, 1 << (x + 1 - 2 * state.faces_right), 0),
            bullet_at,
            trails | diver_trails,
            shot_at,
            fish,
            submarines,
            jnp.where(bottom, (1 << left) - 1, 0),
            jnp.where(bottom, ((1 << crew) - 1) << (SIDE - 1 - crew), 0),
            diver_at,
        ], -1)  # fmt: skip
        return ((rows[:, None, :] >> _LINES[None, :, None]) & 1) > 0


def _enemy_enters(
    state: SeaquestState, comes: jax.Array, pace: jax.Array, bits: jax.Array
) -> tuple[Swimmer, jax.Array]:
    """All enemies and the next free slot. None enters a row where others come the other way."""
    enemies = unpack(state.enemies)
    new = _from_a_side(bits[0], jnp.where(bits[1] < below(1 / 3), SUBMARINE, FISH), pace, RELOAD)
    against = (enemies.kind > 0) & (enemies.y == new.y) & (enemies.heads_right != new.heads_right)
    enters = comes & ~against.any()
    slot = state.slot + enters
    return enemies.or_where(enters & (state.slot == _SLOTS), new), jnp.where(slot < SLOTS, slot, 0)


def _diver_enters(state: SeaquestState, comes: jax.Array, bits: jax.Array) -> Swimmer:
    new = _from_a_side(bits[0] >> 4, jnp.int32(1), jnp.int32(DIVER_PACE), 0)
    return unpack(push(state.divers, comes, new))


def _from_a_side(bits: jax.Array, kind: jax.Array, wait: jax.Array, reload: int) -> Swimmer:
    """Four bits say from which and in which row."""
    heads_right, row = (bits & 1).astype(jnp.int32), ((bits >> 1) & 7).astype(jnp.int32)
    return Swimmer(kind, heads_right, (SIDE - 1) * (1 - heads_right), 1 + row, wait, reload)


def _strike(enemies: Swimmer, bullets: Swimmer) -> tuple[Swimmer, Swimmer, jax.Array]:
    """A bullet takes one enemy of its cell, a fish if there is one, and the first that came. That
    is the one that moves on first, since all in a cell came with the same number of moves."""
    meets = enemies.at(bullets.x[:, None], bullets.y[:, None]) & (bullets.kind > 0)[:, None]
    rank = enemies.wait + jnp.where(enemies.kind == SUBMARINE, 8, 0)
    first = jnp.where(meets, rank, _NONE).min(1)
    struck = meets & (rank == first[:, None])
    stops = first < _NONE
    return (
        enemies._replace(kind=jnp.where(struck[0] | struck[1], 0, enemies.kind)),
        bullets._replace(kind=jnp.where(stops, 0, bullets.kind)),
        stops[0].astype(jnp.int32) + stops[1],
    )


def _collect(divers: Swimmer, place: jax.Array, aboard: jax.Array) -> tuple[Swimmer, jax.Array]:
    """Divers that the player is at, before or after they move, come aboard while there is room, the
    newer one first."""
    moves = divers.wait == 0
    x = jnp.where(moves, divers.next_x(), divers.x)
    moved = divers._replace(x=x, wait=jnp.where(moves, DIVER_PACE, divers.wait - 1))
    meets = divers.at(*place) | moved.at(*place)
    newer = jnp.where(np.arange(2) == 0, meets[1], 0)  # who is before each of them
    taken = meets & (aboard + newer < CREW)
    return (
        moved._replace(kind=jnp.where(taken, 0, divers.kind)),
        aboard + taken.sum(),
    )


def _shoot(shots: Swimmer, enemies: Swimmer) -> Swimmer:
    """With the new ones, from where submarines are after their move, if it is their turn."""
    x = jnp.where(enemies.wait == 0, enemies.next_x(), enemies.x)
    new = enemies._replace(kind=jnp.int32(1), x=x, wait=0, reload=0)
    return shots.or_where((enemies.kind == SUBMARINE) & (enemies.reload == 0), new)


def _swim(
    enemies: Swimmer, bullets: Swimmer, place: jax.Array, pace: jax.Array
) -> tuple[Swimmer, Swimmer, jax.Array, jax.Array]:
    """Enemies after their move, the bullets that none ran into, how many did, and who met the
    player before or after it."""
    moves = enemies.wait == 0
    moved = enemies._replace(
        x=jnp.where(moves, enemies.next_x(), enemies.x),
        wait=jnp.where(moves, pace, enemies.wait - 1),
        reload=jnp.where(enemies.reload == 0, RELOAD, enemies.reload - 1),
    )
    now = moved.at(*place)
    runs = moved.at(bullets.x[:, None], bullets.y[:, None]) & (bullets.kind > 0)[:, None]
    runs &= moves & ~now
    stops = runs.any(1)
    return (
        moved._replace(kind=jnp.where(runs[0] | runs[1], 0, moved.kind)),
        bullets._replace(kind=jnp.where(stops, 0, bullets.kind)),
        stops[0].astype(jnp.int32) + stops[1],
        now | enemies.at(*place),
    )
