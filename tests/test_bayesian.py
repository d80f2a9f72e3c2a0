"""The Bayesian head's posterior: against plain NumPy, and without calls that may wait for ever."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl.networks.heads import Bayesian, Transition
from idrl.networks.heads.bayesian import Regressed, inverse_root

HEAD = Bayesian(k=4000, hidden=(6,), prior_std=0.5, noise_std=0.7)
ACTIONS, FEATURES, BATCH, SCALE = 2, 6, 40, 3.0


@pytest.fixture(scope="module")
def said():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(BATCH, FEATURES)).astype(np.float32)
    values = rng.normal(size=(3, BATCH, ACTIONS)).astype(np.float32)
    outs = [Regressed(v, np.zeros((BATCH, 1, ACTIONS)), features) for v in values]
    action = rng.integers(0, ACTIONS, BATCH)
    reward, discount = rng.normal(size=(2, BATCH)).astype(np.float32)
    return outs, Transition(features, action, reward, np.abs(discount), features)


def refit(said, key):
    outs, batch = said
    params = {"params": {"mean": 0, "drawn": 0, "kept": 1}}
    return HEAD.refit(params, HEAD.evidence(*outs, batch), SCALE, key)["params"]


def test_the_posterior_is_that_of_linear_regression(said):
    (_, online, target), batch = said
    found = refit(said, jax.random.key(1))
    assert found["kept"] == 1
    best = online.mean.argmax(-1)
    y = batch.r_t + batch.discount_t * target.mean[np.arange(BATCH), best]
    for action in range(ACTIONS):
        mine = batch.a_tm1 == action
        x = np.repeat(batch.s_tm1[mine].astype(float), int(SCALE), 0)  # each counts for SCALE
        precision = x.T @ x / 0.7**2 + np.eye(FEATURES) / 0.5**2
        cov = np.linalg.inv(precision)
        mean = cov @ x.T @ np.repeat(y[mine], int(SCALE)) / 0.7**2
        np.testing.assert_allclose(found["mean"][:, action], mean, rtol=1e-3, atol=1e-4)
        drawn = np.asarray(found["drawn"][:, :, action], float)
        np.testing.assert_allclose(drawn.mean(0), mean, atol=4 * np.sqrt(cov.max() / HEAD.k))
        np.testing.assert_allclose(np.cov(drawn.T), cov, atol=6 * cov.max() / np.sqrt(HEAD.k))


def test_the_root_is_that_of_the_inverse():
    x = np.random.default_rng(1).normal(size=(100, 64))
    precision = x.T @ x + np.eye(64)
    root = np.asarray(inverse_root(jnp.asarray(precision, jnp.float32)), float)
    np.testing.assert_allclose(root.T @ root @ precision, np.eye(64), atol=1e-3)


def test_the_mean_of_the_draws_is_the_posterior_s(said):
    found = refit(said, jax.random.key(2))
    np.testing.assert_allclose(found["drawn"].mean(0), found["mean"], atol=1e-4)


@pytest.mark.parametrize("size", [32, 256])
def test_a_root_of_features_that_are_all_alike_is_of_the_prior_s_size(size):
    # What rounding leaves of 1e5 - 1e5 is larger than the prior's 0.01.
    x = np.repeat(np.random.default_rng(2).normal(size=(100_000, 1)), size, 1).astype(np.float32)
    root = np.asarray(inverse_root(jnp.asarray(x.T @ x + 0.01 * np.eye(size)), 0.01))
    assert np.isfinite(root).all()
    assert np.abs(root).max() <= 10.1  # 1 / sqrt(0.01)


def test_fitting_calls_no_lapack(said):
    # With a device per core a batched call of it deadlocks.
    keys = jax.random.split(jax.random.key(0), 2)
    text = jax.jit(jax.vmap(lambda key: refit(said, key))).lower(keys).as_text()
    assert "lapack" not in text
