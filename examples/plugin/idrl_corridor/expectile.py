"""A head: one Q-function that is learned by expectiles, so that it leans to the good side."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import linen as nn

import idrl


class Network(nn.Module):
    hidden: int
    num_actions: int

    @nn.compact
    def __call__(self, features: jax.Array, acting: bool = False) -> jax.Array:
        return nn.Dense(self.num_actions)(nn.relu(nn.Dense(self.hidden)(features)))


@idrl.head("expectile")
@dataclass(frozen=True)
class Expectile(idrl.Head):
    """Q at the `level`-expectile of its targets: 0.5 is the mean, more is hopeful."""

    hidden: int = 32
    level: float = 0.7

    def check(self, where: str) -> None:
        if not 0 < self.level < 1:
            raise idrl.IdrlError(f"{where}.level is {self.level}; it must be in (0, 1).")

    def module(self, num_actions: int) -> nn.Module:
        return Network(self.hidden, num_actions)

    def q_heads(self, out: jax.Array) -> jax.Array:
        return out[:, None, :]  # [B, 1, A]: one member

    def loss(self, out_tm1, online_t, target_t, batch: idrl.Transition) -> jax.Array:
        value_t = jnp.maximum(batch.choosable(target_t).max(-1), -1e6)  # where nothing is allowed
        target = batch.r_t + batch.discount_t * value_t
        chosen = jnp.take_along_axis(out_tm1, batch.a_tm1[:, None], 1)[:, 0]
        error = jax.lax.stop_gradient(target) - chosen
        return jnp.where(error > 0, self.level, 1 - self.level) * error**2
