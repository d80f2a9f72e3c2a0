"""Trunks: observation → features `[B, F]`. A trunk is declared by a frozen dataclass.

Integer observations are scaled to [0, 1] by their type's largest value where that is an image
(`NatureCnn`), and taken as they are elsewhere (one-hot boards).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from idrl.errors import IdrlError
from idrl.networks.layers import Dense, PatchConv
from idrl.schema import Part

MOST_LAYERS = 64  # of dense ones; each takes its time to compile
Init = Literal["lecun_normal", "glorot_uniform", "glorot_normal", "he_normal", "torch"]


class Trunk(Part, category="trunk"):
    """A network from observations to the features that heads see. Its fields are its settings."""

    @abstractmethod
    def module(self, obs_shape: tuple[int, ...]) -> nn.Module:
        """The network: observations `[B, *obs_shape]` → features `[B, F]`."""

    @property
    def smallest_image(self) -> int:
        """The least side in pixels of the images `[height, width, channels]` that it takes; 0: it
        takes any observation."""
        return 0

    @property
    def large_programs(self) -> bool:
        """Whether its compiled programs take so much memory on a CPU that keeping it pays."""
        return False

    @property
    def takes_bytes(self) -> bool:
        """Whether observations are images of bytes, which it scales itself."""
        return False

    def operations(self, parameters: int) -> float:
        """Operations of a pass of one observation through its `parameters` weights, roughly."""
        return 2.0 * parameters

    def check_fits(self, obs_shape: tuple[int, ...]) -> None:
        """Refuse observations that it cannot take, and name a trunk that can."""
        least = self.smallest_image
        if least and (len(obs_shape) != 3 or min(obs_shape[:2]) < least):
            raise IdrlError(
                f"trunk {self.kind!r} needs images [height, width, channels] of at least "
                f"{least}×{least}, not observations of shape {obs_shape}; "
                "trunk.kind=mlp takes any shape."
            )


trunk = Trunk.register


@trunk("mlp")
@dataclass(frozen=True)
class Mlp(Trunk):
    """Dense layers with ReLU on the flattened observation."""

    hidden: tuple[int, ...] = (64,)  # widths of the layers
    init: Init = "lecun_normal"  # how weights start

    def check(self, where: str) -> None:
        check_hidden(where, self.hidden)

    def module(self, obs_shape: tuple[int, ...]) -> nn.Module:
        return _Trunk(convolutions=(), hidden=self.hidden, scheme=self.init)


@trunk("minatar_cnn")
@dataclass(frozen=True)
class MinAtarCnn(Trunk):
    """The network of the MinAtar paper up to its features: 16 filters of 3×3."""

    channels: int = 16  # filters of 3×3
    init: Init = "lecun_normal"  # how weights start

    def check(self, where: str) -> None:
        if self.channels < 1:
            raise IdrlError(f"{where}.channels is {self.channels}; it must be at least 1.")

    @property
    def smallest_image(self) -> int:
        return 3

    def operations(self, parameters: int) -> float:
        return 64 * super().operations(parameters)  # 3×3 has so many places on a board of 10×10

    def module(self, obs_shape: tuple[int, ...]) -> nn.Module:
        return _Trunk(convolutions=((self.channels, 3, 1),), hidden=(), scheme=self.init)


@trunk("nature_cnn")
@dataclass(frozen=True)
class NatureCnn(Trunk):
    """The convolutions of Mnih et al. 2015: 32×8×8/4, 64×4×4/2, 64×3×3/1."""

    padding: Literal["VALID", "SAME"] = "VALID"  # of the convolutions; SAME in the authors' code
    init: Init = "lecun_normal"  # how weights start

    @property
    def smallest_image(self) -> int:
        return 36

    @property
    def large_programs(self) -> bool:
        return True

    @property
    def takes_bytes(self) -> bool:
        return True

    def operations(self, parameters: int) -> float:
        return 15e6

    def module(self, obs_shape: tuple[int, ...]) -> nn.Module:
        layers = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
        return _Trunk(
            convolutions=layers, hidden=(), padding=self.padding, scale=1 / 255, scheme=self.init
        )


def check_hidden(where: str, hidden: tuple[int, ...]) -> None:
    if len(hidden) > MOST_LAYERS:
        raise IdrlError(f"{where}.hidden has {len(hidden):,} layers; at most {MOST_LAYERS} do.")
    if any(width < 1 for width in hidden):
        raise IdrlError(f"{where}.hidden is {list(hidden)}; a layer has at least 1 unit.")


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
