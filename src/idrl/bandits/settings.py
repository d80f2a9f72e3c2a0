"""Problems to compare the rules on. Problem `seed` is the same whatever else is run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from idrl.bandits.kernels import covariance, square_root
from idrl.bandits.posterior import Beta, Gaussian

QUIET, LOUD = 0.02, 4.0  # the least ρ² of the two smooth settings, and what the noise adds at most


class Problem(NamedTuple):
    """One draw of a setting: what the rule is told, and what it must find out."""

    prior: Gaussian | Beta
    truth: np.ndarray  # [n] expected reward
    rho2: np.ndarray  # [n] variance of the reward
    points: np.ndarray  # [n, d]


class Setting(NamedTuple):
    line: str  # what it is
    steps: int
    problem: Callable[[int], Problem]


@functools.cache
def _gp_prior(candidates: int) -> tuple[np.ndarray, np.ndarray]:
    points = np.linspace(0, 1, candidates)[:, None]
    return points, square_root(covariance("rbf", points, lengthscale=0.2))


def gp(seed: int, candidates: int = 50) -> Problem:
    """The paper's toy, of which it gives the idea and no numbers; these are ours.

    A function drawn from the prior, RBF with lengthscale 0.2 and variance 1, on an even grid of
    [0, 1]. ρ²(x) = 0.02 + 4·sin⁴(2πx): two loud hills, each within a lengthscale of a quiet place,
    so that the neighbours can teach what is hard to measure directly.
    """
    points, factor = _gp_prior(candidates)
    truth = factor @ _generator("gp", seed).standard_normal(factor.shape[1])
    rho2 = QUIET + LOUD * np.sin(2 * np.pi * points[:, 0]) ** 4
    return Problem(Gaussian(np.zeros(candidates), factor), truth, rho2, points)


def linear(seed: int, k: int = 30, d: int = 5, r: float = 1.0) -> Problem:
    """After Kirschner and Krause (2018): k actions on the unit sphere of R^d, ρ_i from U(0, r).

    θ ~ N(0, I/d), so that values are of size 1/√d; ρ_i is at least r/100, as no noise at all would
    tell everything at once.
    """
    generator = _generator("linear", seed)
    rho = np.maximum(generator.uniform(0, r, k), r / 100)
    return _linear(generator, k, d, rho)


def two_group(seed: int, k: int = 30, d: int = 5) -> Problem:
    """The linear setting with ρ = 1.0 for a random half of the actions and 0.2 for the others."""
    generator = _generator("two-group", seed)
    rho = generator.permutation(np.where(np.arange(k) < k // 2, 1.0, 0.2))
    return _linear(generator, k, d, rho)


def _linear(generator: np.random.Generator, k: int, d: int, rho: np.ndarray) -> Problem:
    actions = generator.standard_normal((k, d))
    actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    theta = generator.standard_normal(d) / np.sqrt(d)
    prior = Gaussian(np.zeros(k), actions / np.sqrt(d))
    return Problem(prior, actions @ theta, rho**2, actions)


@functools.cache
def _camelback() -> Problem:
    # An odd number of rows and columns includes the middle, where the saddle is.
    x, y = np.meshgrid(np.linspace(-2, 2, 15), np.linspace(-1, 1, 11), indexing="ij")
    points = np.stack([x.ravel(), y.ravel()], 1)
    height = -((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (-4 + 4 * y**2) * y**2).ravel()
    truth = (height - height.mean()) / height.std()
    rho2 = QUIET + LOUD * (np.sin(np.pi * points[:, 0]) * np.sin(2 * np.pi * points[:, 1])) ** 2
    # Lengthscale and variance of largest likelihood for these values, on a grid of tenths.
    factor = square_root(covariance("rbf", points, lengthscale=0.6, variance=4.4))
    return Problem(Gaussian(np.zeros(len(points)), factor), truth, rho2, points)


def camelback(seed: int) -> Problem:
    """The six-hump camelback, upside down and standardised, on a grid of 15 × 11 points.

    ρ²(x, y) = 0.02 + 4·sin²(πx)·sin²(2πy). Seeds differ in the noise they draw, in nothing else.
    """
    return _camelback()


def bernoulli(seed: int, arms: int = 10) -> Problem:
    """As in Russo and Van Roy (2018): success probabilities from U(0, 1), 1,000 steps."""
    truth = _generator("bernoulli", seed).uniform(size=arms)
    prior = Beta(np.ones(arms), np.ones(arms))
    return Problem(prior, truth, truth * (1 - truth), np.arange(arms, dtype=float)[:, None])


def _generator(setting: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, *setting.encode()])


SETTINGS: dict[str, Setting] = {
    "gp": Setting("a smooth function, its noise in two loud hills", 500, gp),
    "linear": Setting("30 actions in R⁵, each with its own noise", 500, linear),
    "two-group": Setting("30 actions in R⁵, half of them loud", 500, two_group),
    "camelback": Setting("the six-hump camelback under uneven noise", 500, camelback),
    "bernoulli": Setting("10 arms that succeed or fail", 1000, bernoulli),
}
