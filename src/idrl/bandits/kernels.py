"""Kernels over a finite set of candidates, and the square root of a covariance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from idrl.errors import IdrlError, unknown

# An eigenvalue below −1e-8 of the largest is no rounding error: the matrix is no covariance.
_NOT_ROUNDING = 1e-8
# Directions below 1e-14 of the largest eigenvalue are under float64's own resolution.
_NEGLIGIBLE = 1e-14


def _rbf(r):
    return np.exp(-0.5 * r**2)


def _matern12(r):
    return np.exp(-r)


def _matern32(r):
    r = np.sqrt(3.0) * r
    return (1 + r) * np.exp(-r)


def _matern52(r):
    r = np.sqrt(5.0) * r
    return (1 + r + r**2 / 3) * np.exp(-r)


KERNELS: dict[str, Callable] = {
    "rbf": _rbf,
    "matern12": _matern12,
    "matern32": _matern32,
    "matern52": _matern52,
}


def covariance(name: str, points, lengthscale=1.0, variance: float = 1.0) -> np.ndarray:
    """`[n, n]` prior covariance of the points `[n, d]`; one lengthscale, or one per column."""
    if name not in KERNELS:
        raise unknown("kernel", name, KERNELS)
    scaled = np.asarray(points, float) / np.asarray(lengthscale, float)
    # Differences rather than |x|² + |y|² − 2xy: no cancellation between close points.
    distance = np.sqrt(((scaled[:, None, :] - scaled[None, :, :]) ** 2).sum(-1))
    return variance * KERNELS[name](distance)


def square_root(matrix, what: str = "the kernel matrix") -> np.ndarray:
    """`F` `[n, m]` with `F Fᵀ` equal to the covariance `[n, n]`, m its numerical rank.

    By eigenvalues rather than Cholesky: a smooth kernel on close or equal points is singular to
    working precision, which Cholesky survives only with a jitter on the diagonal. This needs none,
    and the smaller rank makes every later step cheaper.
    """
    matrix = np.asarray(matrix, float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise IdrlError(f"{what} must be square, and its shape is {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise IdrlError(f"{what} holds NaN or infinite entries; every covariance must be a number.")
    scale = np.abs(matrix).max()
    if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-8 * scale):
        raise IdrlError(f"{what} is not symmetric; cov[i, j] and cov[j, i] must be the same.")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if values[-1] <= 0:
        raise IdrlError(f"{what} has no positive eigenvalue; its prior says that all is known.")
    if values[0] < -_NOT_ROUNDING * values[-1]:
        raise IdrlError(
            f"{what} is not positive semi-definite (smallest eigenvalue {values[0]:.3g}), so it is "
            "no covariance; check the kernel function or add that much to its diagonal."
        )
    kept = values > _NEGLIGIBLE * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])
