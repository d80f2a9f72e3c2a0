"""The noise of a measurement, learnt from the measurements themselves.

A second model of the same kind lives on the logarithm of the noise variance. A residual e of the
first model says log e² = log ρ² + log χ²₁, whose mean and variance are known numbers, so learning
from it is again a Gaussian update; the two models take turns until they agree.
"""

from __future__ import annotations

import numpy as np

from idrl.bandits.posterior import Gaussian

_LOG_CHI2_MEAN = -1.2703628454614782  # E log χ² with one degree of freedom: −γ − log 2
_LOG_CHI2_VARIANCE = np.pi**2 / 2
_REPORTED_VARIANCE = 0.1  # of the log of a variance the user reports: right to about a third
_LEVEL_VARIANCE = 4.0  # of the log of the overall level: the guess may be off by a factor of 50
_SHAPE_VARIANCE = 4.0  # of the log from one place to another: factors of 7 either way are usual
_ROUNDS = 8


def replay(prior: Gaussian, index, values, noise) -> tuple[Gaussian, float]:
    """The posterior after all observations, and the log of their probability under the prior."""
    belief, evidence = prior, 0.0
    for i, value, rho2 in zip(index, values, noise, strict=True):
        row = belief.factor[i]
        total = row @ row + rho2
        evidence -= 0.5 * (np.log(2 * np.pi * total) + (value - belief.mean[i]) ** 2 / total)
        belief = belief.update(i, value, rho2)
    return belief, float(evidence)


def log_noise_prior(alike: np.ndarray, guess: float) -> Gaussian:
    """Log-noise at every point: an unknown level around log `guess`, and a shape on top.

    `alike` `[n, m]`, rows of length 1, says by their products which points have similar noise.
    """
    level = np.full((len(alike), 1), np.sqrt(_LEVEL_VARIANCE))
    factor = np.hstack([level, np.sqrt(_SHAPE_VARIANCE) * alike])
    return Gaussian(np.full(len(factor), np.log(guess)), factor)


def fit_noise(prior: Gaussian, log_prior: Gaussian, index, values, reported) -> np.ndarray:
    """ρ² `[n]` of every point; `reported` `[t]` is a variance the user gave, or NaN."""
    rho2 = np.exp(log_prior.mean)
    given = np.isfinite(reported)
    for _ in range(_ROUNDS):
        noise = np.where(given, reported, rho2[index])
        belief, _ = replay(prior, index, values, noise)
        # How far an observation has pulled the mean towards itself. Dividing by 1 − pull undoes
        # the shrinking of its residual; the less is left of it, the less it says about the noise.
        pull = np.clip(belief.variance[index] / noise, 0, 1 - 1e-6)
        squared = (values - belief.mean[index]) ** 2 / (1 - pull)
        # A residual of exactly 0 is luck, not a measurement without noise.
        logs = np.log(np.maximum(squared, 1e-4 * noise)) - _LOG_CHI2_MEAN
        spread = _LOG_CHI2_VARIANCE / (1 - pull) ** 2
        logs = np.where(given, np.log(np.where(given, reported, 1.0)), logs)
        spread = np.where(given, _REPORTED_VARIANCE, spread)
        rho2 = np.exp(replay(log_prior, index, logs, spread)[0].mean)
    return rho2
