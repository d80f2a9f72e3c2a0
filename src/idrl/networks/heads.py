"""Heads: features → what is believed of the return, each with its own loss.

A head is declared by a frozen dataclass with a `kind`. It says how wide its network is
(`module`), what its output means to a rule (`q_heads`, `return_variance`), how it learns (`loss`)
and how much of its gradient reaches the trunk (`trunk_share`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from idrl import losses
from idrl.errors import IdrlError
from idrl.networks.layers import ParallelDense
from idrl.networks.trunks import Init, check_hidden


class Transition(NamedTuple):
    """A batch of steps. `discount_t` is γ, or 0 where the episode terminated."""

    s_tm1: jax.Array  # [B, ...]
    a_tm1: jax.Array  # [B]
    r_t: jax.Array  # [B]
    discount_t: jax.Array  # [B]
    s_t: jax.Array  # [B, ...]
    mask: jax.Array | None = None  # [B, K] which heads may learn from it


class Mlps(nn.Module):
    """K small MLPs on shared features: `[B, F]` → `[B, K, outputs]`."""

    k: int
    hidden: tuple[int, ...]
    outputs: int
    scheme: str

    @nn.compact
    def __call__(self, features: jax.Array) -> jax.Array:
        x = features
        for width in self.hidden:
            x = nn.relu(ParallelDense(self.k, width, self.scheme)(x))
        return ParallelDense(self.k, self.outputs, self.scheme)(x)


@dataclass(frozen=True)
class Ensemble:
    """K Q-functions, each trained on its own target (Osband et al. 2016). K=1 is plain DQN.

    `trunk_gradient` scales the mean over the heads of the gradient that enters the trunk: 1 is the
    paper's 1/K of their sum. `mask_prob` is the probability that a head sees a transition.
    `prior_scale` adds fixed random functions (Osband et al. 2018) whose standard deviation over
    the heads, averaged over states and actions, is that many units of Q.
    """

    kind: Literal["ensemble"] = "ensemble"
    k: int = 10  # Table 2
    hidden: tuple[int, ...] = (512,)
    double: bool = True
    error: Literal["huber", "squared"] = "huber"
    trunk_gradient: float = 1.0
    mask_prob: float = 1.0
    prior_scale: float = 0.0
    init: Init = "lecun_normal"

    def check(self, where: str) -> None:
        _check(self.k >= 1, f"{where}.k is {self.k}; an ensemble has at least 1 head.")
        _check_gradient(where, self.trunk_gradient)
        check_hidden(where, self.hidden)
        _check(0 < self.mask_prob <= 1, f"{where}.mask_prob is {self.mask_prob}; it is in (0, 1].")
        _check(self.prior_scale >= 0, f"{where}.prior_scale is {self.prior_scale}; it is ≥ 0.")

    @property
    def trunk_share(self) -> float:
        return self.trunk_gradient / self.k

    def module(self, num_actions: int) -> nn.Module:
        return Mlps(self.k, self.hidden, num_actions, self.init)

    def q_heads(self, out: jax.Array) -> jax.Array:
        return out

    def return_variance(self, out: jax.Array) -> None:
        return None

    def loss(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        """`[B]`, summed over the heads; outputs are `[B, K, A]`."""
        selector_t = online_t if self.double else target_t
        over_heads = jax.vmap(losses.q_learning_error, (0, None, None, None, 0, 0))
        error = jax.vmap(over_heads)(
            out_tm1, batch.a_tm1, batch.r_t, batch.discount_t, target_t, selector_t
        )
        loss = losses.huber(error) if self.error == "huber" else losses.squared(error)
        if batch.mask is not None:
            loss = loss * batch.mask
        return loss.sum(-1)


@dataclass(frozen=True)
class Categorical:
    """The distribution of the return on fixed atoms (C51, Bellemare et al. 2017)."""

    kind: Literal["categorical"] = "categorical"
    atoms: int = 51  # Table 2
    v_min: float = -10.0  # Table 2
    v_max: float = 10.0  # Table 2
    hidden: tuple[int, ...] = (512,)
    trunk_gradient: float = 0.0  # the paper: distributional gradients stay out of the trunk
    init: Init = "lecun_normal"

    def check(self, where: str) -> None:
        _check(self.atoms >= 2, f"{where}.atoms is {self.atoms}; a distribution needs at least 2.")
        _check(
            self.v_min < self.v_max,
            f"{where}.v_min is {self.v_min} and v_max {self.v_max}; v_min must be the smaller.",
        )
        _check_gradient(where, self.trunk_gradient)
        check_hidden(where, self.hidden)

    @property
    def trunk_share(self) -> float:
        return self.trunk_gradient

    @property
    def support(self) -> jax.Array:
        return jnp.linspace(self.v_min, self.v_max, self.atoms)

    def module(self, num_actions: int) -> nn.Module:
        return Mlps(1, self.hidden, num_actions * self.atoms, self.init)

    def logits(self, out: jax.Array) -> jax.Array:
        return out.reshape(*out.shape[:-2], -1, self.atoms)

    def q_heads(self, out: jax.Array) -> jax.Array:
        return (jax.nn.softmax(self.logits(out)) @ self.support)[..., None, :]

    def return_variance(self, out: jax.Array) -> jax.Array:
        probs = jax.nn.softmax(self.logits(out))
        mean = (probs @ self.support)[..., None]
        return (probs * (self.support - mean) ** 2).sum(-1)

    def loss(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        return jax.vmap(losses.categorical_loss, (None, 0, 0, 0, 0, 0))(
            self.support, self.logits(out_tm1), batch.a_tm1, batch.r_t, batch.discount_t,
            self.logits(target_t),
        )  # fmt: skip


@dataclass(frozen=True)
class Quantile:
    """The distribution of the return by its quantiles (QR-DQN, Dabney et al. 2018)."""

    kind: Literal["quantile"] = "quantile"
    quantiles: int = 200  # Table 2
    kappa: float = 1.0
    hidden: tuple[int, ...] = (512,)
    trunk_gradient: float = 0.0  # the paper: distributional gradients stay out of the trunk
    init: Init = "lecun_normal"

    def check(self, where: str) -> None:
        _check(self.quantiles >= 1, f"{where}.quantiles is {self.quantiles}; it is at least 1.")
        _check(self.kappa > 0, f"{where}.kappa is {self.kappa}; it is positive.")
        _check_gradient(where, self.trunk_gradient)
        check_hidden(where, self.hidden)

    @property
    def trunk_share(self) -> float:
        return self.trunk_gradient

    def module(self, num_actions: int) -> nn.Module:
        return Mlps(1, self.hidden, num_actions * self.quantiles, self.init)

    def values(self, out: jax.Array) -> jax.Array:
        return out.reshape(*out.shape[:-2], -1, self.quantiles)

    def q_heads(self, out: jax.Array) -> jax.Array:
        return self.values(out).mean(-1)[..., None, :]

    def return_variance(self, out: jax.Array) -> jax.Array:
        return self.values(out).var(-1)

    def loss(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        return jax.vmap(losses.quantile_loss, (0, 0, 0, 0, 0, None))(
            self.values(out_tm1), batch.a_tm1, batch.r_t, batch.discount_t,
            self.values(target_t), self.kappa,
        )  # fmt: skip


Head = Ensemble | Categorical | Quantile


def _check(holds: bool, sentence: str) -> None:
    if not holds:
        raise IdrlError(sentence)


def _check_gradient(where: str, share: float) -> None:
    _check(share >= 0, f"{where}.trunk_gradient is {share}; a share of a gradient is ≥ 0.")
