"""Gaussian process, linear model and Gaussian arms: each is a prior over the candidates.

No Gaussian-process library: tinygp and GPJax factorise all t observations anew at every step,
O(t³). The square root over the candidates (`posterior.py`) is shorter than the glue to either,
takes O(n·m) a step whatever t, and serves the linear model and the arms as well.
"""

from __future__ import annotations

import numpy as np

from idrl.bandits.checks import as_count, as_finite, as_numbers, as_points, as_positive
from idrl.bandits.gaussian import GaussianModel, Noise
from idrl.bandits.kernels import KERNELS, covariance, square_root
from idrl.bandits.posterior import Gaussian
from idrl.errors import IdrlError


class GaussianProcess(GaussianModel):
    """Functions with similar values at points that the kernel calls similar.

    Equal candidates are allowed: an observation of one holds for the other.

    Args:
        candidates: points that may be measured, `[n, d]` or `[n]`.
        noise_variance: variance of the noise: one number, one per candidate, a function of points
            `[n, d]`, or `"fitted"`, which learns it from residuals or reported variances.
        kernel: `"rbf"`, `"matern12"`, `"matern32"`, `"matern52"`, a function from points `[n, d]`
            to their covariance `[n, n]`, or that matrix for the candidates.
        lengthscale: of a named kernel: one number, or one per coordinate (1).
        variance: of a named kernel (1).
        mean: the value expected before any observation.
    """

    def __init__(
        self,
        candidates,
        *,
        noise_variance: Noise,
        kernel="rbf",
        lengthscale=None,
        variance: float | None = None,
        mean: float = 0.0,
    ) -> None:
        points = as_points(candidates)
        if not isinstance(kernel, str) and not (lengthscale is None and variance is None):
            raise IdrlError(
                f"lengthscale and variance belong to the named kernels ({', '.join(KERNELS)}); "
                "build them into your own kernel."
            )
        lengthscale = 1.0 if lengthscale is None else lengthscale
        self._lengthscale = as_positive(lengthscale, points.shape[1], "lengthscale")
        self._variance = float(as_positive(1.0 if variance is None else variance, 1, "variance")[0])
        self._kernel = kernel
        self._mean = float(as_finite(mean, 1, "mean")[0])
        super().__init__(points, noise_variance)

    def _prior_over(self, points: np.ndarray) -> Gaussian:
        return Gaussian(np.full(len(points), self._mean), square_root(self._covariance(points)))

    def _covariance(self, points: np.ndarray) -> np.ndarray:
        if isinstance(self._kernel, str):
            return covariance(self._kernel, points, self._lengthscale, self._variance)
        if not callable(self._kernel) and len(points) > len(self.candidates):
            raise IdrlError(
                "a kernel given as a matrix knows its candidates only; give a function to observe "
                "other points."
            )
        matrix = self._kernel(points) if callable(self._kernel) else self._kernel
        matrix = as_numbers(matrix, "the kernel matrix")
        if matrix.shape != (len(points), len(points)):
            raise IdrlError(
                f"the kernel matrix must have a row and a column for each of the {len(points)} "
                f"points, and its shape is {matrix.shape}."
            )
        return matrix

    def _alike(self) -> np.ndarray:
        """Points with similar values are taken to have similar noise."""
        length = np.linalg.norm(self._prior.factor, axis=1, keepdims=True)
        return self._prior.factor / np.where(length > 0, length, 1)


class LinearGaussian(GaussianModel):
    """Values x·θ of features x, with θ ~ N(0, prior_variance·I).

    Args:
        features: of the candidates, `[n, d]`.
        noise_variance: variance of the noise: one number, one per candidate, a function of points
            `[n, d]`, or `"fitted"`, which learns it from residuals or reported variances.
        prior_variance: of each weight.
    """

    def __init__(self, features, *, noise_variance: Noise, prior_variance: float = 1.0) -> None:
        self._prior_variance = float(as_positive(prior_variance, 1, "prior_variance")[0])
        super().__init__(as_points(features, "features"), noise_variance)

    def _prior_over(self, points: np.ndarray) -> Gaussian:
        return Gaussian(np.zeros(len(points)), np.sqrt(self._prior_variance) * points)


class GaussianArms(GaussianModel):
    """Unrelated arms with Gaussian priors.

    Args:
        arms: how many.
        noise_variance: variance of the noise: one number, one per candidate, a function of points
            `[n, d]`, or `"fitted"`, which learns it from residuals or reported variances.
        mean: of the prior: one number or one per arm.
        variance: of the prior: one number or one per arm.
    """

    def __init__(self, arms: int, *, noise_variance: Noise, mean=0.0, variance=1.0) -> None:
        arms = as_count(arms, "arms")
        self._mean = as_finite(mean, arms, "mean")
        self._variance = as_positive(variance, arms, "variance")
        super().__init__(np.arange(arms, dtype=float)[:, None], noise_variance)

    def _prior_over(self, points: np.ndarray) -> Gaussian:
        if len(points) > len(self._mean):
            raise IdrlError(
                f"arms are unrelated, so only the {len(self._mean)} there are can be observed."
            )
        return Gaussian(self._mean, np.diag(np.sqrt(self._variance)))
