"""Layers that trunks and heads share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from idrl.errors import IdrlError

Initialiser = Callable[..., Any]
WIDE = 64  # channels from which on shifted products are faster than patches; MinAtar's have ten

# name: (scale, mode, distribution) of the weights, and whether biases are drawn too
SCHEMES: dict[str, tuple[tuple[float, Any, Any], bool]] = {
    # flax's default; keeps the variance of activations for dense inputs
    "lecun_normal": ((1.0, "fan_in", "truncated_normal"), False),
    "glorot_uniform": ((1.0, "fan_avg", "uniform"), False),  # the authors' released code
    "glorot_normal": ((1.0, "fan_avg", "truncated_normal"), False),  # its quantile heads
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


class Dense(nn.Module):
    """A dense layer that computes in the precision of its weights."""

    features: int
    scheme: str

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        fan_in = x.shape[-1]
        kernel = self.param("kernel", kernel_initialiser(self.scheme), (fan_in, self.features))
        bias = self.param("bias", bias_initialiser(self.scheme, fan_in), (self.features,))
        return x.astype(kernel.dtype) @ kernel + bias


class ParallelDense(nn.Module):
    """K dense layers side by side, each initialised as if it were alone.

    `[B, F]` (input shared by all) or `[B, K, F]` (an input each) → `[B, K, H]`. A shared input is
    multiplied by one wide matrix `[F, K·H]`, not by K small ones.

    With `noisy` > 0 (NoisyNet's σ₀) weights and biases have a learned spread around their mean.
    Factorised Gaussian noise moves them while the random stream "noise" is given, one draw for the
    whole batch; without it they are at their means.
    """

    k: int
    features: int
    scheme: str = "lecun_normal"
    noisy: float = 0.0

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        fan_in, k, width = x.shape[-1], self.k, self.features
        bias = self.param("bias", bias_initialiser(self.scheme, fan_in), (k, width))
        shared = x.ndim == 2
        if shared:
            init = kernel_initialiser(self.scheme, in_axis=0, batch_axis=1)
            kernel = self.param("kernel", init, (fan_in, k, width))
        else:
            init = kernel_initialiser(self.scheme, batch_axis=0)
            kernel = self.param("kernel", init, (k, fan_in, width))
        if self.noisy > 0:
            spread = nn.initializers.constant(self.noisy / fan_in**0.5)
            kernel_spread = self.param("kernel_spread", spread, kernel.shape)
            bias_spread = self.param("bias_spread", spread, bias.shape)
            if self.has_rng("noise"):
                keys = jax.random.split(self.make_rng("noise"))
                enter = _signed_root(jax.random.normal(keys[0], (k, fan_in)))
                leave = _signed_root(jax.random.normal(keys[1], (k, width)))
                drawn = jnp.einsum("kf,kh->fkh" if shared else "kf,kh->kfh", enter, leave)
                kernel, bias = kernel + kernel_spread * drawn, bias + bias_spread * leave
        x = x.astype(kernel.dtype)
        if shared:
            return (x @ kernel.reshape(fan_in, -1)).reshape(-1, k, width) + bias
        return jnp.einsum("bkf,kfh->bkh", x, kernel) + bias


def _signed_root(x: jax.Array) -> jax.Array:
    return jnp.sign(x) * jnp.sqrt(jnp.abs(x))


class Mlps(nn.Module):
    """K small MLPs on shared features: `[B, F]` → `[B, K, outputs]`.

    `dueling` > 0 is the number of outputs per action: a value stream of that many joins an
    advantage stream of all, whose mean over the actions is taken off (Wang et al. 2016).
    """

    k: int
    hidden: tuple[int, ...]
    outputs: int
    scheme: str
    dueling: int = 0
    noisy: float = 0.0

    @nn.compact
    def __call__(self, features: jax.Array, acting: bool = False) -> jax.Array:
        advantage = self._stream(features, self.outputs)
        if not self.dueling:
            return advantage
        advantage = advantage.reshape(*advantage.shape[:2], -1, self.dueling)
        value = self._stream(features, self.dueling)[..., None, :]
        joined = value + advantage - advantage.mean(-2, keepdims=True)
        return joined.reshape(*joined.shape[:2], -1)

    def _stream(self, x: jax.Array, outputs: int) -> jax.Array:
        for width in self.hidden:
            x = nn.relu(ParallelDense(self.k, width, self.scheme, self.noisy)(x))
        return ParallelDense(self.k, outputs, self.scheme, self.noisy)(x)


def rescaled(weights: dict[str, Any], hidden: Sequence[int], factor: jax.Array) -> dict[str, Any]:
    """Weights of `Mlps` with what they put out multiplied by `factor`."""
    return with_last(weights, hidden, lambda name, x: x * factor.astype(x.dtype))


def with_last(
    weights: dict[str, Any], hidden: Sequence[int], change: Callable[[str, jax.Array], jax.Array]
) -> dict[str, Any]:
    """Weights of `Mlps` with those of the last layer of each stream changed, by their names. The
    last axis of each is of the outputs."""
    streams = len(weights) // (len(hidden) + 1)
    last = {f"ParallelDense_{(i + 1) * (len(hidden) + 1) - 1}" for i in range(streams)}
    if not last or not last <= set(weights):
        raise IdrlError(
            "the head's module has layers of its own; it needs a `rescaled` that multiplies what "
            "they put out, or `measured_by` None, or learning.unit=task."
        )
    return {
        name: {leaf: change(leaf, x) for leaf, x in layer.items()} if name in last else layer
        for name, layer in weights.items()
    }


class PatchConv(nn.Module):
    """A convolution as a multiplication of patches by a matrix.

    Where the stride divides the size, the input is first cut into blocks of stride × stride, so
    that a patch is a few whole blocks: Mnih et al.'s 8×8 every 4 pixels is 2×2 blocks. The weights
    are those of an ordinary convolution, `[size, size, channels, features]`; its input is taken
    `scale` times. Patches are cut before bytes become numbers: there is less to move. On a CPU
    nothing is cut where no gradient is taken (`_shifted`).
    """

    features: int
    size: int
    stride: int
    padding: str
    scheme: str
    scale: float = 1.0

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        size, stride, channels = self.size, self.stride, x.shape[-1]
        shape = (size, size, channels, self.features)
        kernel = self.param("kernel", kernel_initialiser(self.scheme), shape)
        bias_init = bias_initialiser(self.scheme, size * size * channels)
        bias = self.param("bias", bias_init, (self.features,))
        pads = jax.lax.padtype_to_pads(x.shape[1:3], (size, size), (stride, stride), self.padding)
        x = jnp.pad(x, ((0, 0), *pads, (0, 0)))
        if size % stride == 0:
            x, blocks, step = _blocks(x, stride), size // stride, 1
            kernel = kernel.reshape(blocks, stride, blocks, stride, -1).swapaxes(1, 2)
        else:
            blocks, step = size, stride
        kernel = kernel.reshape(blocks, blocks, -1, self.features)
        shifts = step == 1 and x.shape[-1] >= WIDE and jax.default_backend() == "cpu"
        product = _shifted(x, kernel) if shifts else _patched(step, x, kernel)
        return (product if self.scale == 1 else product * self.scale) + bias


def _patched(step: int, x: jax.Array, kernel: jax.Array) -> jax.Array:
    """`[B, H, W, C]`, `[size, size, C, F]` → `[B, height, width, F]`: each patch times a matrix."""
    size, _, _, features = kernel.shape
    height, width = ((n - size) // step + 1 for n in x.shape[1:3])
    patches = jnp.concatenate(
        [
            x[:, i : i + step * height : step, j : j + step * width : step]
            for i in range(size)
            for j in range(size)
        ],
        -1,
    )
    return patches.astype(kernel.dtype) @ kernel.reshape(-1, features)


@jax.custom_vjp
def _shifted(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """The same for a step of 1, as a sum of products of all of `x` by each place of the kernel: two
    thirds of the time on a CPU for Mnih et al.'s layers (`benchmarks/convolutions.py`). Its
    gradient would take half as long again as that of patches, so there patches are cut."""
    size = kernel.shape[0]
    height, width = (n - size + 1 for n in x.shape[1:3])
    x = x.astype(kernel.dtype)
    places = [(i, j) for i in range(size) for j in range(size)]
    products = [(x @ kernel[i, j])[:, i : i + height, j : j + width] for i, j in places]
    return functools.reduce(jnp.add, products)


_shifted.defvjp(
    lambda x, kernel: jax.vjp(functools.partial(_patched, 1), x, kernel), lambda pull, g: pull(g)
)


def _blocks(x: jax.Array, side: int) -> jax.Array:
    """`[B, H, W, C]` as `[B, H/side, W/side, side·side·C]`; what is left over at the end goes."""
    batch, height, width, channels = x.shape
    height, width = height // side, width // side
    x = x[:, : height * side, : width * side]
    x = x.reshape(batch, height, side, width, side, channels).swapaxes(2, 3)
    return x.reshape(batch, height, width, -1)
