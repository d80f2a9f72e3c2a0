"""Asterix: every rule on a board made by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl.envs.families.minatar.asterix import (
    ENEMY,
    GOLD,
    Asterix,
    AsterixState,
    Things,
    pack,
    unpack,
)
from idrl.envs.families.minatar.boards import DOWN, LEFT, RIGHT, STILL, UP

RULES = Asterix()
PLAY = jax.jit(RULES.play)
ONCE = (3, 3)  # timers that nothing is due by


def board(things=(), player=(5, 5), timers=ONCE):
    """`things`: (row, kind, whether it heads right, x)."""
    rows = np.zeros((3, 10), np.int32)
    for row, *thing in things:
        rows[:, row] = thing
    numbers = (jnp.array(each, jnp.int32) for each in (player, timers))
    return AsterixState(*pack(Things(*jnp.asarray(rows))), *numbers)


def play(state, action=STILL, frame=0, bits=(0, 0)):
    return PLAY(state, jnp.int32(action), jnp.int32(frame), jnp.array(bits, jnp.uint32))


def things(state):
    found = np.stack(unpack(state.kinds, state.places), 1)
    return [(row, *thing) for row, thing in enumerate(found.tolist()) if thing[0]]


@pytest.mark.parametrize(
    ("action", "to"),
    [(STILL, (5, 5)), (LEFT, (4, 5)), (UP, (5, 4)), (RIGHT, (6, 5)), (DOWN, (5, 6))],
)
def test_the_player_walks(action, to):
    state, reward, over = play(board(), action)
    assert tuple(state.player.tolist()) == to
    assert (int(reward), bool(over)) == (0, False)
    assert state.timers.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("player", "action"), [((0, 5), LEFT), ((9, 5), RIGHT), ((5, 1), UP), ((5, 8), DOWN)]
)
def test_the_player_stays_in_columns_0_to_9_and_rows_1_to_8(player, action):
    assert tuple(play(board(player=player), action).state.player.tolist()) == player


@pytest.mark.parametrize("kind", [ENEMY, GOLD])
@pytest.mark.parametrize(
    ("x", "heads_right", "timer", "action", "meets"),
    [
        (6, 0, 3, RIGHT, True),  # the player walks into it
        (6, 0, 3, STILL, False),
        (6, 0, 0, STILL, True),  # it walks into the player
        (4, 1, 0, STILL, True),
        (6, 0, 0, RIGHT, True),  # met before it moves on
        (6, 1, 0, STILL, False),
        (4, 1, 0, LEFT, True),
    ],
)
def test_the_player_meets_gold_and_enemies(kind, x, heads_right, timer, action, meets):
    state = board([(5, kind, heads_right, x), (3, GOLD, 1, 2)], timers=(3, timer))
    after, reward, over = play(state, action)
    assert (int(reward), bool(over)) == (meets and kind == GOLD, meets and kind == ENEMY)
    rows = [row for row, *_ in things(after)]
    assert rows == ([3] if meets and kind == GOLD else [3, 5])


def test_all_move_when_it_is_due_and_leave_at_the_sides():
    before = [(1, ENEMY, 1, 9), (2, GOLD, 0, 0), (3, ENEMY, 1, 0), (8, GOLD, 0, 9)]
    after = play(board(before, timers=(3, 0))).state
    assert things(after) == [(3, ENEMY, 1, 1), (8, GOLD, 0, 8)]
    assert after.timers.tolist() == [2, 4]
    assert things(play(board(before)).state) == before


def test_what_enters_takes_a_free_row_each_as_likely():
    taken = [(row, ENEMY, 1, 4) for row in (1, 4, 5, 8)]
    state = board(taken, timers=(0, 3))
    words = jax.random.bits(jax.random.key(0), (3_000, 2))
    after = jax.jit(jax.vmap(RULES.play, (None, None, None, 0)))(
        state, jnp.int32(STILL), jnp.int32(0), words
    ).state
    assert after.timers[0].tolist() == [9, 2]
    kind, heads_right, x = (
        np.asarray(each) for each in jax.vmap(unpack)(after.kinds, after.places)
    )
    new = kind.copy()
    new[:, [1, 4, 5, 8]] = 0
    assert (kind[:, [1, 4, 5, 8]] == ENEMY).all()
    assert ((new > 0).sum(1) == 1).all()
    rows = np.flatnonzero((new > 0).any(0))
    assert rows.tolist() == [2, 3, 6, 7]
    which = np.nonzero(new)
    for share, chance in [
        ((new[:, 2] > 0).mean(), 1 / 4), ((new[:, 7] > 0).mean(), 1 / 4),
        ((new == GOLD).any(1).mean(), 1 / 3), (heads_right[which].mean(), 1 / 2),
    ]:  # fmt: skip
        assert abs(share - chance) < 4 * (chance * (1 - chance) / 3_000) ** 0.5
    np.testing.assert_array_equal(x[which], np.where(heads_right[which], 0, 9))


def test_nothing_enters_a_full_board():
    full = [(row, GOLD, 0, 7) for row in range(1, 9)]
    for word in (0, 2**32 - 1):
        after = play(board(full, player=(0, 5), timers=(0, 3)), bits=(word, word)).state
        assert things(after) == full
        assert after.timers.tolist() == [9, 2]


def test_what_enters_where_the_player_stands_is_met():
    full_but_5 = [(row, GOLD, 0, 7) for row in (1, 2, 3, 4, 6, 7, 8)]
    state = board(full_but_5, player=(0, 5), timers=(0, 3))
    assert play(state, bits=(1, 2**32 - 1)).over
    assert play(state, bits=(1, 0)).reward == 1
    assert not play(state, bits=(0, 2**32 - 1)).over  # from the other side


@pytest.mark.parametrize(
    ("frame", "enters", "moves"),
    [(0, 10, 5), (101, 10, 5), (102, 9, 5), (204, 8, 4), (305, 8, 4), (306, 7, 4), (816, 2, 1),
     (918, 1, 1), (100_000, 1, 1)],
)  # fmt: skip
def test_the_game_gets_faster(frame, enters, moves):
    after = play(board(timers=(0, 0)), frame=frame).state
    assert (after.timers + 1).tolist() == [enters, moves]


def test_the_board_that_is_seen():
    seen = np.asarray(RULES.observe(board([(1, ENEMY, 1, 0), (3, ENEMY, 0, 4), (8, GOLD, 1, 9)])))
    cells = {tuple(cell) for cell in np.argwhere(seen).tolist()}
    assert cells == {(5, 5, 0), (1, 0, 1), (3, 4, 1), (3, 5, 2), (8, 9, 3), (8, 8, 2)}
    start = np.asarray(RULES.observe(RULES.start()))
    assert np.argwhere(start).tolist() == [[5, 5, 0]]
