"""Atari as the authors' released code plays it, and games that draw themselves."""

import cv2
import jax
import numpy as np
import pytest
from atari_reference import NO, REFERENCES, Nature, actions, check_same, record

from idrl.envs.families.atari.env import AtariEnv, open_game
from idrl.envs.families.atari.release import shrink
from idrl.inspect.walking import walk
from idrl.training.hosted import fleet as fleets
from idrl.training.seeding import env_seeds


def test_shrinking_equals_opencv():
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (40, 210, 160), dtype=np.uint8)
    blocks = np.kron(rng.integers(0, 256, (40, 21, 16)), np.ones((10, 10))).astype(np.uint8)
    game = open_game("seaquest", 0, 0.0)
    game.reset_game()
    frames = []
    for _ in range(60):
        game.act(game.getMinimalActionSet()[1])
        frames.append(game.getScreenGrayscale())
    for frame in (*noise, *blocks, *frames):
        expected = cv2.resize(frame, (84, 84), interpolation=cv2.INTER_AREA)
        assert np.array_equal(shrink(frame), expected)


@pytest.mark.parametrize(("game", "fire"), [("breakout", [1, 2]), ("ms_pacman", [])])
@pytest.mark.parametrize("training", [True, False])
def test_equals_a_plain_reference(game, fire, training):
    """No-ops and FIRE at a start, and in training again after each lost life."""
    env = AtariEnv(game, release=True)
    vector = (env if training else env.for_evaluation()).make(2)
    plain = Nature({"breakout": "Breakout", "ms_pacman": "MsPacman"}[game], 7)
    noops = np.random.default_rng(7)
    moves = actions(env, 400)
    over, restarting, restarts = True, False, 0
    for move, seen in zip([NO, *moves], record(vector, [7, 8], moves), strict=True):
        first = over or restarting
        if over:
            frame, reward = plain.start(noops.integers(1, 31), fire), 0.0
        elif restarting:
            frame, reward = plain.go_on([0] * noops.integers(1, 31) + fire)
        if first:
            restarts += not over
            over = lost = False
        else:
            frame, reward, over, lost = plain.step(move[0])
        restarting = lost and training
        assert (seen.reset[0], seen.terminated[0], seen.reward[0]) == (first, over, reward)
        assert (seen.life_lost[0] if training else None) == (lost if training else None)
        if not over:
            assert np.array_equal(seen.obs[0], frame)
    vector.close()
    assert (restarts > 0) == training


def test_a_lost_life_begins_an_episode_but_not_a_score():
    env = AtariEnv("breakout", release=True)
    assert env.repeat_first
    assert env.timeout_terminates
    vector = env.make(2)
    fleet = fleets.begin(env, vector, np.array([3, 4]))
    total, taken, lives, games, scored = np.zeros(2), np.zeros(2), 0, 0, False
    for move in actions(env, 500):
        before, fleet = fleet, fleets.advance(vector, fleet, move, NO)
        anew = before.ended
        total, taken = (
            np.where(anew, 0, total) + fleet.reward,
            np.where(anew, 0, taken + ~fleet.first),
        )
        assert np.array_equal(fleet.episode_return, total)
        assert np.array_equal(fleet.episode_length, taken)
        lives += int((fleet.first & ~anew).sum())
        games += int(fleet.ended.sum())
        scored |= bool(total.any())
    vector.close()
    assert games > 1
    assert lives >= 4 * games
    assert scored


@pytest.mark.parametrize("game", REFERENCES)
def test_a_drawn_game_is_the_same_game(game):
    """Its colours come from a second one, which must go the same way."""
    env = AtariEnv(game, sticky=0.25)
    plain, drawn = env.make(2), env.drawn().make(2)
    moves = actions(env, 120)
    told = {0: [], 1: []}
    for which, games in enumerate(drawn.games):
        games.recv = lambda recv=games.recv, which=which: (
            told[which].append(recv()) or told[which][-1]
        )
    seen, pictures = [drawn.step(NO, np.array([5, 6]))], [drawn.picture()]
    for move in moves:
        seen.append(drawn.step(move, NO))
        pictures.append(drawn.picture())
    check_same(record(plain, [5, 6], moves), seen)
    assert plain.picture() is None
    plain.close()
    drawn.close()
    for grey, coloured in zip(told[0], told[1], strict=True):
        for a, b in zip(grey[1:4], coloured[1:4], strict=True):
            assert np.array_equal(a, b)
        assert all(np.array_equal(grey[4][key], coloured[4][key]) for key in grey[4])
    for picture, step in zip(pictures, seen, strict=True):
        assert picture.shape == (210, 160, 3)
        luminance = picture @ np.array([0.299, 0.587, 0.114])
        apart = np.abs(shrink(luminance).astype(int) - step.obs[0])
        assert np.mean(apart) < 2  # the brighter of two colours is not quite that of two greys


@pytest.mark.parametrize("release", [False, True])
def test_a_walk_shows_stacks_and_pictures(release):
    env = AtariEnv("breakout", release=release)
    key = jax.random.key(0)
    steps, moves = walk(env.drawn(), key), actions(env, 60)[:, 0]
    sights = [next(steps), *(steps.send(move) for move in moves)]
    steps.close()
    vector = env.for_evaluation().make(1)
    seed = env_seeds(jax.random.key_data(key)[None], "score", 0, 1)[0]
    none = np.array([-1])
    frames = [vector.step(none, seed).obs[0]]
    frames += [vector.step(np.array([move]), none).obs[0] for move in moves]
    vector.close()
    past = frames[0] if release else np.zeros_like(frames[0])
    frames = [past] * 3 + frames
    for t, sight in enumerate(sights):
        assert np.array_equal(sight.obs, np.stack(frames[t : t + 4], -1))
        assert sight.picture.shape == (210, 160, 3)
    assert len({sight.picture.tobytes() for sight in sights}) > 20
