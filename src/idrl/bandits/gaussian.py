"""What the Gaussian process, the linear model and the Gaussian arms share."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from idrl.bandits.checks import as_index, as_points, as_variance
from idrl.bandits.noise import fit_noise, log_noise_prior, replay
from idrl.bandits.posterior import Gaussian
from idrl.errors import IdrlError

Noise = float | np.ndarray | Callable[[np.ndarray], np.ndarray] | str


class GaussianModel:
    """Jointly Gaussian values of the candidates. Models never change; observing gives a new one.

    `noise_variance` is ρ²: one number, one per candidate, a function of points `[n, d]`, or
    "fitted", which learns it from the residuals.
    """

    log_evidence: float  # log-probability of what was observed: the larger, the better the prior

    def __init__(self, points: np.ndarray, noise_variance: Noise) -> None:
        self.candidates = points
        self._points = points  # the candidates, then whatever else was measured
        self._noise = noise_variance
        if isinstance(noise_variance, str) and noise_variance != "fitted":
            raise IdrlError(
                f"noise_variance must be numbers, a function or 'fitted', not {noise_variance!r}."
            )
        self._fitted = isinstance(noise_variance, str)
        self._index = np.zeros(0, int)  # into the points, [t]
        self._values = np.zeros(0)
        self._reported = np.zeros(0)  # NaN where an observation came without its own noise
        self._start()

    @property
    def count(self) -> int:
        """How many observations the model has seen."""
        return len(self._values)

    @property
    def belief(self) -> Gaussian:
        n = len(self.candidates)
        return Gaussian(self._posterior.mean[:n], self._posterior.factor[:n])

    @property
    def mean(self) -> np.ndarray:
        """`[n]`, as it is believed now."""
        return self.belief.mean

    @property
    def sigma(self) -> np.ndarray:
        """`[n]` standard deviation of the belief, noise apart."""
        return np.sqrt(self.belief.variance)

    @property
    def cov(self) -> np.ndarray:
        """`[n, n]`"""
        return self.belief.cov

    @property
    def rho2(self) -> np.ndarray:
        """`[n]` variance of the noise of one measurement."""
        return self._rho2[: len(self.candidates)]

    def _at_candidates(self, index) -> np.ndarray:
        return as_index(index, len(self.candidates))

    def _observed(self, index: np.ndarray, values: np.ndarray, noise_variance) -> GaussianModel:
        reported = np.full(len(index), np.nan)
        if noise_variance is not None:
            reported = as_variance(noise_variance, len(index), "noise_variance")
        new = copy.copy(self)
        new._index = np.append(self._index, index)
        new._values = np.append(self._values, values)
        new._reported = np.append(self._reported, reported)
        if self._fitted:
            new._read_all()  # noise and values depend on one another, so nothing is final
        else:
            noise = np.where(np.isfinite(reported), reported, self._rho2[index])
            if not np.isfinite(noise).all():
                raise IdrlError(
                    "the noise is known at the candidates only; give `noise_variance` with an "
                    "observation of any other point."
                )
            new._posterior, evidence = replay(self._posterior, index, values, noise)
            new.log_evidence = self.log_evidence + evidence
        return new

    def _with_points(self, points) -> tuple[GaussianModel, np.ndarray]:
        """A model that knows these points too, and the number of each in it.

        New points need a new prior over all points and one more reading of the observations.
        """
        points = as_points(points, "points")
        if points.shape[1] != self._points.shape[1]:
            raise IdrlError(
                f"points must have as many coordinates as the candidates, {self._points.shape[1]}, "
                f"and have {points.shape[1]}."
            )
        known, index = self._points, []
        rounding = 1e-12 * (np.abs(self._points).max(0) + np.abs(points).max(0))
        for point in points:
            same = np.flatnonzero((np.abs(known - point) <= rounding).all(1))
            index.append(int(same[0]) if len(same) else len(known))
            known = known if len(same) else np.vstack([known, point])
        if len(known) == len(self._points):
            return self, np.array(index)
        new = copy.copy(self)
        new._points = known
        new._start()
        new._read_all()
        return new, np.array(index)

    def _start(self) -> None:
        """The prior over all points, and the noise before any observation."""
        self._prior = self._posterior = self._prior_over(self._points)
        self.log_evidence = 0.0
        if self._fitted:
            # A tenth of the prior's variance is only where the search for the level begins.
            guess = 0.1 * float(self._prior.variance.mean())
            self._log_prior = log_noise_prior(self._alike(), guess)
            self._rho2 = np.exp(self._log_prior.mean)
        else:
            self._rho2 = self._known_noise()

    def _known_noise(self) -> np.ndarray:
        n, total = len(self.candidates), len(self._points)
        if callable(self._noise):
            return as_variance(self._noise(self._points), total, "noise_variance(points)")
        if np.ndim(self._noise) == 0:
            return as_variance(self._noise, total, "noise_variance")
        rho2 = np.full(total, np.nan)
        rho2[:n] = as_variance(self._noise, n, "noise_variance")
        return rho2

    def _read_all(self) -> None:
        if self.count == 0:
            return
        seen = (self._index, self._values)
        if self._fitted:
            self._rho2 = fit_noise(self._prior, self._log_prior, *seen, self._reported)
        noise = np.where(np.isfinite(self._reported), self._reported, self._rho2[self._index])
        self._posterior, self.log_evidence = replay(self._prior, *seen, noise)

    def _prior_over(self, points: np.ndarray) -> Gaussian:
        raise NotImplementedError

    def _alike(self) -> np.ndarray:
        """Rows of length 1 whose products say how alike the noise of two points is."""
        return np.eye(len(self._points))
