"""Ask and tell: what is suggested and why, and what bad input is told."""

import jax
import numpy as np
import pytest

from idrl import IdrlError, ids
from idrl.bandits import (
    RULES,
    BanditRule,
    BetaBernoulli,
    GaussianArms,
    GaussianProcess,
    LinearGaussian,
    named_rule,
    observe,
    observe_at,
    suggest,
)

X = np.linspace(0, 1, 15)
RHO2 = 0.05 + X


@pytest.fixture
def model():
    prior = GaussianProcess(X, lengthscale=0.2, noise_variance=RHO2)
    return observe(prior, [2, 9, 12, 2], [0.3, 1.0, -0.5, 0.2])


# -- the same Decision as the deep agents' -----------------------------------------------------


def test_ids_is_idrl_ids_on_the_posterior(model):
    got = suggest(model, "ids", lam=1.5)
    expected = ids.decide_moments(model.mean, model.sigma**2, RHO2, lam=1.5, eps2=1e-12)
    assert isinstance(got, ids.Decision)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs)
        assert isinstance(ours, np.ndarray | np.integer)
    assert got.mu.dtype == np.float64


def test_the_ucb_gain_uses_the_posterior_covariance(model):
    got = suggest(model, "ids", info_gain="ucb")
    u = (model.mean + 2 * model.sigma).argmax()
    shared = model.cov[u] ** 2 / (model.sigma[u] ** 2 * (RHO2 + model.sigma**2))
    np.testing.assert_allclose(got.info_gain, -np.log(1 - shared) + 1e-12)
    assert got.action == suggest(model, "ids-ucb").action


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["gp", "linear", "arms", "beta"])
def test_every_rule_serves_every_model(rule, kind, model):
    made = {
        "gp": model,
        "linear": LinearGaussian(np.stack([X, 1 - X], 1), noise_variance=lambda x: 0.1 + x[:, 0]),
        "arms": GaussianArms(4, noise_variance=[0.1, 1, 0.1, 1]),
        "beta": BetaBernoulli(3, a=[1, 2, 3]),
    }[kind]
    decision = suggest(made, rule)
    n = len(made.candidates)
    assert 0 <= decision.action < n
    assert all(np.shape(part) == (n,) for part in decision[1:])
    assert np.isfinite(decision.ratio).all()
    np.testing.assert_allclose(decision.probs.sum(), 1)
    assert decision.probs[decision.action] > 0
    assert (decision.regret >= 0).all()
    assert (decision.info_gain > 0).all()


def test_ucb_greedy_and_expected_improvement_by_hand():
    model = GaussianArms(3, mean=[0.0, 1.0, 0.9], variance=[9.0, 0.01, 1.0], noise_variance=1.0)
    assert suggest(model, "greedy").action == 1
    assert suggest(model, "ucb", lam=0.5).action == 0  # 1.5, 1.05, 1.4
    assert suggest(model, "ucb", lam=0.3).action == 2  # 0.9, 1.03, 1.2
    # E max(v − 1, 0): 3·(φ(1/3) − Φ(−1/3)/3) = 0.764, 0.1·φ(0) = 0.040, φ(.1) − .1·Φ(−.1) = 0.351
    assert suggest(model, "ei").action == 0
    model = observe(model, 0, -1.0, noise_variance=1e-3)
    assert suggest(model, "ei").action == 2


def test_thompson_takes_each_point_as_often_as_it_is_best():
    model = GaussianArms(2, mean=[0.0, 1.0], noise_variance=1.0)
    taken = np.mean([suggest(model, "thompson", seed=seed).action for seed in range(600)])
    assert abs(taken - 0.7602) < 0.06  # Φ(1/√2)


def test_a_draw_repeats_until_something_is_observed():
    model = GaussianArms(50, noise_variance=100.0)
    first = suggest(model, "thompson", seed=3).action
    assert first == suggest(model, "thompson", seed=3).action
    later = [suggest(model := observe(model, 0, 0.0), "thompson", seed=3).action for _ in range(5)]
    assert len({int(first), *map(int, later)}) > 1


def test_without_correlation_the_ucb_gain_makes_ids_ucb():
    rng = np.random.default_rng(0)
    for _ in range(20):
        model = GaussianArms(
            6, mean=rng.standard_normal(6), variance=rng.uniform(0.1, 2, 6), noise_variance=1.0
        )
        assert suggest(model, "ids-ucb").action == suggest(model, "ucb").action


def test_vids_is_russo_and_van_roys():
    model = BetaBernoulli(3, a=[3.0, 2.0, 1.0], b=[1.0, 2.0, 1.0])
    got = suggest(model, "vids", seed=5)
    draws = np.random.default_rng(0).beta([3, 2, 1], [1, 2, 1], (200_000, 3))
    regret = draws.max(1).mean() - np.array([3 / 4, 1 / 2, 1 / 2])
    np.testing.assert_allclose(got.regret, regret, atol=0.04)
    best = draws.argmax(1)
    gain = sum(
        (best == a).mean() * (draws[best == a].mean(0) - draws.mean(0)) ** 2 for a in range(3)
    )
    np.testing.assert_allclose(got.info_gain, gain, atol=0.01)


def test_models_never_change(model):
    before = (model.mean.copy(), model.cov.copy(), model.count)
    observe(model, 3, 5.0)
    observe_at(model, [0.123], [5.0], noise_variance=1.0)
    np.testing.assert_array_equal(model.mean, before[0])
    np.testing.assert_array_equal(model.cov, before[1])
    assert model.count == before[2]


def test_the_global_precision_is_left_alone(model):
    suggest(model, "thompson")
    assert not jax.config.jax_enable_x64


# -- documented safe behaviour -----------------------------------------------------------------


def test_one_candidate_is_suggested():
    model = GaussianProcess([0.5], noise_variance=1.0)
    for rule in RULES:
        assert suggest(model, rule).action == 0


def test_equal_candidates_share_what_is_seen():
    model = GaussianProcess([0.1, 0.9, 0.9, 0.1], lengthscale=0.2, noise_variance=0.01)
    model = observe(model, 1, 2.0)
    np.testing.assert_allclose(model.mean[1], model.mean[2], rtol=1e-12)
    np.testing.assert_allclose(model.sigma[1], model.sigma[2], rtol=1e-6)
    for rule in RULES:
        decision = suggest(model, rule)
        for name in ("mu", "sigma", "regret", "info_gain", "ratio"):
            pairs = getattr(decision, name)
            np.testing.assert_allclose(pairs[:2], pairs[[3, 2]], rtol=1e-6)


@pytest.mark.parametrize("rule", ["ucb", "greedy", "ei", "ids", "ids-ucb", "ids-additive"])
def test_ties_go_to_the_lowest_index_in_spite_of_rounding(rule):
    model = GaussianProcess(np.linspace(0, 1, 50), lengthscale=0.2, noise_variance=0.1)
    assert suggest(model, rule).action == 0


def test_candidates_far_too_close_are_no_trouble():
    x = np.linspace(0, 1e-6, 30)
    model = GaussianProcess(x, lengthscale=1.0, noise_variance=1e-6)
    model = observe(model, np.arange(30), np.ones(30))
    np.testing.assert_allclose(model.mean, 1, atol=1e-5)
    assert np.isfinite(suggest(model).ratio).all()


# -- one clear sentence ------------------------------------------------------------------------

ASYMMETRIC = np.array([[1.0, 0.5], [0.2, 1.0]])
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])


def gp(**changed):
    return GaussianProcess(**{"candidates": [0.0, 1.0], "noise_variance": 1.0, **changed})


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: gp(kernel=INDEFINITE), "not positive semi-definite"),
        (lambda: gp(kernel=ASYMMETRIC), "not symmetric"),
        (lambda: gp(kernel=np.zeros((2, 2))), "no positive eigenvalue"),
        (lambda: gp(kernel=np.full((2, 2), np.nan)), "NaN or infinite"),
        (lambda: gp(kernel=np.eye(3)), "row and a column for each of the 2"),
        (lambda: gp(kernel=lambda x: -np.eye(len(x))), "no positive eigenvalue"),
        (lambda: gp(kernel="rfb"), "did you mean 'rbf'"),
        (lambda: gp(kernel=np.eye(2), lengthscale=1.0), "belong to the named kernels"),
        (lambda: gp(lengthscale=0), "lengthscale must be positive"),
        (lambda: gp(lengthscale=[1, 2]), "lengthscale must be one number or 1"),
        (lambda: gp(variance=-1.0), "variance must be positive"),
        (lambda: gp(mean=np.nan), "mean must be finite"),
        (lambda: gp(noise_variance=0), "noise_variance must be positive"),
        (lambda: gp(noise_variance=-0.1), "noise_variance must be positive"),
        (lambda: gp(noise_variance=[1.0, 0.0]), "noise_variance must be positive"),
        (lambda: gp(noise_variance=np.nan), "noise_variance must be positive"),
        (lambda: gp(noise_variance=[1.0, 1.0, 1.0]), "one number or 2"),
        (lambda: gp(noise_variance=lambda x: 0 * x[:, 0]), "noise_variance.points. must be pos"),
        (lambda: gp(noise_variance="guess"), "a function or 'fitted'"),
        (lambda: gp(candidates=[]), "is empty"),
        (lambda: gp(candidates=[0.0, np.nan]), "row 1 is not"),
        (lambda: gp(candidates=np.zeros((2, 2, 2))), "shape"),
        (lambda: gp(candidates=["a", "b"]), "must be numbers"),
        (lambda: gp(candidates=[[1, 2], [3]]), "every row of the same length"),
        (lambda: GaussianArms(0, noise_variance=1), "whole number, 1 or more"),
        (lambda: GaussianArms(2, noise_variance=1, variance=[1, 0]), "variance must be positive"),
        (lambda: LinearGaussian([[1.0]], noise_variance=1, prior_variance=0), "must be positive"),
        (lambda: BetaBernoulli(2, a=0), "a must be positive"),
        (lambda: BetaBernoulli(2.5), "whole number"),
        (lambda: observe(gp(), 0, np.nan), "observation 0 is nan"),
        (lambda: observe(gp(), [0, 1], [1.0, np.inf]), "observation 1 is inf"),
        (lambda: observe(gp(), 2, 1.0), "no candidate 2; they are numbered 0 to 1"),
        (lambda: observe(gp(), -1, 1.0), "no candidate -1"),
        (lambda: observe(gp(), 0.5, 1.0), "`observe_at` the coordinates"),
        (lambda: observe(gp(), [0, 1], 1.0), "must be that of the points measured, 2"),
        (lambda: observe(gp(), 0, 1.0, noise_variance=0.0), "noise_variance must be positive"),
        (lambda: observe_at(gp(), [[1.0, 2.0]], 1.0), "as many coordinates"),
        (lambda: observe_at(gp(kernel=np.eye(2)), [0.3], 1.0), "knows its candidates only"),
        (lambda: observe_at(gp(noise_variance=[1, 2]), [0.3], 1.0), "at the candidates only"),
        (lambda: observe_at(GaussianArms(2, noise_variance=1), [0.5], 1.0), "arms are unrelated"),
        (lambda: observe_at(BetaBernoulli(2), [0.5], 1.0), "no coordinates"),
        (lambda: observe(BetaBernoulli(2), 0, 0.5), "must be 0 or 1"),
        (lambda: observe(BetaBernoulli(2), 0, 1, noise_variance=1.0), "follows from the prob"),
        (lambda: suggest(np.zeros(3)), "ndarray is not a model of idrl.bandits"),
        (lambda: observe(None, 0, 1.0), "NoneType is not a model"),
        (lambda: observe_at([], [0.5], 1.0), "list is not a model"),
        (lambda: suggest(gp(), "idss"), "did you mean 'ids'"),
        (lambda: suggest(gp(), "ids", lamb=1), "did you mean 'lam'"),
        (lambda: suggest(gp(), "ids", info_gain="entropy"), "unknown info_gain 'entropy'"),
        (lambda: suggest(gp(), "ids", lam=-1.0), "0 or above"),
        (lambda: suggest(gp(), "vids", draws=0), "1 or more"),
        (lambda: suggest(gp(), "ucb", policy="additive"), "belongs to the ids rules"),
        (lambda: suggest(gp(), "ids", beta=2.0), "belongs to policy='additive'"),
        (lambda: suggest(gp(), "ids", draws=10), "draws belong to"),
        (lambda: suggest(gp(), BanditRule(), lam=1.0), "has them already"),
        (lambda: named_rule("ids", kind="ucb"), "unknown option 'kind'"),
    ],
)
def test_bad_input_is_told_in_one_sentence(made, sentence):
    with pytest.raises(IdrlError, match=sentence) as told:
        made()
    assert "\n" not in str(told.value)
    assert str(told.value).rstrip().endswith((".", "?"))
