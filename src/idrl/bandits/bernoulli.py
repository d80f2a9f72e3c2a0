"""Arms that succeed or fail: A/B tests, click rates, yes-or-no trials."""

from __future__ import annotations

import copy

import numpy as np

from idrl.bandits.checks import as_count, as_index, as_positive
from idrl.bandits.posterior import Beta
from idrl.errors import IdrlError


class BetaBernoulli:
    """Unrelated arms that succeed or fail, with Beta(a, b) priors.

    A test already under way is a = 1 + successes, b = 1 + failures.

    Args:
        arms: how many.
        a: one number or one per arm.
        b: one number or one per arm.
    """

    def __init__(self, arms: int, *, a=1.0, b=1.0) -> None:
        arms = as_count(arms, "arms")
        self.candidates = np.arange(arms, dtype=float)[:, None]
        self.belief = Beta(as_positive(a, arms, "a"), as_positive(b, arms, "b"))
        self.count = 0

    @property
    def mean(self) -> np.ndarray:
        return self.belief.mean

    @property
    def sigma(self) -> np.ndarray:
        return np.sqrt(self.belief.variance)

    @property
    def cov(self) -> np.ndarray:
        return self.belief.cov

    @property
    def rho2(self) -> np.ndarray:
        """`[n]` the expected variance p(1 − p) of one outcome; it needs no telling."""
        return self.belief.rho2

    def _at_candidates(self, index) -> np.ndarray:
        return as_index(index, len(self.candidates))

    def _with_points(self, points):
        raise IdrlError("arms have no coordinates; `observe` them by their number.")

    def _observed(self, index: np.ndarray, values: np.ndarray, noise_variance) -> BetaBernoulli:
        if noise_variance is not None:
            raise IdrlError(
                "an outcome of 0 or 1 has no noise_variance of its own; it follows from the "
                "probability."
            )
        wrong = ~np.isin(values, (0, 1))
        if wrong.any():
            raise IdrlError(f"an outcome must be 0 or 1, and one is {values[wrong][0]:g}.")
        new = copy.copy(self)
        for i, value in zip(index, values, strict=True):
            new.belief = new.belief.update(i, value)
        new.count = self.count + len(values)
        return new
