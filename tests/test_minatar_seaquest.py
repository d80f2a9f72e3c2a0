"""Seaquest: every rule on a board made by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl.envs.families.minatar.boards import DOWN, FIRE, LEFT, RIGHT, STILL, UP
from idrl.envs.families.minatar.sea import Swimmer, pack, unpack
from idrl.envs.families.minatar.seaquest import FISH, RELOAD, SLOTS, SUBMARINE, Seaquest

RULES = Seaquest()
PLAY = jax.jit(RULES.play)
ALL = 2**32 - 1
LATER = (9, 9, 0)  # nothing comes, and the player can shoot


def packed(things, count):
    fields = np.zeros((6, count), np.int32)
    for slot, thing in enumerate(things):
        fields[: len(thing), slot] = thing
    return pack(Swimmer(*jnp.asarray(fields)))


def board(enemies=(), shots=(), divers=(), bullets=(), **numbers):
    """Things are (kind, whether it heads right, x, y, wait, reload). The player is at (5, 5)."""
    numbers = {"place": (5, 5), "timers": LATER, "surfaced": 0, "faces_right": 1} | numbers
    return RULES.start()._replace(
        enemies=packed(enemies, SLOTS), shots=packed(shots, SLOTS), divers=packed(divers, 2),
        bullets=packed(bullets, 2), **{k: jnp.array(v, jnp.int32) for k, v in numbers.items()},
    )  # fmt: skip


def play(state, action=STILL, bits=(0, 0)):
    return PLAY(state, jnp.int32(action), jnp.int32(0), jnp.array(bits, jnp.uint32))


def things(words, fields=6):
    found = np.stack(unpack(words), 1)
    return [tuple(thing[:fields]) for thing in found.tolist() if thing[0]]


def fish(x, y, right=1, wait=3):
    return (FISH, right, x, y, wait, 5)


def submarine(x, y, right=1, wait=3, reload=5):
    return (SUBMARINE, right, x, y, wait, reload)


@pytest.mark.parametrize(
    ("place", "action", "to", "faces_right"),
    [
        ((5, 5), STILL, (5, 5), 1), ((5, 5), LEFT, (4, 5), 0), ((5, 5), UP, (5, 4), 1),
        ((5, 5), RIGHT, (6, 5), 1), ((5, 5), DOWN, (5, 6), 1), ((0, 5), LEFT, (0, 5), 0),
        ((9, 5), RIGHT, (9, 5), 1), ((5, 8), DOWN, (5, 8), 1),
    ],
)  # fmt: skip
def test_the_player_moves_and_turns(place, action, to, faces_right):
    state, reward, over = play(board(place=place), action)
    assert (tuple(state.place.tolist()), int(state.faces_right)) == (to, faces_right)
    assert (int(reward), bool(over), int(state.oxygen)) == (0, False, 199)
    assert state.timers.tolist() == [8, 8, 0]


@pytest.mark.parametrize(("faces_right", "at", "cells"), [(1, 0, [6, 1]), (0, 9, [3, 8])])
def test_the_player_shoots_the_way_it_faces_every_fifth_frame(faces_right, at, cells):
    state = board(faces_right=faces_right, place=(at, 5))
    for left in (4, 3, 2, 1, 0):
        state = play(state, FIRE).state
        assert len(things(state.bullets)) == 1
        assert int(state.timers[2]) == left
    state = play(state, FIRE).state
    assert things(state.bullets, 4) == [(1, faces_right, x, 5) for x in cells]
    assert tuple(state.place.tolist()) == (at, 5)


def test_bullets_cross_the_board_and_leave():
    state = board(bullets=[(1, 1, 8, 5), (1, 0, 1, 2)])
    state = play(state).state
    assert things(state.bullets, 4) == [(1, 1, 9, 5), (1, 0, 0, 2)]
    assert things(play(state).state.bullets) == []


def test_a_bullet_takes_a_fish_before_a_submarine_and_the_first_that_came():
    here = [submarine(7, 3, wait=1), fish(7, 3, wait=3), fish(7, 3, wait=2)]
    state, reward, over = play(board(enemies=here, bullets=[(1, 1, 6, 3)]))
    assert (int(reward), bool(over), things(state.bullets)) == (1, False, [])
    assert [thing[:5] for thing in things(state.enemies)] == [
        (SUBMARINE, 1, 7, 3, 0), (FISH, 1, 7, 3, 2)
    ]  # fmt: skip
    state, reward, _ = play(board(enemies=here[:1], bullets=[(1, 1, 6, 3)]))
    assert (int(reward), things(state.enemies)) == (1, [])


def test_an_enemy_swims_into_a_bullet():
    state, reward, over = play(board(enemies=[fish(8, 3, 0, 0)], bullets=[(1, 1, 6, 3)]))
    assert (int(reward), bool(over)) == (1, False)
    assert (things(state.enemies), things(state.bullets)) == ([], [])
    waits = board(enemies=[fish(8, 3, 0, 1)], bullets=[(1, 1, 6, 3)])
    passes = board(enemies=[fish(7, 3, 0, 0)], bullets=[(1, 1, 5, 4)])
    for before in (waits, passes):
        state, reward, _ = play(before)
        assert (int(reward), len(things(state.enemies)), len(things(state.bullets))) == (0, 1, 1)


@pytest.mark.parametrize("kind", [fish, submarine])
@pytest.mark.parametrize(
    ("x", "right", "wait", "action", "ends"),
    [
        (6, 0, 3, RIGHT, True),  # the player swims into it
        (6, 0, 3, STILL, False),
        (6, 0, 0, STILL, True),  # it swims into the player
        (4, 1, 0, STILL, True),
        (6, 0, 0, RIGHT, True),  # met before it moves on
        (6, 1, 0, STILL, False),
    ],
)
def test_enemies_end_the_game(kind, x, right, wait, action, ends):
    state, reward, over = play(board(enemies=[kind(x, 5, right, wait)]), action)
    assert (int(reward), bool(over)) == (0, ends)
    assert len(things(state.enemies)) == 1


@pytest.mark.parametrize(
    ("x", "right", "ends"), [(4, 1, True), (6, 0, True), (5, 1, True), (3, 1, False), (6, 1, False)]
)
def test_shots_end_the_game(x, right, ends):
    state, _, over = play(board(shots=[(1, right, x, 5)]))
    assert bool(over) == ends
    assert things(state.shots, 4) == [(1, right, x + 2 * right - 1, 5)]
    assert things(play(board(shots=[(1, 1, 9, 2), (1, 0, 0, 2)])).state.shots) == []


def test_enemies_move_by_their_pace_and_leave():
    before = [fish(9, 1, 1, 0), submarine(0, 2, 0, 0), fish(3, 3, 0, 0), submarine(3, 4, 1, 2)]
    for level, pace in ((0, 5), (1, 5), (2, 4), (4, 3), (6, 2), (19, 2)):
        state = play(board(enemies=before, level=level)).state
        assert [thing[:5] for thing in things(state.enemies)] == [
            (FISH, 0, 2, 3, pace), (SUBMARINE, 1, 3, 4, 1)
        ]  # fmt: skip


def test_submarines_shoot_when_it_is_their_turn_and_fish_do_not():
    ready = [submarine(3, 2, 1, 2, 0), submarine(7, 3, 0, 0, 0), (FISH, 1, 3, 6, 2, 0)]
    state = play(board(enemies=ready)).state
    assert things(state.shots, 4) == [(1, 1, 4, 2), (1, 0, 5, 3)]  # one cell on, after its move
    assert [thing[5] for thing in things(state.enemies)][:2] == [RELOAD, RELOAD]
    state = play(board(enemies=[submarine(3, 2, 1, 2, 1)])).state
    assert (things(state.shots), things(state.enemies)[0][5]) == ([], 0)


def test_a_submarine_shoots_in_the_frame_in_which_it_swims_into_a_bullet_but_not_once_it_is_hit():
    into = board(enemies=[submarine(8, 3, 0, 0, 0)], bullets=[(1, 1, 6, 3)])
    state, reward, _ = play(into)
    assert (int(reward), things(state.enemies)) == (1, [])
    assert things(state.shots, 4) == [(1, 0, 6, 3)]
    hit = board(enemies=[submarine(7, 3, 0, 0, 0)], bullets=[(1, 1, 6, 3)])
    state, reward, _ = play(hit)
    assert (int(reward), things(state.enemies), things(state.shots)) == (1, [], [])


def test_enemies_enter_by_the_bits_unless_others_come_the_other_way():
    due = {"timers": (0, 9, 0), "level": 4, "slot": 29}
    row_3_right = 1 | (2 << 1)
    state = play(board(**due), bits=(row_3_right, 0)).state
    assert things(state.enemies) == [(SUBMARINE, 1, 0, 3, 2, 9)]  # and a frame has passed
    assert (int(state.slot), int(state.timers[0])) == (0, 15)
    state = play(board(**due), bits=(row_3_right - 1, ALL)).state
    assert things(state.enemies) == [(FISH, 0, 9, 3, 2, 9)]
    for other, enter in ((fish(5, 3, 1), True), (fish(5, 3, 0), False), (fish(5, 4, 0), True)):
        state = play(board(enemies=[other], **due), bits=(row_3_right, 0)).state
        assert len(things(state.enemies)) == 1 + enter
        assert (int(state.slot), int(state.timers[0])) == (0 if enter else 29, 15)


def test_a_third_of_enemies_are_submarines_in_all_rows_from_both_sides():
    words = jax.random.bits(jax.random.key(0), (4_000, 2))
    many = jax.jit(jax.vmap(RULES.play, (None, None, None, 0)))
    state = board(timers=(0, 0, 0), place=(5, 0), surfaced=1)
    after = many(state, jnp.int32(STILL), jnp.int32(0), words).state
    for packed_things, submarines in ((after.enemies[:, 0], 1 / 3), (after.divers[:, 1], 0)):
        kind, right, x, y, *_ = (np.asarray(field) for field in unpack(packed_things))
        np.testing.assert_array_equal(x, np.where(right, 0, 9))
        shares = [((kind == SUBMARINE).mean(), submarines), (right.mean(), 1 / 2)]
        shares += [((y == row).mean(), 1 / 8) for row in range(1, 9)]
        for share, chance in shares:
            assert abs(share - chance) <= 4 * (chance * (1 - chance) / 4_000) ** 0.5


def test_divers_come_every_30_frames_and_cross_the_board_in_60():
    state = board(timers=(9, 0, 0), place=(5, 0), surfaced=1)
    bits = (1 << 4 | 6 << 5, 0)  # right, row 7
    state = play(state, bits=bits).state
    assert things(state.divers, 5) == [(1, 1, 0, 7, 4)]
    assert int(state.timers[1]) == 29
    for frame in range(1, 60):
        state = play(state._replace(timers=state.timers.at[0].set(9)), bits=bits).state
        x = [thing[2] for thing in things(state.divers)]
        first = [(frame + 1) // 6] if frame < 59 else []
        assert x == first + ([(frame - 29) // 6] if frame >= 30 else [])


@pytest.mark.parametrize(("aboard", "taken"), [(-1, 1), (0, 1), (5, 1), (6, 0)])
@pytest.mark.parametrize(("x", "wait", "action"), [(6, 3, RIGHT), (4, 0, STILL), (6, 0, RIGHT)])
def test_divers_come_aboard_up_to_six(aboard, taken, x, wait, action):
    state, reward, over = play(board(divers=[(1, 1, x, 5, wait)], aboard=aboard), action)
    assert (int(state.aboard), int(reward), bool(over)) == (aboard + taken, 0, False)
    assert len(things(state.divers)) == 1 - taken


def test_of_two_divers_the_newer_takes_the_last_place():
    both = [(1, 1, 5, 5, 3), (1, 0, 5, 5, 4)]
    state = play(board(divers=both, aboard=5)).state
    assert (int(state.aboard), things(state.divers, 5)) == (6, [(1, 1, 5, 5, 2)])
    assert int(play(board(divers=both, aboard=4)).state.aboard) == 6


def test_oxygen_is_used_below_the_surface_and_lasts_200_frames():
    state, _, over = play(board(oxygen=1))
    assert (int(state.oxygen), bool(over)) == (0, False)
    assert play(state).over
    up = board(place=(5, 0), surfaced=1, oxygen=7)
    state, _, over = play(up)
    assert (int(state.oxygen), bool(over), int(state.surfaced)) == (7, False, 1)
    state = play(up, DOWN).state
    assert (int(state.oxygen), int(state.surfaced)) == (6, 0)


@pytest.mark.parametrize(
    ("aboard", "left", "paid", "ends"),
    [(0, 0, 0, True), (1, 0, 0, False), (5, 4, 0, False), (6, -1, 6, False), (-1, -2, 0, False)],
)
def test_surfacing(aboard, left, paid, ends):
    state, reward, over = play(board(place=(5, 1), aboard=aboard, oxygen=139, level=3), UP)
    assert (int(state.aboard), int(reward), bool(over)) == (left, paid, ends)
    assert (int(state.oxygen), int(state.level), int(state.surfaced)) == (
        (139, 3, 0) if ends else (200, 4, 1)
    )


def test_the_last_level_is_the_nineteenth():
    assert int(play(board(place=(5, 1), aboard=2, level=18), UP).state.level) == 19
    assert int(play(board(place=(5, 1), aboard=2, level=19), UP).state.level) == 19
    assert int(play(board(level=19, timers=(0, 9, 0))).state.timers[0]) == 0  # one in every frame


def test_every_slot_is_free_when_its_turn_comes():
    """The game gets faster as soon as it can, from some frame on, and nothing stops an enemy."""

    def play_on(key, begins):
        def frame(carry, t):
            state, lost = carry
            lost += (state.timers[0] == 0) & (unpack(state.enemies).kind[state.slot] > 0)
            up_and_down = jnp.where(state.place[1] > 0, UP, DOWN)
            bits = jax.random.bits(jax.random.fold_in(key, t), (2,))
            state = state._replace(aboard=jnp.int32(-1))  # it can always surface
            state = RULES.play(state, jnp.where(t < begins, STILL, up_and_down), t, bits).state
            return (state, lost), (unpack(state.enemies).kind > 0).sum()

        return jax.lax.scan(frame, (RULES.start(), 0), jnp.arange(300))

    keys = jax.random.split(jax.random.key(0), 100)
    (_, lost), alive = jax.jit(jax.vmap(play_on))(keys, jnp.arange(100))
    assert int(lost.sum()) == 0
    assert int(alive.max()) > 15


def test_the_board_that_is_seen():
    state = board(
        enemies=[fish(0, 1), submarine(4, 3, 0)], shots=[(1, 0, 2, 3)], divers=[(1, 0, 9, 6)],
        bullets=[(1, 1, 7, 5)], oxygen=139, aboard=2,
    )  # fmt: skip
    seen = {tuple(cell) for cell in np.argwhere(np.asarray(RULES.observe(state))).tolist()}
    gauges = {(9, column, 7) for column in range(6)} | {(9, 7, 8), (9, 8, 8)}
    assert seen == gauges | {
        (5, 5, 0), (5, 4, 1), (5, 7, 2), (1, 0, 5), (3, 4, 6), (3, 5, 3), (3, 2, 4), (6, 9, 9)
    }  # fmt: skip
    start = {tuple(cell) for cell in np.argwhere(np.asarray(RULES.observe(RULES.start()))).tolist()}
    assert start == {(0, 5, 0), (0, 6, 1)} | {(9, column, 7) for column in range(10)}
    negative = np.asarray(RULES.observe(board(aboard=-3, oxygen=-5)))
    assert not negative[9].any()
