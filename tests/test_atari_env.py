"""Atari through ale-py's threads against a slow plain reference, and what must not go wrong."""

import functools
import sys
import threading

import numpy as np
import pytest
from atari_reference import NO, REFERENCES, Nature, actions, check_same, record

import idrl
from idrl.envs import make_env
from idrl.envs.families.atari.env import GAMES, AtariEnv
from idrl.training.hosted import fleet as fleets


@functools.cache
def env_of(game, **how):
    return AtariEnv(game, **how)


def noops_told(vector):
    """The frames before each start of environment 0, as ale-py counts them."""
    told, games = [], vector.games[0]
    reset, recv = games.reset, games.recv

    def listen(call, *args, **options):
        answer = call(*args, **options)
        told.append(int(answer[-1]["episode_frame_number"][0]))
        return answer

    games.reset, games.recv = functools.partial(listen, reset), functools.partial(listen, recv)
    return told


@pytest.mark.parametrize(
    "game",
    [
        pytest.param(game, marks=() if game in ("breakout", "pong") else pytest.mark.slow)
        for game in REFERENCES
    ],
)
def test_equals_the_nature_protocol_frame_by_frame(game):
    env = env_of(game)
    vector, plain = env.make(2), Nature(REFERENCES[game], 7)
    assert env.num_actions == plain.env.action_space.n
    told, starts, lost = noops_told(vector), [], 0
    # Whoever does nothing in atlantis loses all cities, and the game goes on for a while.
    moves = actions(env, 350) if game != "atlantis" else np.zeros((450, 2), int)
    for move, seen in zip([NO, *moves], record(vector, [7, 8], moves), strict=True):
        noops = told.pop(0)
        if seen.reset[0]:
            starts.append(noops)
            expected = plain.start(noops), 0.0, False, False
        else:
            expected = plain.step(move[0])
        got = seen.obs[0], seen.reward[0], seen.terminated[0], seen.life_lost[0]
        assert got[1:] == expected[1:]
        if not seen.terminated[0]:  # there ale-py shows the frames before, and nobody needs them
            assert np.array_equal(got[0], expected[0])
        assert not seen.truncated.any()
        lost += seen.life_lost[0]
    vector.close()
    assert min(starts) >= 0
    assert max(starts) <= 30
    if game in ("breakout", "atlantis"):
        assert len(starts) > 1
        assert lost > 4
    assert (lost > 0) == (game not in ("pong", "beam_rider"))


@pytest.mark.slow
def test_starts_are_after_0_to_30_frames():
    vector = env_of("pong").make(8)
    games = vector.games[0]
    seeded = games.reset(seed=np.arange(8))[1]["frame_number"]
    unseeded = [games.reset()[1]["episode_frame_number"] for _ in range(25)]
    vector.close()
    assert len(set(seeded.tolist())) > 4
    assert set(np.concatenate(unseeded).tolist()) == set(range(31))


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"release": True}])
def test_threads_replay_and_evaluation_change_nothing_they_should_not(how):
    env = env_of("breakout", sticky=0.25, threads=1, **how)
    moves = actions(env, 200)
    one, two = env.make(2), AtariEnv("breakout", sticky=0.25, threads=2, **how).make(2)
    first = record(one, [3, 4], moves)
    assert any(seen.life_lost.any() for seen in first)
    check_same(first, record(two, [3, 4], moves))
    # Again in the same vector, one of the two reset with another seed in the middle.
    again = [one.step(NO, np.array([3, 5]))]
    for t, move in enumerate(moves):
        again.append(one.step(move, np.array([-1, 6 if t == 20 else -1])))
    check_same(first, again, which=slice(0, 1))
    assert again[21].reset[1]
    assert again[21].reward[1] == 0
    one.close()
    two.close()


def test_a_natural_end_with_a_seed_is_a_seeded_reset():
    env = env_of("breakout")
    vector = env.make(2)
    moves = actions(env, 600)
    seen = vector.step(NO, np.array([1, 2]))
    t = 0
    while not seen.terminated[0]:
        seen, t = vector.step(moves[t], NO), t + 1
    anew = [vector.step(moves[t], np.array([9, -1]))]
    assert anew[0].reset.tolist() == [True, False]
    anew += [vector.step(move, NO) for move in moves[:40]]
    check_same(record(vector, [9, 9], moves[:40]), anew, which=slice(0, 1))
    # With all actions negative nothing is stepped.
    still = vector.step(NO, NO)
    assert np.array_equal(still.obs, vector.step(NO, NO).obs)
    assert not still.reset.any()
    vector.close()


@pytest.mark.parametrize("release", [False, True])
def test_a_time_limit_truncates(release):
    vector = AtariEnv("pong", release=release, max_frames=40).make(2)
    seen = record(vector, [1, 2], np.zeros((23, 2), int))
    vector.close()
    truncated = [bool(step.truncated[0]) for step in seen]
    reset = [bool(step.reset[0]) for step in seen]
    assert [t for t, flag in enumerate(truncated) if flag] == [10, 21]
    assert [t for t, flag in enumerate(reset) if flag] == [0, 11, 22]
    assert not any(step.terminated.any() for step in seen)


def test_for_evaluation_there_are_no_lost_lives():
    env = env_of("breakout")
    moves = actions(env, 100)
    training, playing = env.make(2), env.for_evaluation().make(2)
    one, other = record(training, [3, 4], moves), record(playing, [3, 4], moves)
    assert any(step.life_lost.any() for step in one)
    assert all(step.life_lost is None for step in other)
    check_same([step[:5] for step in one], [step[:5] for step in other])
    assert env.life_loss
    training.close()
    playing.close()


@pytest.mark.slow
def test_games_that_rest_together_are_not_stepped():
    """Five games for evaluation are two groups; the second rests after ten steps."""
    env = env_of("pong")
    plain, grouped = env._but(life_loss=False).make(5), env.for_evaluation().make(5)
    seeds, nobody = np.arange(5), np.full(5, -1)
    for vector in (plain, grouped):
        vector.step(env.no_actions(5), seeds)
    second, sent = grouped.groups[1].games[0], []
    send = second.send
    second.send = lambda actions: (sent.append(len(actions)), send(actions))
    rng = np.random.default_rng(0)
    for t in range(20):
        move = rng.integers(0, env.num_actions, 5).astype(np.int32)
        ours = grouped.step(env.only(np.arange(5) < (5 if t < 10 else 4), move), nobody)
        theirs = plain.step(move, nobody)
        playing = 5 if t < 10 else 4
        check_same([[x[:playing] for x in ours[:5]]], [[x[:playing] for x in theirs[:5]]])
    assert sent == [1] * 10
    plain.close()
    grouped.close()


@pytest.mark.slow
def test_groups_of_games_begin_side_by_side():
    """Five games are two groups. One that began after the other would wait for it in vain."""
    env = env_of("pong").for_evaluation()
    games, all_here = env.make(5), threading.Barrier(2, timeout=60)

    def waiting(reset):
        return lambda *args: (all_here.wait(), reset(*args))

    for group in games.groups:
        group._reset = waiting(group._reset)
    seen = games.step(env.no_actions(5), np.arange(5))
    assert seen.reset.all()
    games.close()


@pytest.mark.slow
def test_a_journal_leads_back_to_where_games_were():
    """Of unequal histories, one of which was reset with a seed on the way."""
    env = env_of("breakout")
    vector = env.make(2)
    seed = np.array([1, 2])
    journal = fleets.open_journal(env, seed)
    rollout = fleets.HostRollout(vector, fleets.begin(env, vector, seed), journal, 0)
    rollout.journal = rollout.journal._replace(next_seed=np.array([5, 6]))
    for move in actions(env, 260):
        rollout.advance(move)
    journal = rollout.close()
    assert journal.since.min() > 0
    assert journal.since[0] != journal.since[1]
    other = env.make(2)
    fleet, same = fleets.replay_journal(env, other, rollout.fleet, journal, rollout.t)
    assert same is journal
    for move in actions(env, 30, seed=1):
        one = fleets.advance(vector, fleet, move, NO)
        assert np.array_equal(one.obs, fleets.advance(other, fleet, move, NO).obs)
    vector.close()
    other.close()


def test_misuse_is_refused_where_the_emulator_would_hang():
    vector = env_of("breakout").make(2, 60.0)
    with pytest.raises(RuntimeError, match="first step"):
        vector.send(np.zeros(2, int), NO)
    with pytest.raises(RuntimeError, match="recv must follow"):
        vector.recv()
    start = vector.step(NO, np.array([1, 2]))
    with pytest.raises(idrl.IdrlError, match="actions 0 to 3; it was given 4"):
        vector.send(np.array([0, 4]), NO)
    with pytest.raises(idrl.IdrlError, match="seeds below"):
        vector.send(NO, np.array([0, 2**31]))
    vector.send(np.zeros(2, int), NO)
    with pytest.raises(RuntimeError, match="followed by recv"):
        vector.send(np.zeros(2, int), NO)
    again = vector.step(NO, np.array([1, 2]))  # who begins anew need not receive first
    check_same([start], [again])
    vector.send(np.zeros(2, int), NO)
    vector.close()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("atari/breakot", "unknown Atari game 'breakot'; did you mean 'breakout'"),
        ("atari/pong?stick=1", "unknown option 'stick'; did you mean 'sticky'"),
        ("atari/pong?threads=1", "unknown option 'threads'"),
        ("atari/pong?sticky=2", "a probability is from 0 to 1"),
        ("atari/pong?sticky=often", "'often' is not a number"),
        ("atari/pong?release=yes", "release is 0 or 1, not 'yes'"),
        ("atari", "did you mean 'atari/GAME'"),
    ],
)
def test_bad_names(name, says):
    with pytest.raises(idrl.IdrlError, match=says):
        make_env(name)


def test_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(idrl.IdrlError, match=r"pip install 'idrl\[atari\]'"):
        make_env("atari/pong").make(1)


def test_every_game_is_there():
    from ale_py import roms

    assert len(GAMES) == 57
    assert set(GAMES) <= set(roms.get_all_rom_ids())
    env = make_env("atari/pong?sticky=0.25&life_loss=0")
    assert (env.name, env.sticky, env.life_loss) == (
        "atari/pong?sticky=0.25&life_loss=0",
        0.25,
        False,
    )
    assert (env.obs_shape, env.shown_shape, env.num_actions) == ((84, 84, 4), (84, 84), 6)
