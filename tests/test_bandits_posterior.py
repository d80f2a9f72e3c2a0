"""The posterior over the candidates: right by an oracle, by hand, and where numbers get small."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idrl.bandits import (
    BetaBernoulli,
    GaussianArms,
    GaussianProcess,
    LinearGaussian,
    observe,
    observe_at,
)
from idrl.bandits.kernels import covariance, square_root
from idrl.bandits.posterior import Gaussian


def sklearn_kernel(name, lengthscale, variance):
    kernels = pytest.importorskip("sklearn.gaussian_process.kernels")
    if name == "rbf":
        base = kernels.RBF(lengthscale)
    else:
        base = kernels.Matern(lengthscale, nu={"matern12": 0.5, "matern32": 1.5}.get(name, 2.5))
    return kernels.ConstantKernel(variance) * base


@pytest.mark.parametrize("kernel", ["rbf", "matern12", "matern32", "matern52"])
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_posterior_is_scikit_learns(kernel, d, seed):
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    rng = np.random.default_rng(seed)
    candidates = rng.uniform(-1, 1, (40, d))
    lengthscale = rng.uniform(0.2, 1.0, d)
    index = rng.integers(0, 40, 60)  # some candidates more than once
    values, noise = rng.standard_normal(60), rng.uniform(0.01, 1.0, 60)
    model = GaussianProcess(
        candidates, kernel=kernel, lengthscale=lengthscale, variance=1.7, noise_variance=1.0
    )
    model = observe(model, index, values, noise_variance=noise)
    oracle = gaussian_process.GaussianProcessRegressor(
        sklearn_kernel(kernel, lengthscale, 1.7), alpha=noise, optimizer=None
    ).fit(candidates[index], values)
    mean, cov = oracle.predict(candidates, return_cov=True)
    np.testing.assert_allclose(model.mean, mean, atol=1e-6)
    np.testing.assert_allclose(model.cov, cov, atol=1e-6)
    np.testing.assert_allclose(model.sigma, np.sqrt(np.diag(cov)), atol=1e-6)
    np.testing.assert_allclose(
        model.log_evidence, oracle.log_marginal_likelihood_value_, rtol=1e-9, atol=1e-6
    )


def test_points_that_are_no_candidates_teach_as_in_scikit_learn():
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    rng = np.random.default_rng(2)
    candidates, elsewhere = np.linspace(0, 1, 30)[:, None], rng.uniform(0, 1, (25, 1))
    elsewhere[3] = candidates[7]
    values, noise = rng.standard_normal(25), rng.uniform(0.05, 0.5, 25)
    model = GaussianProcess(candidates, lengthscale=0.2, noise_variance=lambda x: 0.1 + x[:, 0])
    half = observe_at(model, elsewhere[:10], values[:10], noise_variance=noise[:10])
    model = observe_at(half, elsewhere[10:], values[10:], noise_variance=noise[10:])
    oracle = gaussian_process.GaussianProcessRegressor(
        sklearn_kernel("rbf", 0.2, 1.0), alpha=noise, optimizer=None
    ).fit(elsewhere, values)
    mean, std = oracle.predict(candidates, return_std=True)
    np.testing.assert_allclose(model.mean, mean, atol=1e-6)
    np.testing.assert_allclose(model.sigma, std, atol=1e-6)
    np.testing.assert_allclose(model.rho2, 0.1 + candidates[:, 0])
    assert (half.count, model.count, len(model.mean)) == (10, 25, 30)


def test_the_linear_model_is_bayesian_regression():
    rng = np.random.default_rng(0)
    features, index = rng.standard_normal((12, 3)), rng.integers(0, 12, 30)
    values, rho2 = rng.standard_normal(30), rng.uniform(0.1, 2, 12)
    model = observe(
        LinearGaussian(features, noise_variance=rho2, prior_variance=2.0), index, values
    )
    seen, weight = features[index], 1 / rho2[index]
    cov = np.linalg.inv(np.eye(3) / 2.0 + (seen.T * weight) @ seen)
    theta = cov @ (seen.T * weight) @ values
    np.testing.assert_allclose(model.mean, features @ theta, atol=1e-10)
    np.testing.assert_allclose(model.cov, features @ cov @ features.T, atol=1e-10)


def test_arms_by_hand():
    model = GaussianArms(3, mean=[0, 1, 2], variance=4.0, noise_variance=1.0)
    model = observe(model, [1, 1], [3.0, 5.0])
    # precision 1/4 + 2, mean (1/4 + 3 + 5) / (9/4)
    np.testing.assert_allclose(model.mean, [0, 8.25 / 2.25, 2])
    np.testing.assert_allclose(model.sigma**2, [4, 1 / 2.25, 4])


def test_beta_by_hand():
    model = observe(BetaBernoulli(2, a=[1, 2], b=[1, 3]), [0, 0, 1], [1, 1, 0])
    # Beta(3, 1) and Beta(2, 4)
    np.testing.assert_allclose(model.mean, [3 / 4, 1 / 3])
    np.testing.assert_allclose(model.sigma**2, [3 / (16 * 5), 8 / (36 * 7)])
    np.testing.assert_allclose(model.rho2, [3 / (4 * 5), 8 / (6 * 7)])
    # the variance of one outcome is the doubt about p and the noise given p
    np.testing.assert_allclose(model.sigma**2 + model.rho2, model.mean * (1 - model.mean))
    assert model.count == 3


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), noise=st.floats(1e-8, 1e3))
def test_one_update_is_the_covariance_downdate(seed, noise):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((6, 4))
    prior = Gaussian(rng.standard_normal(6), factor)
    after = prior.update(2, 1.3, noise)
    gain = prior.cov[:, 2] / (prior.cov[2, 2] + noise)
    np.testing.assert_allclose(after.mean, prior.mean + gain * (1.3 - prior.mean[2]), atol=1e-9)
    np.testing.assert_allclose(after.cov, prior.cov - np.outer(gain, prior.cov[2]), atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_order_of_observations_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    model = GaussianProcess(rng.uniform(0, 1, 8), lengthscale=0.3, noise_variance=0.2)
    index, values = rng.integers(0, 8, 10), rng.standard_normal(10)
    mixed = rng.permutation(10)
    one = observe(model, index, values)
    other = model
    for i in mixed:
        other = observe(other, index[i], values[i])
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-9)
    np.testing.assert_allclose(one.cov, other.cov, atol=1e-9)
    np.testing.assert_allclose(one.log_evidence, other.log_evidence, atol=1e-8)


def test_thousands_of_precise_observations_leave_a_covariance():
    """Where subtracting from the covariance itself ends in something that is none."""
    points = np.linspace(0, 1, 40)[:, None]
    belief = Gaussian(np.zeros(40), square_root(covariance("rbf", points, 0.3)))
    subtracted = belief.cov
    rng = np.random.default_rng(0)
    for i in rng.integers(0, 40, 3000):
        belief = belief.update(i, np.sin(points[i, 0]), 1e-13)
        column = subtracted[:, i]
        subtracted = subtracted - np.outer(column, column) / (column[i] + 1e-13)
    assert np.linalg.eigvalsh(subtracted)[0] < -1e-16
    # About 75 observations each, and the neighbours': between 1e-13/75 and a hundredth of that.
    assert ((belief.variance > 1e-17) & (belief.variance < 1e-13 / 50)).all()
    np.testing.assert_allclose(belief.mean, np.sin(points[:, 0]), atol=1e-6)


def test_jax_and_numpy_agree():
    rng = np.random.default_rng(0)
    prior = Gaussian(rng.standard_normal(5), rng.standard_normal((5, 3)))
    expected = prior.update(1, 0.4, 0.3)
    assert isinstance(expected.mean, np.ndarray)
    with jax.enable_x64(True):
        got = jax.jit(Gaussian.update)(jax.tree.map(jax.numpy.asarray, prior), 1, 0.4, 0.3)
    np.testing.assert_allclose(got.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(got.factor, expected.factor, rtol=1e-12)
    np.testing.assert_allclose(prior.draw(jax.random.key(0), 20_000).mean(0), prior.mean, atol=0.1)
    np.testing.assert_allclose(np.cov(prior.draw(jax.random.key(1), 20_000).T), prior.cov, atol=0.2)


def test_the_square_root_of_a_singular_kernel_needs_no_jitter():
    points = np.repeat(np.linspace(0, 1, 30), 2)[:, None]  # every point twice
    matrix = covariance("rbf", points, 0.3)
    factor = square_root(matrix)
    assert factor.shape[1] <= 30
    np.testing.assert_allclose(factor @ factor.T, matrix, atol=1e-12)


# -- fitted noise ------------------------------------------------------------------------------


def measured(rho2, count, seed):
    """A smooth function measured at random with that noise, and the model that fits the noise."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, 50)
    index = rng.integers(0, 50, count)
    values = np.sin(6 * x[index]) + np.sqrt(rho2(x[index])) * rng.standard_normal(count)
    model = GaussianProcess(x, lengthscale=0.25, noise_variance="fitted")
    return x, observe(model, index, values)


def test_fitted_noise_finds_the_loud_half():
    def noise(x):
        return np.where(x > 0.5, 1.0, 0.01)

    found = np.stack([measured(noise, 200, seed)[1].rho2 for seed in range(5)])
    quiet, loud = found[:, 5:20].mean(), found[:, 30:45].mean()
    assert 0.005 < quiet < 0.04
    assert 0.5 < loud < 2.0


def test_fitted_noise_has_the_right_level_where_it_is_even():
    logs = [np.log(measured(lambda x: 0.2 + 0 * x, 150, seed)[1].rho2 / 0.2) for seed in range(10)]
    assert abs(np.mean(logs)) < 0.2


def test_fitted_noise_believes_what_is_reported():
    x = np.linspace(0, 1, 20)
    model = GaussianProcess(x, lengthscale=0.3, noise_variance="fitted")
    model = observe(model, np.arange(20), np.sin(3 * x), noise_variance=0.01 + x**2)
    np.testing.assert_allclose(np.log(model.rho2), np.log(0.01 + x**2), atol=0.5)
    known = GaussianProcess(x, lengthscale=0.3, noise_variance=0.01 + x**2)
    known = observe(known, np.arange(20), np.sin(3 * x))
    np.testing.assert_allclose(model.mean, known.mean, atol=1e-12)
