"""What all heads share: the batch they learn from, and the settings of their networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from idrl.errors import IdrlError
from idrl.networks.layers import Mlps
from idrl.networks.trunks import Init, check_hidden


class Transition(NamedTuple):
    """A batch of steps. `discount_t` is γ (γⁿ over n steps), or 0 where the episode terminated."""

    s_tm1: jax.Array  # [B, ...]
    a_tm1: jax.Array  # [B], or [B, D] of continuous actions
    r_t: jax.Array  # [B]
    discount_t: jax.Array  # [B]
    s_t: jax.Array  # [B, ...]
    mask: jax.Array | None = None  # [B, K] which heads may learn from it
    weight: jax.Array | None = None  # [B] importance weights of prioritised replay
    where: jax.Array | None = None  # [B] where in the replay's priorities
    allowed_t: jax.Array | None = None  # [B, A] actions that s_t allows; None: all

    def choosable(self, values_t: jax.Array) -> jax.Array:
        """What s_t's next action is chosen by, `[B, ..., A]`: -inf for what is not allowed there,
        whose values nothing ever corrects."""
        if self.allowed_t is None:
            return values_t
        between = [1] * (values_t.ndim - 2)
        allowed = self.allowed_t.reshape(len(values_t), *between, -1)
        return jnp.where(allowed, values_t, -jnp.inf)


@dataclass(frozen=True, kw_only=True)
class HeadBase:
    """`dueling` splits a head into a value and an advantage stream (Wang et al. 2016); `noisy` is
    σ₀ of NoisyNet's weights (0: none; 0.5 in Fortunato et al. 2018); `trunk_gradient` scales what
    enters the trunk."""

    hidden: tuple[int, ...] = (512,)
    dueling: bool = False
    noisy: float = 0.0
    trunk_gradient: float = 0.0  # the paper: distributional gradients stay out of the trunk
    init: Init = "lecun_normal"

    def check(self, where: str) -> None:
        require(
            self.trunk_gradient >= 0,
            f"{where}.trunk_gradient is {self.trunk_gradient}; a share of a gradient is ≥ 0.",
        )
        require(self.noisy >= 0, f"{where}.noisy is {self.noisy}; a spread of weights is ≥ 0.")
        check_hidden(where, self.hidden)

    @property
    def members(self) -> int:
        """How many Q-functions a rule may compare."""
        return 1

    @property
    def knows_variance(self) -> bool:
        """Whether it learns the distribution of the return."""
        return True

    @property
    def trunk_share(self) -> float:
        return self.trunk_gradient

    def mlps(self, k: int, num_actions: int, per_action: int) -> nn.Module:
        dueling = per_action if self.dueling else 0
        return Mlps(k, self.hidden, num_actions * per_action, self.init, dueling, self.noisy)

    def loss(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        raise NotImplementedError

    def td_priority(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        """`[B]`: what prioritised replay goes by. For distributions it is the loss itself."""
        return self.loss(out_tm1, online_t, target_t, batch)

    def distribution(self, out: Any) -> tuple[jax.Array, jax.Array] | None:
        """Values of the return and their weights, `[B, A, N]` each, where it is learned."""
        return None

    def return_draw(self, out: Any, key: jax.Array) -> jax.Array | None:
        """`[B, A]`: one return of each action, drawn from its distribution."""
        return None


@dataclass(frozen=True, kw_only=True)
class QHeads(HeadBase):
    """K Q-functions that a rule may compare, learned from TD errors."""

    k: int = 10  # Table 2
    double: bool = True
    error: Literal["huber", "squared"] = "huber"
    trunk_gradient: float = 1.0

    def check(self, where: str) -> None:
        super().check(where)
        require(self.k >= 1, f"{where}.k is {self.k}; an ensemble has at least 1 head.")

    @property
    def members(self) -> int:
        return self.k

    @property
    def knows_variance(self) -> bool:
        return False

    def return_variance(self, out: Any) -> None:
        return None


def equally(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Quantiles as a distribution: all of the same weight."""
    return values, jnp.full(values.shape, 1 / values.shape[-1])


def require(holds: bool, sentence: str) -> None:
    if not holds:
        raise IdrlError(sentence)
