"""A trunk: fixed random Fourier features, then one layer."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import linen as nn

import idrl


class Network(nn.Module):
    features: int
    scale: float

    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        flat = obs.reshape(obs.shape[0], -1).astype(jnp.float32)
        waves = nn.Dense(self.features, kernel_init=nn.initializers.normal(self.scale))(flat)
        waves = jax.lax.stop_gradient(waves)  # fixed
        return nn.relu(nn.Dense(self.features)(jnp.cos(waves)))


@idrl.trunk("fourier")
@dataclass(frozen=True)
class Fourier(idrl.Trunk):
    """Random Fourier features of the flattened observation."""

    features: int = 64
    scale: float = 1.0

    def module(self, obs_shape: tuple[int, ...]) -> nn.Module:
        return Network(self.features, self.scale)
