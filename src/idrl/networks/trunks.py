"""Trunks: observation → features `[B, F]`. A trunk is declared by a frozen dataclass with a `kind`.

Integer observations are scaled to [0, 1] by their type's largest value where that is an image
(`NatureCnn`), and taken as they are elsewhere (one-hot boards).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from idrl.errors import IdrlError
from idrl.networks.layers import Dense, PatchConv

MOST_LAYERS = 64  # of dense ones; each takes its time to compile
Init = Literal["lecun_normal", "glorot_uniform", "glorot_normal", "he_normal", "torch"]


@dataclass(frozen=True)
class Mlp:
    """Dense layers with ReLU on the flattened observation."""

    kind: Literal["mlp"] = "mlp"
    hidden: tuple[int, ...] = (64,)
    init: Init = "lecun_normal"

    def check(self, where: str) -> None:
        check_hidden(where, self.hidden)

    def module(self, obs_shape: tuple[int, ...]) -> nn.Module:
        return _Trunk(convolutions=(), hidden=self.hidden, scheme=self.init)


@dataclass(frozen=True)
class MinAtarCnn:
    """The network of the MinAtar paper up to its features: 16 filters of 3×3."""

    kind: Literal["minatar_cnn"] = "minatar_cnn"
    channels: int = 16
    init: Init = "lecun_normal"

    def check(self, where: str) -> None:
        if self.channels < 1:
            raise IdrlError(f"{where}.channels is {self.channels}; it is at least 1.")

    def module(self, obs_shape: tuple[int, ...]) -> nn.Module:
        _need_image(self.kind, obs_shape, 3)
        return _Trunk(convolutions=((self.channels, 3, 1),), hidden=(), scheme=self.init)


@dataclass(frozen=True)
class NatureCnn:
    """The convolutions of Mnih et al. 2015: 32×8×8/4, 64×4×4/2, 64×3×3/1."""

    kind: Literal["nature_cnn"] = "nature_cnn"
    padding: Literal["VALID", "SAME"] = "VALID"
    init: Init = "lecun_normal"

    def module(self, obs_shape: tuple[int, ...]) -> nn.Module:
        _need_image(self.kind, obs_shape, 36)
        layers = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
        return _Trunk(
            convolutions=layers, hidden=(), padding=self.padding, scale=1 / 255, scheme=self.init
        )


Trunk = Mlp | MinAtarCnn | NatureCnn


def check_hidden(where: str, hidden: tuple[int, ...]) -> None:
    if len(hidden) > MOST_LAYERS:
        raise IdrlError(f"{where}.hidden has {len(hidden):,} layers; at most {MOST_LAYERS} do.")
    if any(width < 1 for width in hidden):
        raise IdrlError(f"{where}.hidden is {list(hidden)}; a layer has at least 1 unit.")


def _need_image(kind: str, obs_shape: tuple[int, ...], smallest: int) -> None:
    if len(obs_shape) != 3 or min(obs_shape[:2]) < smallest:
        raise IdrlError(
            f"trunk {kind!r} needs images [height, width, channels] of at least "
            f"{smallest}×{smallest}, not observations of shape {obs_shape}; "
            "trunk.kind=mlp takes any shape."
        )


class _Trunk(nn.Module):
    convolutions: tuple[tuple[int, int, int], ...]  # (channels, size, stride)
    hidden: tuple[int, ...]
    padding: str = "VALID"
    scale: float = 1.0
    scheme: str = "lecun_normal"

    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        # The convolutions take bytes as they are; without any, numbers are what the layers want.
        x = obs if self.convolutions else obs.astype(jnp.float32) * self.scale
        for number, (channels, size, stride) in enumerate(self.convolutions):
            scale = self.scale if number == 0 else 1.0
            name = f"Conv_{number}"
            x = PatchConv(channels, size, stride, self.padding, self.scheme, scale, name=name)(x)
            x = nn.relu(x)
        x = x.reshape(x.shape[0], -1)
        for width in self.hidden:
            x = nn.relu(Dense(width, self.scheme)(x))
        return x
