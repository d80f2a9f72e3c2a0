"""The distribution of the return as a function of the quantile asked for (IQN)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from idrl import losses
from idrl.networks.heads.base import ReturnHead, Transition, equally, head, require
from idrl.networks.heads.returns import one_of
from idrl.networks.layers import bias_initialiser, kernel_initialiser, rescaled


class Answers(NamedTuple):
    """The quantiles `taus` `[B, N]` of each action's return: `values` `[B, A, N]`."""

    values: jax.Array
    taus: jax.Array


class _Implicit(nn.Module):
    """A cosine embedding of τ times the features, then an MLP."""

    mlp: nn.Module
    embedding: int
    learn_samples: int
    act_samples: int
    scheme: str
    distort: object  # a function of τ, for acting only

    @nn.compact
    def __call__(self, features: jax.Array, acting: bool = False) -> Answers:
        count, width = features.shape
        samples = self.act_samples if acting else self.learn_samples
        if self.has_rng("tau"):
            taus = jax.random.uniform(self.make_rng("tau"), (count, samples))
        else:
            taus = jnp.broadcast_to(losses.midpoints(samples), (count, samples))
        seen = self.distort(taus) if acting else taus  # type: ignore[operator]
        waves = cosines(jnp.arange(self.embedding) * seen[..., None])
        embed = nn.Dense(
            width, kernel_init=kernel_initialiser(self.scheme),
            bias_init=bias_initialiser(self.scheme, self.embedding),
        )  # fmt: skip
        joined = features[:, None] * nn.relu(embed(waves))
        values = self.mlp(joined.reshape(count * samples, width))[:, 0]
        return Answers(values.reshape(count, samples, -1).swapaxes(1, 2), taus)


def cosines(half_turns: jax.Array) -> jax.Array:
    """cos πx. Reduced to a quarter turn and by its series (to y¹¹, the rest is below 6e-8): on a
    CPU a tenth of the time of XLA's cosine, which was a quarter of an update of IQN."""
    turns = 0.5 * half_turns
    y = 2 * jnp.pi * (0.25 - jnp.abs(turns - jnp.round(turns)))  # cos 2πt = sin(π/2 - 2π|t|)
    square, series = y * y, jnp.ones_like(y)
    for n in (110, 72, 42, 20, 6):
        series = 1 - square * series / n
    return y * series


@head("implicit")
@dataclass(frozen=True, kw_only=True)
class Implicit(ReturnHead):
    """Quantiles at fractions drawn anew every time (IQN, Dabney et al. 2018).

    `risk` distorts the fractions that the policy uses: `cvar` is the mean of the worst `risk_level`
    of outcomes, `cpw` weighs probabilities as people do, `wang` shifts towards bad (below 0) or
    good (above 0) outcomes.
    """

    samples: int = 64  # fractions drawn for a loss (N = N′)
    act_samples: int = 32  # fractions drawn for a decision (K)
    embedding: int = 64  # cosines that embed a fraction
    kappa: float = 1.0  # where Huber's loss becomes linear
    risk: Literal["neutral", "cvar", "cpw", "wang"] = "neutral"  # how the policy weighs outcomes
    risk_level: float = 0.25  # its parameter: the share of worst outcomes for `cvar`

    def check(self, where: str) -> None:
        super().check(where)
        for name in ("samples", "act_samples", "embedding"):
            value = getattr(self, name)
            require(value >= 1, f"{where}.{name} is {value}; it must be at least 1.")
        require(self.kappa > 0, f"{where}.kappa is {self.kappa}; it must be positive.")
        if self.risk in ("cvar", "cpw"):
            require(
                0 < self.risk_level <= 1,
                f"{where}.risk_level is {self.risk_level}; for {self.risk} it is a fraction in "
                "(0, 1], for example 0.25.",
            )

    @property
    def passes(self) -> int:
        return self.samples

    def module(self, num_actions: int) -> nn.Module:
        return _Implicit(
            self.mlps(1, num_actions, 1), self.embedding, self.samples, self.act_samples,
            self.init, self.distort,
        )  # fmt: skip

    def distort(self, tau: jax.Array) -> jax.Array:
        eta = self.risk_level
        if self.risk == "cvar":
            return eta * tau
        if self.risk == "cpw":
            power = tau**eta
            return power / (power + (1 - tau) ** eta) ** (1 / eta)
        if self.risk == "wang":
            return jax.scipy.stats.norm.cdf(jax.scipy.stats.norm.ppf(tau) + eta)
        return tau

    @property
    def measured_by(self) -> Literal["reward"]:
        return "reward"

    def rescaled(self, params: Any, factor: jax.Array) -> Any:
        weights = params["params"]
        return {"params": {**weights, "mlp": rescaled(weights["mlp"], self.hidden, factor)}}

    def q_heads(self, out: Answers) -> jax.Array:
        return out.values.mean(-1)[..., None, :]

    def return_variance(self, out: Answers) -> jax.Array:
        return out.values.var(-1)

    def distribution(self, out: Answers) -> tuple[jax.Array, jax.Array]:
        return equally(out.values)

    def return_draw(self, out: Answers, key: jax.Array) -> jax.Array:
        return one_of(out.values, key)

    def loss(self, out_tm1: Answers, online_t: Answers, target_t: Answers, batch: Transition):
        selector_t = batch.choosable(self.q_heads(online_t if self.double else target_t)[:, 0])
        return jax.vmap(losses.quantile_loss, (0, 0, 0, 0, 0, None, 0, 0))(
            out_tm1.values, batch.a_tm1, batch.r_t, batch.discount_t,
            batch.possible(target_t.values), self.kappa, selector_t, out_tm1.taus,
        )  # fmt: skip
