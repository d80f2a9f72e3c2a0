"""Layers that trunks and heads share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

Initialiser = Callable[..., Any]

# name: (scale, mode, distribution) of the weights, and whether biases are drawn too
SCHEMES: dict[str, tuple[tuple[float, Any, Any], bool]] = {
    # flax's default; keeps the variance of activations for dense inputs
    "lecun_normal": ((1.0, "fan_in", "truncated_normal"), False),
    "glorot_uniform": ((1.0, "fan_avg", "uniform"), False),  # the authors' released code
    "he_normal": ((2.0, "fan_in", "truncated_normal"), False),
    # U(±1/√fan_in) for weights and biases, as in Torch 7 and so in the original DQN
    "torch": ((1 / 3, "fan_in", "uniform"), True),
}


def kernel_initialiser(
    scheme: str, in_axis: int | Sequence[int] = -2, batch_axis: int | Sequence[int] = ()
) -> Initialiser:
    """`batch_axis` counts independent layers side by side: it is no part of the fan."""
    return nn.initializers.variance_scaling(
        *SCHEMES[scheme][0], in_axis=in_axis, batch_axis=batch_axis
    )


def bias_initialiser(scheme: str, fan_in: int) -> Initialiser:
    if not SCHEMES[scheme][1]:
        return nn.initializers.zeros
    bound = fan_in**-0.5
    return lambda key, shape, dtype=jnp.float32: jax.random.uniform(
        key, shape, dtype, -bound, bound
    )


class ParallelDense(nn.Module):
    """K dense layers side by side, each initialised as if it were alone.

    `[B, F]` (input shared by all) or `[B, K, F]` (an input each) → `[B, K, H]`. A shared input is
    multiplied by one wide matrix `[F, K·H]`, not by K small ones.
    """

    k: int
    features: int
    scheme: str = "lecun_normal"

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        fan_in, k, width = x.shape[-1], self.k, self.features
        bias = self.param("bias", bias_initialiser(self.scheme, fan_in), (k, width))
        if x.ndim == 2:
            wide = kernel_initialiser(self.scheme, in_axis=0, batch_axis=1)
            kernel = self.param("kernel", wide, (fan_in, k, width))
            return (x @ kernel.reshape(fan_in, -1)).reshape(-1, k, width) + bias
        each = kernel_initialiser(self.scheme, batch_axis=0)
        kernel = self.param("kernel", each, (k, fan_in, width))
        return jnp.einsum("bkf,kfh->bkh", x, kernel) + bias
