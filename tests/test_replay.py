"""The ring: every drawn transition is one that happened, and every one is as likely."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from idrl.replay import ring as ring

ENVS = 3
GAMMA = 0.9

# Compiling takes most of the time here: let XLA try less hard.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def row(time, envs=ENVS, valid=None, masked=True):
    """What each environment did at `time`; every field tells where it came from."""
    env = np.arange(envs)
    mask = np.stack([(env + time) % 2 == 0, (env + time) % 3 == 0], -1)
    return ring.Row(
        obs=np.stack([env, np.full(envs, time)], -1).astype(np.int32),
        action=(7 * time + env).astype(np.int32),
        reward=(1000.0 * env + time).astype(np.float32),
        terminated=(time + env) % 5 == 0,
        valid=np.ones(envs, bool) if valid is None else np.asarray(valid),
        mask=mask if masked else None,
    )


add = jit(ring.add)


def filled(rows, written, envs=ENVS, valid=lambda time, env: True, masked=True):
    """A ring of `rows` rows after `written` writes."""
    replay = ring.empty(row(0, envs, masked=masked), rows)
    for time in range(written):
        alive = [valid(time, env) for env in range(envs)]
        replay = add(replay, row(time, envs, alive, masked), np.int32(time))
    return replay


@functools.cache
def sampler(batch):
    return jit(lambda replay, key, written: ring.sample(replay, key, written, batch, GAMMA))


def drawn(replay, written, batch=5000, seed=0):
    """A sample, and the environments and times its transitions started from."""
    sample = sampler(batch)(replay, jax.random.key(seed), jnp.int32(written))
    sample = jax.tree.map(np.asarray, sample)
    return sample, sample.s_tm1[:, 0], sample.s_tm1[:, 1]


def test_every_observation_is_stored_once():
    shapes = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, row(0)))
    replay = ring.empty(shapes, 4)
    assert replay.obs.shape == (4, ENVS, 2)
    assert replay.obs.dtype == jnp.int32  # in its own type: a byte stays a byte
    other = [x for x in jax.tree.leaves(replay) if x is not replay.obs]
    assert sum(x[0, 0].size for x in other) == 4 + 2  # action, reward, ended, valid, two heads


@pytest.mark.parametrize("written", [2, 3, 7, 8, 9, 12, 16, 21])  # before, at and after the wrap
def test_every_drawn_transition_happened(written):
    rows = 8
    sample, env, time = drawn(filled(rows, written), written)
    np.testing.assert_array_equal(sample.s_t[:, 0], env)  # the successor is the same environment's
    np.testing.assert_array_equal(sample.s_t[:, 1], time + 1)  # and one step later
    np.testing.assert_array_equal(sample.a_tm1, 7 * time + env)
    np.testing.assert_array_equal(sample.r_t, 1000 * env + time)
    terminated = (time + env) % 5 == 0
    np.testing.assert_allclose(sample.discount_t, np.where(terminated, 0, GAMMA), rtol=1e-6)
    # The masks of the heads travel along.
    np.testing.assert_array_equal(sample.mask[:, 0], (env + time) % 2 == 0)
    np.testing.assert_array_equal(sample.mask[:, 1], (env + time) % 3 == 0)
    # All that is there is drawn, from the oldest kept row to the one before the newest.
    oldest = max(0, written - rows)
    assert set(time.tolist()) == set(range(oldest, written - 1))
    assert set(env.tolist()) == set(range(ENVS))


def test_without_masks_there_is_none():
    sample, _, _ = drawn(filled(8, 5, masked=False), 5, batch=10)
    assert sample.mask is None


def test_the_newest_row_is_never_drawn():
    # Its successor is the oldest row of the ring, another episode or nothing at all.
    for written in (2, 8, 11, 16):
        _, _, time = drawn(filled(8, written), written)
        assert time.max() == written - 2


def chi_square_p(env, time, expected_pairs):
    pairs, counts = np.unique(np.stack([env, time], -1), axis=0, return_counts=True)
    assert set(map(tuple, pairs.tolist())) == expected_pairs
    return stats.chisquare(counts).pvalue


@pytest.mark.parametrize("written", [6, 19])
def test_every_transition_is_as_likely(written):
    rows = 10
    _, env, time = drawn(filled(rows, written), written, batch=50_000)
    everything = {(e, t) for e in range(ENVS) for t in range(max(0, written - rows), written - 1)}
    # A fixed key, so this does not fail by chance: a true p-value is below 1e-3 in 0.1% of keys.
    assert chi_square_p(env, time, everything) > 1e-3


def test_draws_are_independent_of_each_other_and_of_the_key():
    replay = filled(8, 8)
    _, env, time = drawn(replay, 8)
    _, env2, time2 = drawn(replay, 8, seed=1)
    assert (time != time2).any()
    assert (env != env2).any()
    # Environment and time are drawn apart: their correlation is within 4/√5000.
    assert abs(np.corrcoef(env, time)[0, 1]) < 0.06


# -- rows that are no transition ---------------------------------------------------------------


def test_dead_rows_are_never_drawn_and_the_rest_is_uniform():
    # Every tenth row of an environment is dead, each at its own phase, as after time limits.
    rows, written = 40, 93

    def valid(time, env):
        return (time + 3 * env) % 10 != 0

    _, env, time = drawn(filled(rows, written, valid=valid), written, batch=50_000)
    assert valid(time, env).all()
    alive = {(e, t) for e in range(ENVS) for t in range(written - rows, written - 1) if valid(t, e)}
    assert chi_square_p(env, time, alive) > 1e-3


@pytest.mark.parametrize("phase", [0, 1])
@pytest.mark.parametrize("written", [5, 6, 8, 9, 16, 17])
def test_dead_rows_are_never_drawn_where_every_other_row_is_dead(written, phase):
    # Time limits of one step: as many dead rows as there can be, since none follows another. One
    # draw in 16 finds a dead row four times, and falls back on a neighbour; the oldest row may be
    # dead (its predecessor is gone) and so may be the one before the newest.
    def valid(time, env):
        return (time + env) % 2 == phase

    _, env, time = drawn(filled(8, written, valid=valid), written)
    assert valid(time, env).all()
    assert time.max() <= written - 2
    assert time.min() >= max(0, written - 8)


def test_dead_rows_are_never_drawn_where_one_environment_has_most_of_them():
    # Environment 0 lives one step at a time, the others for ever.
    def valid(time, env):
        return (env > 0) | (time % 2 == 1)

    _, env, time = drawn(filled(9, 30, valid=valid), 30, batch=20_000)
    assert valid(time, env).all()
    assert (env == 0).any()


def test_one_environment_whose_only_transitions_are_beside_dead_rows():
    # A single environment, the smallest ring that still holds a transition for sure.
    def valid(time, env):
        return time % 2 == 0

    for written in (3, 4, 5, 6):
        replay = filled(3, written, envs=1, valid=valid)
        _, env, time = drawn(replay, written, batch=2000)
        assert valid(time, env).all()
        assert (time <= written - 2).all()
        assert (time >= written - 3).all()
