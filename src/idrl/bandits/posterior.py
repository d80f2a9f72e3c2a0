"""What is believed about every candidate, and how one observation changes it.

`Gaussian` keeps the mean `[n]` and a square root `F` `[n, m]` of the posterior covariance `F Fᵀ`
over the candidates. An observation is one rank-one update of `F` (Potter's square-root form of the
Kalman update), O(n·m) whatever the number of observations so far. Chosen over the two usual forms:
growing a Cholesky factor of the observations costs O(t²) at step t and goes singular where a point
is measured again with little noise; subtracting from the covariance itself loses what is small to
rounding, until it is no covariance any more. `F Fᵀ` is one by construction, and `mean + F z` is a
draw from the posterior without any further factorisation. NumPy in, NumPy out; JAX in, JAX out,
under `jit` and `vmap`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Array = Any  # a NumPy or a JAX array


class Gaussian(NamedTuple):
    """Jointly Gaussian values: a Gaussian process, a linear model or independent arms."""

    mean: Array  # [n]
    factor: Array  # [n, m]

    @property
    def variance(self) -> Array:
        return (self.factor**2).sum(-1)

    @property
    def cov(self) -> Array:
        return self.factor @ self.factor.T

    def draw(self, key: jax.Array, count: int) -> Array:
        """`[count, n]` functions drawn from the posterior."""
        normal: Array = jax.random.normal(key, (count, self.factor.shape[-1]))
        if isinstance(self.factor, np.ndarray):
            normal = np.asarray(normal, self.factor.dtype)
        return self.mean + normal @ self.factor.T

    def update(self, index: Array, value: Array, noise: Array) -> Gaussian:
        """After `value` was seen at one candidate, with noise of variance `noise` > 0."""
        row = self.factor[index]
        total = row @ row + noise
        towards = self.factor @ row  # the covariance of every candidate with this one
        mean = self.mean + towards * ((value - self.mean[index]) / total)
        # (I − c·rowᵀrow)² = I − rowᵀrow/total for this c: the square root of the usual downdate.
        shrink = 1 / (total + (noise * total) ** 0.5)
        factor = self.factor - (towards * shrink)[:, None] * row[None, :]
        return Gaussian(mean, factor)


class Beta(NamedTuple):
    """Independent success probabilities, each Beta(a, b)."""

    a: Array  # [n]
    b: Array  # [n]

    @property
    def mean(self) -> Array:
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> Array:
        total = self.a + self.b
        return self.a * self.b / (total**2 * (total + 1))

    @property
    def rho2(self) -> Array:
        """The expected variance p(1 − p) of one outcome, in which the doubt about p has no part."""
        total = self.a + self.b
        return self.a * self.b / (total * (total + 1))

    @property
    def cov(self) -> Array:
        xp = np if isinstance(self.a, np.ndarray) else jnp
        return xp.diag(self.variance)

    def draw(self, key: jax.Array, count: int) -> Array:
        drawn = jax.random.beta(key, self.a, self.b, (count, self.a.shape[-1]))
        return np.asarray(drawn, self.a.dtype) if isinstance(self.a, np.ndarray) else drawn

    def update(self, index: Array, value: Array) -> Beta:
        """After one outcome, 0 or 1, of one arm."""
        xp = np if isinstance(self.a, np.ndarray) else jnp
        here = (xp.arange(self.a.shape[-1]) == index).astype(self.a.dtype)
        return Beta(self.a + here * value, self.b + here * (1 - value))
