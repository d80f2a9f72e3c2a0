"""idrl.ids against numbers worked out by hand, plain loops, brute force and its own docstring."""

import functools
import itertools
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from idrl import ids

# The examples are fixed, so that a run of the tests says the same twice.
quick = settings(max_examples=60, deadline=None, derandomize=True)

# Compiling takes most of the time here: let XLA try less hard.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def jitted(function):
    """`function` on JAX arrays, under jit: one compilation, not one per operation."""

    def call(*arrays, mask=None, key=None, **options):
        arrays = [None if x is None else jnp.asarray(x) for x in arrays]
        mask = None if mask is None else jnp.asarray(mask)
        return jit(lambda a, m, k: function(*a, mask=m, key=k, **options))(arrays, mask, key)

    return call


both = pytest.mark.parametrize("decide", [ids.decide, jitted(ids.decide)], ids=["numpy", "jax"])

# Every combination of the parts that needs no random key.
REGRETS_AND_GAINS = list(itertools.product(ids.REGRETS, ids.INFO_GAINS))


def random_heads(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


# -- by hand -----------------------------------------------------------------------------------


@both
def test_dqn_ids_two_heads_two_actions(decide):
    # a0: 1, 1 → μ 1, σ² 0.   a1: 0, 2 → μ 1, σ² 1.
    # best = max(1 + 0, 1 + 0.1) = 1.1
    # regret: 1.1 − 1 = 0.1 and 1.1 − (1 − 0.1) = 0.2
    # gain: log 1 + 1e-5 = 1e-5 and log 2 + 1e-5 = 0.6931572
    # ratio: 0.01 / 1e-5 = 1000 and 0.04 / 0.6931572 = 0.0577070
    d = decide(np.array([[1.0, 0.0], [1.0, 2.0]]))
    np.testing.assert_allclose(d.mu, [1, 1])
    np.testing.assert_allclose(d.sigma, [0, 1])
    np.testing.assert_allclose(d.regret, [0.1, 0.2], rtol=1e-5)
    np.testing.assert_allclose(d.rho2, [1, 1])
    np.testing.assert_allclose(d.info_gain, [1e-5, 0.6931572], rtol=1e-5)
    np.testing.assert_allclose(d.ratio, [1000, 0.0577070], rtol=1e-4)
    np.testing.assert_array_equal(d.probs, [0, 1])
    assert d.action == 1


@both
def test_dqn_ids_three_heads_three_actions(decide):
    # a0: 2, 2, 2  → μ 2, σ² 0
    # a1: 0, 3, 3  → μ 2, σ² (4+1+1)/3 = 2, σ 1.4142136
    # a2: −1, 0, 1 → μ 0, σ² 2/3, σ 0.8164966
    # best = 2 + 0.14142136; regret: 0.14142136, 0.28284271, 2.14142136 + 0.08164966 = 2.2230710
    # gain: 1e-5, log 3 + 1e-5 = 1.0986223, log(5/3) + 1e-5 = 0.5108356
    # ratio: 0.02 / 1e-5 = 2000, 0.08 / 1.0986223 = 0.0728185, 4.9420448 / 0.5108356 = 9.674433
    d = decide(np.array([[2.0, 0.0, -1.0], [2.0, 3.0, 0.0], [2.0, 3.0, 1.0]]))
    np.testing.assert_allclose(d.regret, [0.14142136, 0.28284271, 2.2230710], rtol=1e-5)
    np.testing.assert_allclose(d.info_gain, [1e-5, 1.0986223, 0.5108356], rtol=1e-5)
    np.testing.assert_allclose(d.ratio, [2000, 0.0728185, 9.674433], rtol=1e-4)
    assert d.action == 1


# a0: 0, 2 → μ 1, σ² 1.   a1: 0.2, 1.8 → μ 1, σ² 0.64, σ 0.8.
# best = 1.1; regret: 1.1 − 0.9 = 0.2 and 1.1 − 0.92 = 0.18
HEADS = [[0.0, 0.2], [2.0, 1.8]]


@both
def test_dqn_ids_takes_the_more_uncertain_action(decide):
    # gain: log 2 + 1e-5 = 0.6931572, log 1.64 + 1e-5 = 0.4947062
    # ratio: 0.04 / 0.6931572 = 0.0577070, 0.0324 / 0.4947062 = 0.0654934
    d = decide(np.array(HEADS))
    np.testing.assert_allclose(d.regret, [0.2, 0.18], rtol=1e-5)
    np.testing.assert_allclose(d.ratio, [0.0577070, 0.0654934], rtol=1e-4)
    assert d.action == 0


@both
def test_c51_ids_turns_away_from_the_noisier_action(decide):
    # The same heads, but the return of a0 is noisy: Var = 9, 1 with mean 5.
    # ρ²: 9/5.00001 = 1.7999964; 1/5.00001 = 0.2 is below the floor → 0.25
    # gain: log(1 + 1/1.8) + 1e-5 = 0.4418434, log(1 + 0.64/0.25) + 1e-5 = log 3.56 = 1.2697705
    # ratio: 0.04 / 0.4418434 = 0.0905298, 0.0324 / 1.2697705 = 0.0255164
    d = decide(np.array(HEADS), np.array([9.0, 1.0]))
    np.testing.assert_allclose(d.rho2, [1.7999964, 0.25], rtol=1e-6)
    np.testing.assert_allclose(d.info_gain, [0.4418434, 1.2697705], rtol=1e-5)
    np.testing.assert_allclose(d.ratio, [0.0905298, 0.0255164], rtol=1e-4)
    assert d.action == 1


def test_c51_ids_without_the_floor():
    # ρ²(a1) = 0.2: gain log(1 + 3.2) = log 4.2 = 1.4350845
    d = ids.decide(np.array(HEADS), np.array([9.0, 1.0]), rho2_floor=0.0)
    np.testing.assert_allclose(d.rho2, [9 / 5.00001, 1 / 5.00001], rtol=1e-12)
    np.testing.assert_allclose(d.info_gain[1], 1.4350845, rtol=1e-5)


def test_eps1_keeps_a_return_without_variance_finite():
    # Var = 0 everywhere: ρ² = 0 / (1e-5 + 0) = 0, and the floor lifts it to 0.25.
    d = ids.decide(np.array(HEADS), np.zeros(2))
    np.testing.assert_array_equal(d.rho2, [0.25, 0.25])
    # Var = 1e-5 everywhere is as large as ε₁: half of what normalising alone would give.
    d = ids.decide(np.array(HEADS), np.full(2, 1e-5))
    np.testing.assert_allclose(d.rho2, [0.5, 0.5])


def test_other_noises():
    q, variance = np.array(HEADS), np.array([9.0, 1.0])
    np.testing.assert_array_equal(ids.decide(q, variance, noise="return").rho2, [9, 1])
    np.testing.assert_array_equal(ids.decide(q, variance, noise="constant", rho2=3).rho2, [3, 3])
    # (9 + 1e-4) / (5 + 1e-4), (1 + 1e-4) / (5 + 1e-4): no floor
    smoothed = ids.decide(q, variance, noise="smoothed").rho2
    np.testing.assert_allclose(smoothed, [9.0001 / 5.0001, 1.0001 / 5.0001], rtol=1e-12)
    tempered = ids.decide(q, variance, noise="tempered", rho2=0.5, eps1=0.0).rho2
    np.testing.assert_allclose(tempered, [0.5 + 9 / 5, 0.5 + 1 / 5], rtol=1e-12)


def test_noise_may_be_given_per_action():
    d = ids.decide(np.array(HEADS), rho2=np.array([1.0, 0.1]))
    np.testing.assert_allclose(d.info_gain, [math.log(2) + 1e-5, math.log(7.4) + 1e-5])


def test_lam_weighs_uncertainty_in_the_regret():
    # λ = 1: best = 1 + 1 = 2; regret: 2 − 0 = 2 and 2 − 0.2 = 1.8
    d = ids.decide(np.array(HEADS), lam=1.0)
    np.testing.assert_allclose(d.regret, [2.0, 1.8])


@both
def test_ties_go_to_the_lowest_index(decide):
    # All heads agree that all actions are equal: every regret and ratio is 0.
    assert decide(np.ones((3, 3))).action == 0
    # a1 and a2 are twins, and better than a0.
    d = decide(np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 2.0], [0.0, 1.0, 1.0]]))
    assert d.ratio[1] == d.ratio[2] < d.ratio[0]
    assert d.action == 1


# -- properties --------------------------------------------------------------------------------

# Multiples of 1/8 with 4 heads: means and variances are exact, so equal actions tie exactly.
eighths = st.integers(-32, 32).map(lambda i: i / 8)


@st.composite
def problems(draw):
    actions = draw(st.integers(2, 4))
    column = st.lists(eighths, min_size=4, max_size=4)
    return np.array(draw(st.lists(column, min_size=actions, max_size=actions))).T


def no_ties(ratio):
    first, second = np.sort(ratio)[:2]
    return second > first * (1 + 1e-9) + 1e-9


@quick
@given(problems(), eighths)
def test_adding_a_constant_to_all_values_leaves_the_action(q, constant):
    plain, shifted = ids.decide(q), ids.decide(q + constant)
    assume(no_ties(plain.ratio))
    assert plain.action == shifted.action
    np.testing.assert_allclose(plain.regret, shifted.regret, atol=1e-12)
    np.testing.assert_allclose(plain.info_gain, shifted.info_gain)


@quick
@given(problems(), st.data())
def test_permuting_the_actions_permutes_the_decision(q, data):
    variance = 1.0 + np.arange(q.shape[-1])
    order = np.array(data.draw(st.permutations(range(q.shape[-1]))))
    plain, permuted = ids.decide(q, variance), ids.decide(q[:, order], variance[order])
    assume(no_ties(plain.ratio))
    assert order[permuted.action] == plain.action
    for name in ("mu", "sigma", "regret", "rho2", "info_gain", "ratio", "probs"):
        np.testing.assert_allclose(getattr(plain, name)[order], getattr(permuted, name))


@quick
@given(
    st.lists(st.floats(1, 100), min_size=2, max_size=4),
    st.floats(1, 1e6),
)
def test_the_scale_of_the_return_variance_cancels(variance, scale):
    # With Var ≥ 1 the share of ε₁ = 1e-5 is at most 1e-5.
    variance = np.array(variance)
    like = np.zeros_like(variance)
    small = ids.observation_noise(like, variance)
    large = ids.observation_noise(like, scale * variance)
    np.testing.assert_allclose(small, large, rtol=2e-5)


@quick
@given(problems())
def test_regret_is_never_negative_and_gain_is_positive(q):
    for regret, gain in REGRETS_AND_GAINS:
        d = ids.decide(q, regret=regret, info_gain=gain)
        assert (d.regret >= 0).all()
        assert (d.info_gain >= 1e-5).all()


# -- arrays in, arrays out ---------------------------------------------------------------------


@pytest.mark.parametrize("policy", ids.POLICIES)
@pytest.mark.parametrize(("regret", "gain"), REGRETS_AND_GAINS)
def test_numpy_float64_in_gives_numpy_float64_out(regret, gain, policy):
    q, variance = random_heads(0, 5, 3), np.array([1.0, 2.0, 3.0])
    d = ids.decide(q, variance, regret=regret, info_gain=gain, policy=policy, key=jax.random.key(0))
    for name, value in d._asdict().items():
        assert isinstance(value, np.ndarray), name
        assert value.dtype == (np.int32 if name == "action" else np.float64), name


def test_float32_stays_float32():
    d = ids.decide(random_heads(0, 5, 3).astype(np.float32), np.ones(3, np.float32))
    assert {value.dtype for value in d[1:]} == {np.dtype(np.float32)}


def test_jax_in_gives_jax_out():
    q = jnp.asarray(random_heads(0, 5, 3))
    for value in ids.decide(q):
        assert isinstance(value, jax.Array)
    # One JAX argument is enough.
    for value in ids.decide(np.asarray(q), jnp.ones(3)):
        assert isinstance(value, jax.Array)


SETTINGS = [
    {},
    {"regret": "bayes", "info_gain": "variance", "policy": "additive", "beta": 0.5},
    {"info_gain": "ucb", "policy": "randomized", "key": jax.random.key(3), "noise": "smoothed"},
]


@pytest.mark.parametrize("options", SETTINGS)
def test_jit_and_vmap_equal_the_plain_call(options):
    q = random_heads(1, 6, 4, 3).astype(np.float32)
    variance = (random_heads(2, 6, 3) ** 2).astype(np.float32)

    def decide(q, variance):
        return ids.decide(q, variance, **options)

    plain = decide(q, variance)  # in NumPy, where nothing is compiled
    under_jit, over_states = jit(decide)(q, variance), jit(jax.vmap(decide))(q, variance)
    for name in plain._fields:
        a, b, c = (np.asarray(getattr(d, name)) for d in (plain, under_jit, over_states))
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=name)
        # Under vmap each state would draw with the same key: compare what is not drawn.
        if not (options.get("policy") == "randomized" and name == "action"):
            np.testing.assert_allclose(a, c, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("policy", ids.POLICIES)
@pytest.mark.parametrize(("regret", "gain"), REGRETS_AND_GAINS)
def test_leading_batch_shapes(regret, gain, policy):
    q, variance = random_heads(3, 2, 3, 5, 4), random_heads(4, 2, 3, 4) ** 2
    mask = np.ones((2, 3, 4), bool)
    mask[0, 1, 2] = mask[1, 2, 0] = False
    options = {"regret": regret, "info_gain": gain, "policy": policy, "key": jax.random.key(0)}
    batch = ids.decide(q, variance, mask=mask, **options)
    assert batch.action.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        one = ids.decide(q[i, j], variance[i, j], mask=mask[i, j], **options)
        for name in one._fields[1:]:
            np.testing.assert_allclose(
                getattr(batch, name)[i, j], getattr(one, name), rtol=1e-9, atol=1e-12
            )
        if policy != "randomized":  # a batch draws other numbers than one state
            assert batch.action[i, j] == one.action


def test_decide_is_decide_moments_on_its_moments():
    q, variance = random_heads(5, 6, 3), np.array([0.5, 1.0, 4.0])
    mu, sigma2 = ids.moments(q)
    np.testing.assert_allclose(sigma2, np.var(q, axis=0))  # biased
    rho2 = ids.observation_noise(mu, variance)
    for regret, gain in REGRETS_AND_GAINS:
        options = {"regret": regret, "info_gain": gain}
        one = ids.decide(q, variance, **options)
        two = ids.decide_moments(mu, sigma2, rho2, samples=q, **options)
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)


def test_whole_numbers_are_as_good_as_floats():
    # Heads typed as integers must not make integers of what is computed from them.
    q = [[0, 1, 5], [1, 0, 3], [1, 0, 5]]
    for regret, gain in REGRETS_AND_GAINS:
        options = {"regret": regret, "info_gain": gain}
        whole, real = ids.decide(q, **options), ids.decide(np.array(q, float), **options)
        for name, a, b in zip(whole._fields, whole, real, strict=True):
            np.testing.assert_allclose(a, b, err_msg=f"{name} with {options}")
    whole = ids.decide_moments([1, 0], [0.5, 2.5], 0.5)
    for a, b in zip(whole, ids.decide_moments([1.0, 0.0], [0.5, 2.5], 0.5), strict=True):
        np.testing.assert_allclose(a, b)


# -- numbers gone wrong, and masks -------------------------------------------------------------


WRONG = (np.nan, np.inf, -np.inf)


def assert_condemned(d, bad, good):
    """Action `bad` is out of the question, and the rest is decided as if it were not there."""
    d = ids.Decision(*map(np.asarray, d))
    left = np.delete(np.arange(d.probs.shape[-1]), bad)
    assert d.action == left[good.action]
    assert d.probs[bad] == 0
    assert np.isposinf(d.regret[bad])
    assert np.isposinf(d.ratio[bad])
    for name in ("regret", "info_gain", "ratio", "probs"):
        np.testing.assert_allclose(getattr(d, name)[left], getattr(good, name), 2e-4, 1e-5)


def one_of(d, i):
    return ids.Decision(*(np.asarray(value)[i] for value in d))


@both
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("regret", "gain"), REGRETS_AND_GAINS)
def test_one_wrong_number_in_one_head_condemns_its_action(decide, regret, gain):
    options = {"regret": regret, "info_gain": gain}
    cases = list(itertools.product(WRONG, range(3)))
    q = random_heads(6, len(cases), 4, 3)
    good = [ids.decide(np.delete(q[i], bad, 1), **options) for i, (_, bad) in enumerate(cases)]
    for i, (wrong, bad) in enumerate(cases):
        q[i, 2, bad] = wrong
    d = decide(q, **options)
    for i, (_, bad) in enumerate(cases):
        assert_condemned(one_of(d, i), bad, good[i])


@both
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("noise", ["normalized", "smoothed", "tempered", "return"])
def test_a_wrong_return_variance_condemns_only_its_action(decide, noise):
    q, variance = random_heads(7, 2, 4, 3), np.array([[0.5, 1.0, 2.0]] * 2)
    good = ids.decide(np.delete(q, 1, -1), np.delete(variance, 1, -1), noise=noise)
    variance[:, 1] = [np.nan, np.inf]
    d = decide(q, variance, noise=noise)
    for i in range(2):
        assert_condemned(one_of(d, i), 1, one_of(good, i))


def test_infinite_heads_raise_no_warning():
    # NaN passes in silence, so an infinity, handled just as well, should too.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ids.decide(np.array([[np.nan, 1.0], [0.0, 1.0]])).action == 1
        assert ids.decide(np.array([[np.inf, 1.0], [0.0, 1.0]])).action == 1


@both
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("policy", ids.POLICIES)
def test_where_no_action_is_left_the_answer_is_minus_one(decide, policy):
    q, mask = np.ones((5, 3, 2)), np.ones((5, 2), bool)
    q[0] = np.nan
    q[2] = np.inf
    mask[3] = False
    q[4, :, 0], mask[4] = np.nan, [True, False]  # the only allowed action went wrong
    d = decide(q, mask=mask, policy=policy, key=jax.random.key(0))
    assert d.action.tolist() == [-1, 0, -1, -1, -1]  # the sound state among them is untouched
    np.testing.assert_array_equal(d.probs, [[0, 0], [1, 0], [0, 0], [0, 0], [0, 0]])
    assert np.isposinf(np.delete(d.ratio, 1, axis=0)).all()


@both
@pytest.mark.parametrize("policy", ids.POLICIES)
def test_a_masked_action_is_as_if_it_were_not_there(decide, policy):
    q, rho2 = random_heads(8, 5, 4), np.array([1.0, 2.0, 1.0, 0.5])
    q[:, 2] += 10  # the forbidden action would set everyone's regret
    mask = np.array([True, True, False, True])
    gains = ids.INFO_GAINS if decide is ids.decide else ("ucb",)
    for regret, gain in itertools.product(ids.REGRETS, gains):
        options = {"regret": regret, "info_gain": gain, "policy": policy}
        options["key"] = jax.random.key(0)
        d = decide(q, rho2=rho2, mask=mask, **options)
        assert_condemned(d, 2, ids.decide(q[:, mask], rho2=rho2[mask], **options))


@both
@pytest.mark.parametrize("noise", ids.NOISES)
def test_a_masked_action_has_no_part_in_the_noise_of_others(decide, noise):
    # What is said of its variance was never learned, and would scale the noise of all.
    q, variance = random_heads(8, 5, 4), np.array([0.5, 1.0, 1e6, 1.5])
    mask = np.array([True, True, False, True])
    d = decide(q, variance, mask=mask, noise=noise)
    expected = ids.decide(q[:, mask], variance[mask], noise=noise)
    assert_condemned(d, 2, expected)
    np.testing.assert_allclose(np.asarray(d.rho2)[mask], expected.rho2, 1e-5)


def test_a_masked_action_is_never_drawn():
    shape = (2000, 4)
    mu = np.broadcast_to([0.0, 0.1, 5.0, 0.2], shape)
    sigma2 = np.broadcast_to([0.01, 1.0, 9.0, 4.0], shape)
    mask = np.array([True, True, False, True])
    d = ids.decide_moments(mu, sigma2, 1.0, mask=mask, policy="randomized", key=jax.random.key(1))
    assert 2 not in d.action
    assert (d.probs[:, 2] == 0).all()


def test_overflowing_ratios_still_choose_an_allowed_action():
    # regret² overflows for every allowed action: all ratios are inf, as is the forbidden one's.
    mu = np.array([0.0, 1.0, -1.0])
    d = ids.decide_moments(mu, np.full(3, 1e300), 1.0, mask=np.array([False, True, True]), lam=1e10)
    assert np.isposinf(d.ratio).all()
    assert d.action == 1


def test_no_noise_teaches_much_but_finitely():
    d = ids.decide(np.array(HEADS), rho2=0.0)
    assert np.isfinite(d.info_gain).all()
    assert (d.info_gain > 100).all()


def test_without_eps2_an_action_without_gain_has_the_limits_of_the_ratio():
    # σ² = 0 everywhere: no gain. The best action costs nothing (ratio 0), the other something.
    d = ids.decide(np.array([[1.0, 0.0], [1.0, 0.0]]), eps2=0.0)
    np.testing.assert_array_equal(d.info_gain, [0, 0])
    np.testing.assert_array_equal(d.ratio, [0, np.inf])
    assert d.action == 0


# -- other regrets and gains, against plain loops -----------------------------------------------


def loop_bayes_regret(q):
    heads, actions = q.shape
    regret = []
    for a in range(actions):
        total = 0.0
        for k in range(heads):
            total += max(q[k]) - q[k][a]
        regret.append(total / heads)
    return regret


def loop_ucb_gain(q, rho2, lam, eps2):
    heads, actions = q.shape
    mu = [sum(q[:, a]) / heads for a in range(actions)]

    def covariance(a, b):
        return sum((q[k, a] - mu[a]) * (q[k, b] - mu[b]) for k in range(heads)) / heads

    upper = [mu[a] + lam * math.sqrt(covariance(a, a)) for a in range(actions)]
    u = upper.index(max(upper))
    gains = []
    for a in range(actions):
        if covariance(u, u) == 0:
            gains.append(eps2)
            continue
        explained = covariance(u, a) ** 2 / (covariance(u, u) * (rho2[a] + covariance(a, a)))
        gains.append(-math.log(1 - explained) + eps2)
    return gains


def loop_variance_gain(q, eps2):
    heads, actions = q.shape
    greedy_on: dict[int, list[int]] = {}
    for k in range(heads):
        greedy_on.setdefault(list(q[k]).index(max(q[k])), []).append(k)
    gains = []
    for a in range(actions):
        mean = sum(q[:, a]) / heads
        total = 0.0
        for of_best in greedy_on.values():
            conditional = sum(q[k, a] for k in of_best) / len(of_best)
            total += len(of_best) / heads * (conditional - mean) ** 2
        gains.append(total + eps2)
    return gains


@pytest.mark.parametrize(("heads", "actions"), [(2, 2), (5, 3), (10, 4)])
def test_regrets_and_gains_against_plain_loops(heads, actions):
    q = random_heads(9, 20, heads, actions)
    q[0] = np.round(q[0])  # with ties among a head's values
    variance = random_heads(10, 20, actions) ** 2
    for lam in (0.1, 1.0):
        ucb = ids.decide(q, variance, regret="bayes", info_gain="ucb", lam=lam)
        var = ids.decide(q, variance, info_gain="variance", lam=lam)
        for i in range(20):
            expected = loop_ucb_gain(q[i], ucb.rho2[i], lam, 1e-5)
            np.testing.assert_allclose(ucb.info_gain[i], expected, rtol=1e-9)
            np.testing.assert_allclose(ucb.regret[i], loop_bayes_regret(q[i]), atol=1e-12)
            np.testing.assert_allclose(var.info_gain[i], loop_variance_gain(q[i], 1e-5))


def test_gains_in_jax_equal_those_in_numpy():
    q = random_heads(11, 3, 5, 4)
    for regret, gain in REGRETS_AND_GAINS:
        options = {"regret": regret, "info_gain": gain}
        a, b = ids.decide(q, **options), jitted(ids.decide)(q, **options)
        np.testing.assert_allclose(a.info_gain, b.info_gain, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(a.regret, b.regret, rtol=1e-4, atol=1e-6)


def test_ucb_gain_where_the_optimistic_action_is_certain():
    # u = a0 with σ² = 0: nothing is left to learn about it.
    d = ids.decide(np.array([[5.0, 0.0], [5.0, 2.0]]), info_gain="ucb")
    np.testing.assert_array_equal(d.info_gain, [1e-5, 1e-5])


def test_ucb_gain_about_itself_is_the_log_gain():
    # −log(1 − σ²/(ρ²+σ²)) = log(1 + σ²/ρ²)
    q = random_heads(12, 6, 3)
    upper = ids.moments(q)[0] + 0.1 * np.sqrt(ids.moments(q)[1])
    u = upper.argmax()
    log, ucb = ids.decide(q), ids.decide(q, info_gain="ucb")
    np.testing.assert_allclose(ucb.info_gain[u], log.info_gain[u])
    assert (ucb.info_gain <= log.info_gain + 1e-12).all()  # an action teaches most about itself


def test_ucb_gain_takes_a_covariance_in_place_of_samples():
    q = random_heads(13, 7, 6, 3)
    mu, sigma2 = ids.moments(q)
    cov = np.stack([np.cov(one.T, bias=True) for one in q])
    by_cov = ids.decide_moments(mu, sigma2, 1.0, cov=cov, info_gain="ucb")
    by_samples = ids.decide_moments(mu, sigma2, 1.0, samples=q, info_gain="ucb")
    np.testing.assert_allclose(by_cov.info_gain, by_samples.info_gain)


def test_ucb_gain_without_noise_stays_finite():
    # One uncertain direction: every action tells all about u.
    q = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])
    d = ids.decide(q, rho2=0.0, info_gain="ucb")
    assert np.isfinite(d.info_gain).all()
    assert (d.info_gain > 10).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ucb_gain_of_large_values():
    # Scaling Q and ρ² together must leave the gain alone; in float32 C² overflows from σ² ≈ 2e19.
    q, scale = random_heads(14, 6, 3).astype(np.float32), np.float32(2.0**34)
    small = ids.decide(q, info_gain="ucb")
    large = ids.decide(q * scale, rho2=scale**2, info_gain="ucb")
    np.testing.assert_allclose(large.info_gain, small.info_gain, rtol=1e-4)


# -- policies ----------------------------------------------------------------------------------


def test_additive_by_hand():
    # From the first example: regret² 0.01, 0.04; gain 1e-5, 0.6931572.
    q = np.array([[1.0, 0.0], [1.0, 2.0]])
    # β = 0.04: 0.01 − 4e-7 = 0.0099996 against 0.04 − 0.0277263 = 0.0122737 → a0
    assert ids.decide(q, policy="additive", beta=0.04).action == 0
    # β = 0.05: 0.0099995 against 0.04 − 0.0346579 = 0.0053421 → a1
    assert ids.decide(q, policy="additive", beta=0.05).action == 1
    # Without a weight on information only the cost counts.
    assert ids.decide(q, policy="additive", beta=0.0).action == 0


def test_additive_equals_its_formula():
    q = random_heads(15, 200, 5, 4)
    d = ids.decide(q, policy="additive", beta=0.3)
    np.testing.assert_array_equal(d.action, (d.regret**2 - 0.3 * d.info_gain).argmin(-1))
    assert (d.action != ids.decide(q).action).any()  # it is another policy
    np.testing.assert_array_equal(d.probs.argmax(-1), d.action)
    np.testing.assert_array_equal(d.probs.sum(-1), 1)


def random_moments(n, actions):
    """Problems over several orders of magnitude, some with certain actions."""
    rng = np.random.default_rng(16)
    mu = rng.normal(size=(n, actions)) * 10 ** rng.uniform(-2, 1, (n, 1))
    sigma2 = 10 ** rng.uniform(-3, 1, (n, actions)) * (rng.random((n, actions)) > 0.1)
    return mu, sigma2, 10 ** rng.uniform(-1, 1, (n, actions))


def mixed_ratio(probs, d):
    return (probs * d.regret).sum(-1) ** 2 / (probs * d.info_gain).sum(-1)


def test_randomized_against_brute_force_over_two_action_mixtures():
    n, actions = 10_000, 4
    d = ids.decide_moments(*random_moments(n, actions), policy="randomized", key=jax.random.key(0))
    np.testing.assert_allclose(d.probs.sum(-1), 1)
    assert (d.probs >= 0).all()
    value = mixed_ratio(d.probs, d)
    assert (value <= d.ratio.min(-1) * (1 + 1e-9)).all()  # never worse than no randomness

    # The best weight may be tiny, so the grid is fine near 0; both orders of a pair cover 1.
    weights = np.concatenate([[0], np.geomspace(1e-7, 1, 200)])
    best = np.full(n, np.inf)
    for a, b in itertools.permutations(range(actions), 2):
        cost = d.regret[:, a, None] * (1 - weights) + d.regret[:, b, None] * weights
        teach = d.info_gain[:, a, None] * (1 - weights) + d.info_gain[:, b, None] * weights
        best = np.minimum(best, (cost**2 / teach).min(-1))
    assert (value <= best * (1 + 1e-9)).all()
    # The grid steps by 8% and the optimum is flat: it misses by far less than half a percent.
    assert (value >= best * (1 - 5e-3)).all()
    # It is no test if no problem is won by mixing.
    mixes = (d.probs > 0).sum(-1) == 2
    assert mixes.mean() > 0.05
    assert (value[mixes] < d.ratio[mixes].min(-1)).all()
    assert ((d.probs > 0).sum(-1) <= 2).all()


def test_no_mixture_of_more_actions_beats_the_randomized_policy():
    d = ids.decide_moments(*random_moments(1000, 4), policy="randomized", key=jax.random.key(0))
    others = np.random.default_rng(17).dirichlet(np.full(4, 0.3), size=(300, 1))
    assert (mixed_ratio(others, d) >= mixed_ratio(d.probs, d) * (1 - 1e-9)).all()


def test_randomized_by_hand():
    # a0: μ 0, σ 0.   a1: μ −1, σ² = e−1 so that with ρ² = 1 its gain is log e = 1.  λ = 0.
    # best = 0, so regret 0 and 1: a0 costs nothing and its ratio is 0 → never mixed.
    d = ids.decide_moments(
        np.array([0.0, -1.0]), np.array([0.0, math.e - 1]), 1.0, lam=0.0,
        policy="randomized", key=jax.random.key(0),
    )  # fmt: skip
    np.testing.assert_array_equal(d.probs, [1, 0])
    # λσ(a0) lifts both: a0 σ² = 0.01, λ = 1, a1 σ² = e−1, σ 1.3108, μ −1.3108 − 0.9 so that
    # best = 0.1, regret(a0) = 0.1 + 0.1 = 0.2, regret(a1) = 0.1 + 2·1.3108 + 0.9 = 3.6216647
    # gain(a0) = log 1.01 + 1e-5 = 0.00996033, gain(a1) = 1.00001
    # weight of a1 = 0.2/3.4216647 − 2·0.00996033/0.99004967 = 0.0584511 − 0.0201209 = 0.0383302
    sigma = math.sqrt(math.e - 1)
    d = ids.decide_moments(
        np.array([0.0, -sigma - 0.9]), np.array([0.01, math.e - 1]), 1.0, lam=1.0,
        policy="randomized", key=jax.random.key(0),
    )  # fmt: skip
    np.testing.assert_allclose(d.regret, [0.2, 3.6216647], rtol=1e-6)
    np.testing.assert_allclose(d.probs[1], 0.0383302, rtol=1e-5)


@pytest.mark.parametrize(
    "decide", [ids.decide_moments, jitted(ids.decide_moments)], ids=["numpy", "jax"]
)
def test_draws_have_the_frequencies_of_probs(decide):
    n = 20_000
    mu = np.broadcast_to([0.0, -0.5, -9.0], (n, 3))
    sigma2 = np.broadcast_to([0.01, 3.0, 0.1], (n, 3))
    options = {"lam": 1.0, "policy": "randomized"}
    d = decide(mu, sigma2, np.ones((n, 3)), key=jax.random.key(2), **options)
    probs, action = np.asarray(d.probs)[0], np.asarray(d.action)
    # regret 1.332 and 3.464, gain 0.00996 and 1.386 (see the test by hand): 0.625 − 0.0145
    np.testing.assert_allclose(probs, [0.39, 0.61, 0], atol=0.005)
    frequency = np.bincount(action, minlength=3) / n
    np.testing.assert_allclose(frequency, probs, atol=4 * 0.5 / np.sqrt(n))  # 4 standard errors
    assert frequency[2] == 0
    again = decide(mu, sigma2, np.ones((n, 3)), key=jax.random.key(3), **options)
    assert (np.asarray(again.action) != action).any()


# -- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "known"),
    [
        ("regret", "conservative, bayes"),
        ("info_gain", "log, ucb, variance"),
        ("policy", "deterministic, additive, randomized"),
        ("noise", "constant, return, normalized, smoothed, tempered"),
    ],
)
def test_an_unknown_option_names_the_known_ones(option, known):
    with pytest.raises(ValueError, match=f"{option}='nonsense' is not one of {known}"):
        ids.decide(np.ones((2, 2)), np.ones(2), **{option: "nonsense"})


def test_an_unknown_noise_is_refused_also_where_there_is_no_return_variance():
    # The noise is constant then, but a typo should not wait for the day the variance is passed.
    with pytest.raises(ValueError, match="noise='nonsense' is not one of"):
        ids.decide(np.ones((2, 2)), noise="nonsense")


def test_the_randomized_policy_asks_for_its_key():
    with pytest.raises(ValueError, match="policy='randomized' draws its action: pass a .* `key`"):
        ids.decide(np.ones((2, 2)), policy="randomized")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"regret": "bayes"}, "regret='bayes' needs posterior samples"),
        ({"info_gain": "variance"}, "info_gain='variance' needs posterior samples"),
        ({"info_gain": "ucb"}, "info_gain='ucb' without `cov` needs posterior samples"),
    ],
)
def test_missing_samples_are_asked_for(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        ids.decide_moments(np.ones(2), np.ones(2), 1.0, **options)


@pytest.mark.parametrize("noise", ["return", "normalized", "smoothed", "tempered"])
def test_a_missing_return_variance_is_asked_for(noise):
    with pytest.raises(ValueError, match=f"noise='{noise}' needs the variance of the return"):
        ids.observation_noise(np.ones(2), None, noise=noise)


def test_relative_heads_keep_their_mean_and_lose_what_they_say_of_all_actions():
    q = np.array([[1.0, 2.0, 9.0], [11.0, 14.0, 9.0]])  # two heads; the last action is forbidden
    allowed = np.array([True, True, False])
    found = ids.relative(q, allowed)
    # levels 1.5 and 12.5, their mean 7
    np.testing.assert_allclose(found[:, :2], [[6.5, 7.5], [5.5, 8.5]])
    np.testing.assert_allclose(found.mean(0)[:2], q.mean(0)[:2])
    np.testing.assert_allclose(ids.relative(jnp.asarray(q), jnp.asarray(allowed)), found)
    shifted = ids.relative(q + np.array([[5.0], [-3.0]]), allowed)
    np.testing.assert_allclose(shifted.var(0), found.var(0))


def test_relative_heads_pass_over_what_is_not_finite():
    q = np.random.default_rng(3).normal(size=(4, 3))
    spoiled = q.copy()
    spoiled[1, 2] = np.nan
    found, without = ids.relative(spoiled), ids.relative(q, [True, True, False])
    np.testing.assert_allclose(found[:, :2], without[:, :2])
    assert ids.decide(found).action == ids.decide(without[:, :2]).action
    assert np.isfinite(ids.relative(q, np.zeros(3, bool))).all()
