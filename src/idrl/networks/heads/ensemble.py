"""K Q-functions on one trunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from idrl import losses
from idrl.networks.heads.base import QHeads, Transition, head, require
from idrl.networks.layers import rescaled


@head("ensemble")
@dataclass(frozen=True, kw_only=True)
class Ensemble(QHeads):
    """K Q-functions, each trained on its own target (Osband et al. 2016). K=1 is plain DQN.

    `trunk_gradient` scales the mean over the heads of the gradient that enters the trunk: 1 is the
    paper's 1/K of their sum. `mask_prob` is the probability that a head sees a transition.
    `prior_scale` adds fixed random functions (Osband et al. 2018) whose standard deviation over
    the heads, averaged over states and actions, is that many units of Q.

    `target` says whose best action a head's target goes on with: its "own", or that of the heads'
    "mean". With its own a head also bootstraps on actions that it alone believes in and the agent
    does not try, and where priors make many such the values run away.
    """

    mask_prob: float = 1.0  # probability that a head learns from a transition
    prior_scale: float = 0.0  # spread of fixed random functions added to the heads, in units of Q
    target: Literal["own", "mean"] = "own"  # whose best action a head's target continues with

    def check(self, where: str) -> None:
        super().check(where)
        require(
            0 < self.mask_prob <= 1, f"{where}.mask_prob is {self.mask_prob}; it must be in (0, 1]."
        )
        require(
            self.prior_scale >= 0, f"{where}.prior_scale is {self.prior_scale}; it must be ≥ 0."
        )

    @property
    def says_q(self) -> bool:
        return True

    @property
    def trunk_share(self) -> float:
        return self.trunk_gradient / self.k

    def module(self, num_actions: int) -> nn.Module:
        return self.mlps(self.k, num_actions, 1)

    @property
    def measured_by(self) -> Literal["reward"]:
        return "reward"

    def rescaled(self, params: Any, factor: jax.Array) -> Any:
        return {"params": rescaled(params["params"], self.hidden, factor)}

    def check_critic(self, where: str) -> None:
        super().check_critic(where)
        require(
            self.target == "own",
            f"{where}.target={self.target} is about the best of several actions, and a critic sees "
            f"one at a time; set {where}.target=own.",
        )

    def q_heads(self, out: jax.Array) -> jax.Array:
        return out

    def _errors(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        """`[B, K]`; outputs are `[B, K, A]`."""
        selector_t = online_t if self.double else target_t
        if self.target == "mean":
            selector_t = jnp.broadcast_to(selector_t.mean(1, keepdims=True), selector_t.shape)
        selector_t = batch.choosable(selector_t)
        over_heads = jax.vmap(losses.q_learning_error, (0, None, None, None, 0, 0))
        return jax.vmap(over_heads)(
            out_tm1, batch.a_tm1, batch.r_t, batch.discount_t, target_t, selector_t
        )

    def loss(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        """`[B]`, summed over the heads."""
        loss = losses.of(self.error)(self._errors(out_tm1, online_t, target_t, batch))
        if batch.mask is not None:
            loss = loss * batch.mask
        return loss.sum(-1)

    def td_priority(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        """The mean over the heads of |TD error|."""
        return jnp.abs(self._errors(out_tm1, online_t, target_t, batch)).mean(-1)
