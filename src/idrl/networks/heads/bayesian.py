"""A last layer that is a Bayesian linear regression on what the layers before it learned (BDQN)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from idrl import losses
from idrl.errors import IdrlError
from idrl.networks.heads.base import QHeads, Transition, head, require
from idrl.networks.layers import ParallelDense

_FIRST_STD = 0.01  # of the mean weights until the first fit (the authors' notebook)


class Evidence(NamedTuple):
    """What transitions say of the last layer: Σ φφᵀ `[A, F, F]` and Σ yφ `[A, F]` per action."""

    features: jax.Array
    targets: jax.Array


class Regressed(NamedTuple):
    mean: jax.Array  # [B, A] under the posterior's mean
    drawn: jax.Array  # [B, K, A] under K weights drawn from it
    features: jax.Array  # [B, F]


class _Bayesian(nn.Module):
    """The posterior is kept with the weights, but no gradient moves it: `Bayesian.refit` does."""

    k: int
    hidden: tuple[int, ...]
    num_actions: int
    scheme: str
    noisy: float
    prior_std: float

    @nn.compact
    def __call__(self, features: jax.Array, acting: bool = False) -> Regressed:
        x = features
        for width in self.hidden:
            x = nn.relu(ParallelDense(1, width, self.scheme, self.noisy)(x)[:, 0])
        shape = (x.shape[-1], self.num_actions)
        # Not 0: through weights of 0 no gradient would reach the features before the first fit.
        mean = self.param("mean", nn.initializers.normal(_FIRST_STD), shape)
        drawn = self.param("drawn", nn.initializers.normal(self.prior_std), (self.k, *shape))
        mean, drawn = jax.lax.stop_gradient((mean, drawn))
        return Regressed(x @ mean, jnp.einsum("bf,kfa->bka", x, drawn), x)


@head("bayesian")
@dataclass(frozen=True, kw_only=True)
class Bayesian(QHeads):
    """Bayesian linear regression on the last hidden layer, per action (Azizzadenesheli et al.).

    Whenever the target network is renewed, the posterior over the weights of the last layer is
    fitted to `fit_batch` transitions, or as many as the replay holds, each counted once. K weights
    are drawn from it, which any rule may use like the heads of an ensemble; their mean is that of
    the posterior.
    """

    prior_std: float = 0.03  # of each weight before data: a prior variance of 0.001
    noise_std: float = 1.0  # of the targets around their mean
    fit_batch: int = 100_000  # transitions of one fit (the authors' notebook)

    def check(self, where: str) -> None:
        super().check(where)
        require(
            len(self.hidden) > 0,
            f"{where}.hidden is empty; a Bayesian head regresses on a hidden layer of its own, "
            f"for example {where}.hidden=[64].",
        )
        for name in ("prior_std", "noise_std", "fit_batch"):
            value = getattr(self, name)
            require(value > 0, f"{where}.{name} is {value}; it must be positive.")
        require(
            not self.dueling,
            f"{where}.dueling=true: a Bayesian last layer has no streams; heads.q.kind=ensemble "
            "can be dueling.",
        )

    def check_critic(self, where: str) -> None:
        raise IdrlError(
            f"{where}.kind={self.kind} regresses on each action by itself and cannot judge "
            f"continuous ones; set {where}.kind=ensemble."
        )

    def module(self, num_actions: int) -> nn.Module:
        return _Bayesian(self.k, self.hidden, num_actions, self.init, self.noisy, self.prior_std)

    @property
    def measured_by(self) -> Literal["reward"]:
        return "reward"

    def rescaled(self, params: Any, factor: jax.Array) -> Any:
        weights = params["params"]
        last = {name: weights[name] * factor for name in ("mean", "drawn")}
        return {"params": {**weights, **last}}

    def q_heads(self, out: Regressed) -> jax.Array:
        return out.drawn

    def _targets(self, online_t: Regressed, target_t: Regressed, batch: Transition) -> jax.Array:
        best = batch.choosable((online_t if self.double else target_t).mean).argmax(-1)
        value = jnp.take_along_axis(target_t.mean, best[:, None], -1)[:, 0]
        return jax.lax.stop_gradient(batch.r_t + batch.discount_t * value)

    def _errors(self, out_tm1: Regressed, online_t, target_t, batch: Transition) -> jax.Array:
        said = jnp.take_along_axis(out_tm1.mean, batch.a_tm1[:, None], -1)[:, 0]
        return self._targets(online_t, target_t, batch) - said

    def loss(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        return losses.of(self.error)(self._errors(out_tm1, online_t, target_t, batch))

    def td_priority(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        return jnp.abs(self._errors(out_tm1, online_t, target_t, batch))

    def evidence(self, out_tm1: Regressed, online_t, target_t, batch: Transition) -> Evidence:
        """Of one batch; that of several is their sum."""
        y, x = self._targets(online_t, target_t, batch), out_tm1.features
        chosen = jax.nn.one_hot(batch.a_tm1, out_tm1.mean.shape[-1], dtype=x.dtype)
        return Evidence(
            jnp.einsum("ba,bf,bg->afg", chosen, x, x), jnp.einsum("ba,b,bf->af", chosen, y, x)
        )

    def refit(self, params: Any, evidence: Evidence, scale, key) -> Any:
        """`params` of the module with a new posterior; each transition of the evidence counts as
        `scale` of one."""
        precision, weighted = (x * (scale / self.noise_std**2) for x in evidence)
        actions, size = weighted.shape
        prior = 1 / self.prior_std**2
        root = jax.vmap(inverse_root, (0, None))(precision + prior * jnp.eye(size), prior)
        mean = jnp.einsum("ahf,ahg,ag->af", root, root, weighted)
        normal = jax.random.normal(key, (actions, size, self.k))
        if self.k > 1:
            # Centred, and each still standard normal: the mean of the draws is the posterior's.
            normal = (normal - normal.mean(-1, keepdims=True)) * (self.k / (self.k - 1)) ** 0.5
        # The covariance is RᵀR: a standard normal vector through Rᵀ has it.
        spread = jnp.einsum("ahf,ahk->afk", root, normal)
        drawn = jnp.transpose(mean[..., None] + spread, (2, 1, 0))
        return {"params": {**params["params"], "mean": mean.T, "drawn": drawn}}


def inverse_root(precision: jax.Array, least: float = 0.0) -> jax.Array:
    """R with RᵀR = `precision`⁻¹ `[F, F]`: the inverse of its Cholesky factor, both found row by
    row. Where `precision` is `least`·I and something more, no pivot is below that but by rounding.
    What rounding leaves of a feature that is like others may be larger than `least`, and every step
    would magnify it: a pivot of that size has no column.

    Not by LAPACK: on CPUs jaxlib's batched calls wait inside XLA's pool of threads for helpers from
    the same pool, and where every device does so at once none is left and all wait for ever.
    """
    size = precision.shape[-1]
    number, unit = jnp.arange(size), jnp.eye(size, dtype=precision.dtype)
    rounding = size * jnp.finfo(precision.dtype).eps

    def row(j, found):
        lower, inverse = found
        column = precision[:, j] - lower @ lower[j]
        pivot = jnp.sqrt(jnp.maximum(column[j], least))
        below = (number > j) & (column[j] > rounding * precision[j, j])
        inverse = inverse.at[j].set((unit[j] - lower[j] @ inverse) / pivot)
        column = jnp.where(number == j, pivot, jnp.where(below, column / pivot, 0))
        return lower.at[:, j].set(column), inverse

    start = jnp.zeros_like(precision)
    return jax.lax.fori_loop(0, size, row, (start, start))[1]
