"""Prioritised replay: draws follow priorities, weights undo it; n-step returns stop at ends."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from idrl.replay import ring as ring
from idrl.replay import sum_tree as trees

GAMMA = 0.9
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


assign = jit(trees.assign)
drawn = jit(lambda tree, key: trees.draw(tree, key, 256))


def tree_of(values):
    tree = trees.empty(len(values))
    return assign(tree, np.arange(len(values)), jnp.asarray(values, jnp.float32))


def check_sums(tree):
    for below, above in zip(tree.levels[:-1], tree.levels[1:], strict=True):
        sums = np.asarray(below).reshape(-1, trees.FAN).sum(-1)
        np.testing.assert_allclose(above[: len(sums)], sums, rtol=1e-6)
        assert not np.asarray(above[len(sums) :]).any()


DRAWS = 200_000


@pytest.mark.parametrize("leaves", [1, 129, 20_000])
def test_draws_follow_the_priorities(leaves):
    rng = np.random.default_rng(leaves)
    values = rng.random(leaves) ** 3 * (rng.random(leaves) < 0.7)
    values[leaves // 2] = 0.5
    tree = tree_of(values)
    check_sums(tree)
    draw = jit(trees.draw, static_argnums=2)
    # one stratum a call: draws are then independent, which the test assumes
    one = jit(jax.vmap(lambda key: trees.draw(tree, key, 1)))
    parts = [one(jax.random.split(jax.random.key(i), 50_000)) for i in range(DRAWS // 50_000)]
    drawn, prob = (np.concatenate(x)[:, 0] for x in zip(*jax.device_get(parts), strict=True))
    share = values / values.sum()
    np.testing.assert_allclose(prob, share[drawn], rtol=1e-4)
    counts = np.bincount(drawn, minlength=leaves)
    assert not counts[values == 0].any()
    often = share * DRAWS > 20  # the χ² test wants a few expected in every class
    expected = np.append(share[often], share[~often].sum()) * DRAWS
    seen = np.append(counts[often], counts[~often].sum())
    keep = expected > 0
    if keep.sum() > 1:
        scale = seen[keep].sum() / expected[keep].sum()
        assert stats.chisquare(seen[keep], expected[keep] * scale).pvalue > 1e-3
    # A batch takes one from every equal part of the total: no leaf is far from its share.
    batch, _ = draw(tree, jax.random.key(1), 1000)
    assert (np.abs(np.bincount(batch, minlength=leaves) - 1000 * share) < 2).all()


find = jit(trees.find)


def edges(tree):
    """Every number at which a walk through a tree of two levels may turn, a rounding to either
    side, and what is outside the tree."""
    below, above = (np.asarray(level) for level in tree.levels)
    upto = np.cumsum(above)
    inner = [np.cumsum(below.reshape(-1, trees.FAN)[i]) + (upto[i] - above[i]) for i in range(3)]
    at = np.unique(np.concatenate([upto, *inner, [0.0, -1e-3, -1e30, 1e30]]).astype(np.float32))
    return np.concatenate(
        [at, np.nextafter(at, np.float32(-1e9)), np.nextafter(at, np.float32(1e9))]
    )


EMPTY = {  # which of 384 leaves, three nodes, have no priority
    "in front": lambda leaf: leaf % trees.FAN < 100,
    "behind": lambda leaf: leaf % trees.FAN >= 28,
    "in between": lambda leaf: (leaf % 7 != 3) | (leaf // trees.FAN == 1),
    "all but one": lambda leaf: leaf != 200,
}


@pytest.mark.parametrize("where", EMPTY)
def test_rounding_finds_no_leaf_of_priority_0(where):
    rng = np.random.default_rng(0)
    leaf = np.arange(3 * trees.FAN)
    for scale in (1.0, 1e-6, 1e6):
        values = np.where(EMPTY[where](leaf), 0.0, scale * rng.random(len(leaf)) ** 6)
        tree = tree_of(values)
        rest = edges(tree)
        padded = np.resize(rest, 4096)  # one shape: one program
        found, own = find(tree, jnp.asarray(padded))
        assert (own > 0).all()
        np.testing.assert_array_equal(own, np.asarray(tree.levels[0])[found])


def test_nothing_is_drawn_from_nothing():
    where, prob = drawn(tree_of(np.zeros(300)), jax.random.key(0))
    assert np.isnan(prob).all()  # the seed stops, rather than learn from what is not there
    assert (np.asarray(where) < 300).all()


def test_of_two_values_for_one_leaf_the_larger_stays():
    tree = tree_of(np.ones(200))
    tree = assign(tree, np.array([5, 5, 150, 5]), jnp.asarray([0.2, 0.9, 3.0, 0.4]))
    np.testing.assert_allclose(tree.levels[0][np.array([5, 150, 6])], [0.9, 3.0, 1.0])
    check_sums(tree)


def row(time, envs, valid, terminated):
    env = np.arange(envs)
    return ring.Row(
        obs=np.stack([env, np.full(envs, time)], -1).astype(np.int32),
        action=np.zeros(envs, np.int32),
        reward=(1.0 + env + 10.0 * time).astype(np.float32),
        terminated=np.array([terminated(time, e) for e in env]),
        valid=np.array([valid(time, e) for e in env]),
    )


add = jit(ring.add, static_argnums=3)


@functools.cache
def sampler(n_step, batch):
    return jit(
        lambda replay, key, written: ring.sample(replay, key, written, batch, GAMMA, n_step, 1.0)
    )


def filled(rows, written, n_step, prioritised, envs=2, valid=None, terminated=None):
    valid = valid or (lambda time, env: True)
    terminated = terminated or (lambda time, env: False)
    replay = ring.empty(row(0, envs, valid, terminated), rows, prioritised)
    for time in range(written):
        replay = add(replay, row(time, envs, valid, terminated), np.int32(time), n_step)
    return replay


def sampled(replay, written, n_step, batch=600, seed=0):
    return jax.device_get(sampler(n_step, batch)(replay, jax.random.key(seed), jnp.int32(written)))


@pytest.mark.parametrize("prioritised", [False, True])
@pytest.mark.parametrize("written", [5, 8, 13, 40])
@pytest.mark.parametrize("n_step", [1, 3])
def test_n_step_returns_stop_at_ends_and_limits(n_step, written, prioritised):
    # Environment 0 terminates at every 5th step; environment 1 has a dead row every 7th.
    ends = lambda time, env: env == 0 and time % 5 == 4  # noqa: E731
    alive = lambda time, env: not (env == 1 and time % 7 == 6)  # noqa: E731
    rows = 8
    replay = filled(rows, written, n_step, prioritised, valid=alive, terminated=ends)
    batch = sampled(replay, written, n_step)
    seen = set()
    for i in range(len(batch.r_t)):
        env, time = (int(x) for x in batch.s_tm1[i])
        assert alive(time, env)
        assert written - 1 - time >= n_step
        total, discount, end, over = 0.0, 1.0, time, False
        while end < time + n_step and not over and (end == time or alive(end, env)):
            total += discount * (1 + env + 10 * end)
            discount *= GAMMA
            over = ends(end, env)
            end += 1
        np.testing.assert_allclose(batch.r_t[i], total, rtol=1e-5)
        np.testing.assert_allclose(batch.discount_t[i], 0 if over else discount, rtol=1e-5)
        if not over:
            assert batch.s_t[i].tolist() == [env, end]
        seen.add((env, time))
    oldest = max(0, written - rows)
    everything = {
        (e, t) for e in range(2) for t in range(oldest, written - n_step) if alive(t, e)
    }  # fmt: skip
    assert seen == everything


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 1e-12, 1e-6, 0.1, 1.0, 1e6]), min_size=300, max_size=300),
    st.integers(0, 299),
    st.integers(0, 2**31 - 1),
)
def test_whatever_the_priorities_weights_are_finite(values, one, seed):
    values[one] = 1.0  # at least one transition is stored
    tree = tree_of(values)
    _, own = find(tree, jnp.asarray(np.resize(edges(tree), 4096)))
    assert (own > 0).all()
    replay = ring.empty(row_shape(), 150, True)._replace(priorities=tree)
    batch = sampled(replay, 150, 1, batch=256, seed=seed)
    assert (np.asarray(tree.levels[0])[batch.where] > 0).all()
    assert np.isfinite(batch.weight).all()
    assert (batch.weight > 0).all()


def test_sampling_follows_priorities_after_the_ring_wrapped():
    rows, written, n_step = 16, 45, 1
    replay = filled(rows, written, n_step, True)
    usable = [(t, e) for t in range(written - rows, written - 1) for e in range(2)]
    where = np.array([(t % rows) * 2 + e for t, e in usable])
    td_priority = np.random.default_rng(0).random(len(where)) * 3
    reprioritise = jit(ring.reprioritise, static_argnums=3)
    replay = reprioritise(replay, where, jnp.asarray(td_priority, jnp.float32), 0.6)
    batches = [sampled(replay, written, n_step, 50_000, seed) for seed in range(DRAWS // 50_000)]
    drawn = np.concatenate([b.where for b in batches])
    counts = np.array([(drawn == w).sum() for w in where])
    assert counts.sum() == len(drawn) == DRAWS
    share = (td_priority + 1e-6) ** 0.6
    # Stratified draws vary less than independent ones, so a bound on each count is the test.
    np.testing.assert_allclose(counts / len(drawn), share / share.sum(), atol=2e-5)
    # What a weighted mean of rewards estimates is the plain mean over all transitions.
    rewards = np.concatenate([b.r_t for b in batches])
    weights = np.concatenate([b.weight for b in batches])
    plain = np.mean([1 + e + 10 * t for t, e in usable])
    np.testing.assert_allclose((weights * rewards).sum() / weights.sum(), plain, rtol=1e-3)
    np.testing.assert_allclose(weights.max(), 1.0, rtol=1e-5)


def test_no_priority_spoils_the_sums():
    replay = filled(16, 12, 1, True)
    given = jnp.array([-2.0, 0.0, 3.0, jnp.nan, jnp.inf, -jnp.inf], jnp.float32)
    tree = ring.reprioritise(replay, jnp.arange(6), given, 0.5).priorities
    wanted = np.array([1e-6, 1e-6, 3, 1e-6, 1e6, 1e-6]) ** 0.5
    np.testing.assert_allclose(tree.levels[0][:6], wanted, rtol=1e-5)
    np.testing.assert_allclose(tree.largest, 1e3, rtol=1e-5)


def test_new_transitions_get_the_largest_priority_once_their_successor_is_there():
    replay = filled(8, 4, 1, True)
    replay = ring.reprioritise(replay, np.array([0, 1]), jnp.asarray([4.0, 9.0]), 1.0)
    ends = lambda time, env: False  # noqa: E731
    alive = lambda time, env: env == 0  # noqa: E731
    replay = ring.add(replay, row(4, 2, alive, ends), 4)
    leaves = np.asarray(replay.priorities.levels[0]).reshape(-1, 2)
    np.testing.assert_allclose(leaves[:5], [[4, 9], [1, 1], [1, 1], [9, 9], [0, 0]], rtol=1e-5)
    replay = ring.add(replay, row(5, 2, alive, ends), 5)
    leaves = np.asarray(replay.priorities.levels[0]).reshape(-1, 2)
    np.testing.assert_allclose(leaves[4:6], [[9, 0], [0, 0]], rtol=1e-5)  # row 4: one is dead


def test_a_number_gone_wrong_spoils_no_sum():
    replay = filled(8, 4, 1, True)
    replay = ring.reprioritise(replay, np.array([0, 1]), jnp.asarray([jnp.nan, jnp.inf]), 0.6)
    assert np.isfinite(replay.priorities.levels[0]).all()
    check_sums(replay.priorities)


def test_the_tree_is_changed_in_place():
    # A tree of a million leaves must not be copied at every step of the compiled loop.
    replay = jax.eval_shape(lambda: filled_shape(500_000))

    def step(replay, t):
        replay = ring.add(replay, row_shape(), t, 1)
        batch = ring.sample(replay, jax.random.key(t), t, 32, GAMMA)
        return ring.reprioritise(replay, batch.where, jnp.abs(batch.r_t), 0.6), batch.r_t.sum()

    run = jax.jit(lambda r: jax.lax.scan(step, r, jnp.arange(2, 10)), donate_argnums=0)
    memory = run.lower(replay).compile().memory_analysis()
    leaves = replay.priorities.levels[0].size * 4
    assert memory.temp_size_in_bytes < leaves / 10


def row_shape():
    return ring.Row(
        jnp.zeros((2, 3), jnp.uint8), jnp.zeros(2, jnp.int32), jnp.zeros(2), jnp.zeros(2, bool),
        jnp.ones(2, bool),
    )  # fmt: skip


def filled_shape(rows):
    return ring.empty(row_shape(), rows, True)
