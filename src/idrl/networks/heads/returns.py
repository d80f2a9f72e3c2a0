"""Heads that learn the distribution of the return, on atoms or by quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from idrl import losses
from idrl.networks.heads.base import ReturnHead, Transition, equally, head, require
from idrl.networks.layers import rescaled, with_last

_BEYOND = 8.0  # what logits of atoms are lowered by that no unit had before


@head("categorical")
@dataclass(frozen=True, kw_only=True)
class Categorical(ReturnHead):
    """The distribution of the return on fixed atoms (C51, Bellemare et al. 2017)."""

    atoms: int = 51  # number of atoms (Table 2 of the paper)
    v_min: float = -10.0  # the lowest return that is told apart (Table 2)
    v_max: float = 10.0  # the highest (Table 2)

    def check(self, where: str) -> None:
        super().check(where)
        require(self.atoms >= 2, f"{where}.atoms is {self.atoms}; a distribution needs at least 2.")
        require(
            self.v_min < self.v_max,
            f"{where}.v_min is {self.v_min} and v_max {self.v_max}; v_min must be the smaller.",
        )

    @property
    def support(self) -> jax.Array:
        return jnp.linspace(self.v_min, self.v_max, self.atoms)

    def module(self, num_actions: int) -> nn.Module:
        return self.mlps(1, num_actions, self.atoms)

    @property
    def measured_by(self) -> Literal["return"]:
        return "return"

    @property
    def priority_in_units(self) -> bool:
        return False  # it is a divergence of probabilities

    def rescaled(self, params: Any, factor: jax.Array) -> Any:
        """Each atom takes the logit that its value had before, between two of the old ones. Beyond
        them it takes that of the last one, less so much that it hardly counts: what was never said
        is not said now. So distributions stay what they were but for rounding to atoms."""
        spacing = (self.v_max - self.v_min) / (self.atoms - 1)
        place = (self.support / factor - self.v_min) / spacing
        beyond = (place < -0.5) | (place > self.atoms - 0.5)
        place = jnp.clip(place, 0, self.atoms - 1)
        below = jnp.minimum(place.astype(jnp.int32), self.atoms - 2)
        share = place - below

        def change(name: str, x: jax.Array) -> jax.Array:
            by_atom = x.reshape(*x.shape[:-1], -1, self.atoms)
            new = by_atom[..., below] * (1 - share) + by_atom[..., below + 1] * share
            if name == "bias":  # of dueling streams the values'; the advantages' mean takes it off
                new = new - _BEYOND * beyond
            return jnp.where(factor == 1, x, new.reshape(x.shape).astype(x.dtype))

        return {"params": with_last(params["params"], self.hidden, change)}

    def at_ends(self, out: jax.Array) -> jax.Array:
        probs = jax.nn.softmax(self.logits(out))
        return probs[..., 0] + probs[..., -1]

    def logits(self, out: jax.Array) -> jax.Array:
        return out.reshape(*out.shape[:-2], -1, self.atoms)

    def q_heads(self, out: jax.Array) -> jax.Array:
        return (jax.nn.softmax(self.logits(out)) @ self.support)[..., None, :]

    def return_variance(self, out: jax.Array) -> jax.Array:
        probs = jax.nn.softmax(self.logits(out))
        mean = (probs @ self.support)[..., None]
        return (probs * (self.support - mean) ** 2).sum(-1)

    def distribution(self, out: jax.Array) -> tuple[jax.Array, jax.Array]:
        weights = jax.nn.softmax(self.logits(out))
        return jnp.broadcast_to(self.support, weights.shape), weights

    def return_draw(self, out: jax.Array, key: jax.Array) -> jax.Array:
        return self.support[jax.random.categorical(key, self.logits(out))]

    def loss(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        selector_t = batch.choosable(self.q_heads(online_t if self.double else target_t)[:, 0])
        return jax.vmap(losses.categorical_loss, (None, 0, 0, 0, 0, 0, 0))(
            self.support, self.logits(out_tm1), batch.a_tm1, batch.r_t, batch.discount_t,
            self.logits(target_t), selector_t,
        )  # fmt: skip


@head("quantile")
@dataclass(frozen=True, kw_only=True)
class Quantile(ReturnHead):
    """The distribution of the return by its quantiles (QR-DQN, Dabney et al. 2018)."""

    quantiles: int = 200  # how many (Table 2 of the paper)
    kappa: float = 1.0  # where Huber's loss becomes linear

    def check(self, where: str) -> None:
        super().check(where)
        require(
            self.quantiles >= 1, f"{where}.quantiles is {self.quantiles}; it must be at least 1."
        )
        require(self.kappa > 0, f"{where}.kappa is {self.kappa}; it must be positive.")

    def module(self, num_actions: int) -> nn.Module:
        return self.mlps(1, num_actions, self.quantiles)

    @property
    def measured_by(self) -> Literal["reward"]:
        return "reward"

    def rescaled(self, params: Any, factor: jax.Array) -> Any:
        return {"params": rescaled(params["params"], self.hidden, factor)}

    def values(self, out: jax.Array) -> jax.Array:
        return out.reshape(*out.shape[:-2], -1, self.quantiles)

    def q_heads(self, out: jax.Array) -> jax.Array:
        return self.values(out).mean(-1)[..., None, :]

    def return_variance(self, out: jax.Array) -> jax.Array:
        return self.values(out).var(-1)

    def distribution(self, out: jax.Array) -> tuple[jax.Array, jax.Array]:
        return equally(self.values(out))

    def return_draw(self, out: jax.Array, key: jax.Array) -> jax.Array:
        return one_of(self.values(out), key)

    def loss(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        selector_t = batch.choosable(self.q_heads(online_t if self.double else target_t)[:, 0])
        return jax.vmap(losses.quantile_loss, (0, 0, 0, 0, 0, None, 0))(
            self.values(out_tm1), batch.a_tm1, batch.r_t, batch.discount_t,
            batch.possible(self.values(target_t)), self.kappa, selector_t,
        )  # fmt: skip


def one_of(values: jax.Array, key: jax.Array) -> jax.Array:
    """One of the last axis's values, each as likely: `[..., A, N]` → `[..., A]`."""
    pick = jax.random.randint(key, values.shape[:-1], 0, values.shape[-1])
    return jnp.take_along_axis(values, pick[..., None], -1)[..., 0]
