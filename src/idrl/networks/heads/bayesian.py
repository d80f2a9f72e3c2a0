"""A last layer that is a Bayesian linear regression on what the layers before it learned (BDQN)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from idrl import losses
from idrl.networks.heads.base import QHeads, Transition, require
from idrl.networks.layers import ParallelDense


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
        mean = self.param("mean", nn.initializers.zeros, shape)
        drawn = self.param("drawn", nn.initializers.normal(self.prior_std), (self.k, *shape))
        mean, drawn = jax.lax.stop_gradient((mean, drawn))
        return Regressed(x @ mean, jnp.einsum("bf,kfa->bka", x, drawn), x)


@dataclass(frozen=True, kw_only=True)
class Bayesian(QHeads):
    """Bayesian linear regression on the last hidden layer, per action (Azizzadenesheli et al.).

    Whenever the target network is renewed, the posterior over the last layer's weights is computed
    anew from `fit_batch` transitions, counted as if they were all that the replay holds, and K
    weights are drawn from it, which any rule may use like the heads of an ensemble.
    """

    kind: Literal["bayesian"] = "bayesian"
    prior_std: float = 0.03  # of each weight, before data: a prior variance of 0.001
    noise_std: float = 1.0  # of the targets around their mean
    fit_batch: int = 2_048

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

    def module(self, num_actions: int) -> nn.Module:
        return _Bayesian(self.k, self.hidden, num_actions, self.init, self.noisy, self.prior_std)

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

    def surprise(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        return jnp.abs(self._errors(out_tm1, online_t, target_t, batch))

    def refit(self, params: Any, out_tm1: Regressed, online_t, target_t, batch, scale, key) -> Any:
        """`params` of the module with a new posterior; `scale` transitions count for each one."""
        y, x = self._targets(online_t, target_t, batch), out_tm1.features
        actions = out_tm1.mean.shape[-1]
        chosen = jax.nn.one_hot(batch.a_tm1, actions, dtype=x.dtype) * (scale / self.noise_std**2)
        precision = jnp.einsum("ba,bf,bg->afg", chosen, x, x)
        precision += jnp.eye(x.shape[-1]) / self.prior_std**2
        root = jax.vmap(inverse_root)(precision)
        weighted = jnp.einsum("ba,b,bf->af", chosen, y, x)
        mean = jnp.einsum("ahf,ahg,ag->af", root, root, weighted)
        normal = jax.random.normal(key, (actions, x.shape[-1], self.k))
        # The covariance is RᵀR: a standard normal vector through Rᵀ has it.
        spread = jnp.einsum("ahf,ahk->afk", root, normal)
        drawn = jnp.transpose(mean[..., None] + spread, (2, 1, 0))
        return {"params": {**params["params"], "mean": mean.T, "drawn": drawn}}


def inverse_root(precision: jax.Array) -> jax.Array:
    """R with RᵀR = `precision`⁻¹ `[F, F]`: the inverse of its Cholesky factor, both found row by
    row.

    Not by LAPACK: on CPUs jaxlib's batched calls wait inside XLA's pool of threads for helpers from
    the same pool, and where every device does so at once none is left and all wait for ever.
    """
    size = precision.shape[-1]
    number, unit = jnp.arange(size), jnp.eye(size, dtype=precision.dtype)

    def row(j, found):
        lower, inverse = found
        column = precision[:, j] - lower @ lower[j]
        pivot = jnp.sqrt(column[j])
        inverse = inverse.at[j].set((unit[j] - lower[j] @ inverse) / pivot)
        return lower.at[:, j].set(jnp.where(number >= j, column / pivot, 0)), inverse

    start = jnp.zeros_like(precision)
    return jax.lax.fori_loop(0, size, row, (start, start))[1]
