"""Losses for one transition, pure; the caller vmaps them over batch and heads.

Names follow DeepMind's convention: `_tm1` is before the step, `_t` after it; `discount_t` is γ,
and 0 where the episode terminated. A truncated transition keeps its γ: only termination cuts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def huber(error: jax.Array, delta: float = 1.0) -> jax.Array:
    """½x² within ±δ, linear beyond.

    Its slope, the clipped error, is written out: derived from the two cases it costs half as much
    again where errors are many, as with quantiles. It has no second derivative.

    Args:
        error: any shape.
        delta: where the loss becomes linear.
    """
    slope = jax.lax.stop_gradient(jnp.clip(error, -delta, delta))
    return slope * (error - 0.5 * slope)


def squared(error: jax.Array) -> jax.Array:
    """x², without the ½ (the authors' C51-IDS code).

    Args:
        error: any shape.
    """
    return error**2


def of(error: str) -> Callable[[jax.Array], jax.Array]:
    """The loss of an error by its name.

    Args:
        error: `"huber"` or `"squared"`.
    """
    return {"huber": huber, "squared": squared}[error]


def q_learning_error(q_tm1, a_tm1, r_t, discount_t, q_t, selector_t):
    """TD error of one Q-function, `[A]` values: the action by `selector_t`, its value by `q_t`.

    With the online values as the selector this is Double DQN, with `q_t` itself plain DQN.

    Args:
        q_tm1: Q-values before the step, `[A]`.
        a_tm1: the action taken.
        r_t: the reward.
        discount_t: γ, or 0 where the episode terminated.
        q_t: Q-values after it, of the target network.
        selector_t: values that choose the next action, `[A]`.
    """
    target = r_t + discount_t * q_t[selector_t.argmax()]
    return jax.lax.stop_gradient(target) - q_tm1[a_tm1]


def categorical_loss(atoms, logits_tm1, a_tm1, r_t, discount_t, logits_t, selector_t=None):
    """Cross-entropy to the projected target distribution (C51).

    Args:
        atoms: equidistant returns, `[N]`.
        logits_tm1: before the step, `[A, N]`.
        a_tm1: the action taken.
        r_t: the reward.
        discount_t: γ, or 0 where the episode terminated.
        logits_t: after it, of the target network, `[A, N]`.
        selector_t: values that choose the next action, `[A]`; by default the mean of the target
            distribution.
    """
    probs_t = jax.nn.softmax(logits_t)
    best = (probs_t @ atoms if selector_t is None else selector_t).argmax()
    target = project(atoms, r_t + discount_t * atoms, probs_t[best])
    return -(jax.lax.stop_gradient(target) * jax.nn.log_softmax(logits_tm1[a_tm1])).sum()


def project(atoms, values, probs):
    """Move a distribution onto equidistant atoms.

    Each value shares its mass between its two neighbours by a triangular kernel, so all mass is
    kept, even if a value falls exactly on an atom.

    Args:
        atoms: equidistant returns, `[N]`.
        values: where the mass is, `[M]`.
        probs: the mass, `[M]`.
    """
    spacing = atoms[1] - atoms[0]
    values = jnp.clip(values, atoms[0], atoms[-1])
    if one_by_one():
        shares = _summed(
            lambda j: _at(probs, j) * jnp.clip(1 - jnp.abs(_at(values, j) - atoms) / spacing, 0, 1),
            values.size,
        )
        return shares.astype(probs.dtype)
    distance = jnp.abs(values[None, :] - atoms[:, None]) / spacing
    return jnp.clip(1 - distance, 0, 1) @ probs


def quantile_loss(
    quantiles_tm1, a_tm1, r_t, discount_t, quantiles_t, kappa: float = 1.0, selector_t=None,
    taus=None,
):  # fmt: skip
    """Quantile-Huber loss: mean over targets, sum over predictions.

    Args:
        quantiles_tm1: before the step, `[A, N]`.
        a_tm1: the action taken.
        r_t: the reward.
        discount_t: γ, or 0 where the episode terminated.
        quantiles_t: after it, of the target network, `[A, M]`.
        kappa: where Huber's loss becomes linear.
        selector_t: values that choose the next action, `[A]`; by default the mean of the target's
            quantiles.
        taus: fractions of the predicted quantiles, `[N]`, constants; by default QR-DQN's midpoints.
    """
    best = (quantiles_t.mean(-1) if selector_t is None else selector_t).argmax()
    target = jax.lax.stop_gradient(r_t + discount_t * quantiles_t[best])
    predicted = quantiles_tm1[a_tm1]
    taus = midpoints(predicted.shape[-1]) if taus is None else jax.lax.stop_gradient(taus)
    if one_by_one():
        return _quantile_huber(predicted, target, taus, kappa)
    error = target[:, None] - predicted  # [target, predicted]: summed over what is not side by side
    weight = jnp.where(error < 0, 1 - taus, taus)
    return (weight * huber(error, kappa)).mean(0).sum() / kappa


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _quantile_huber(predicted, target, taus, kappa: float):
    """The same of one target after the other; differentiable in `predicted` alone."""
    return _quantile_huber_slope(predicted, target, taus, kappa)[0]


def _quantile_huber_slope(predicted, target, taus, kappa: float):
    """The loss, and its slope in minus `predicted`."""

    def one(j):
        error = _at(target, j) - predicted
        clipped = jnp.clip(error, -kappa, kappa)
        slope = jnp.where(error < 0, 1 - taus, taus) * clipped
        return slope * (error - 0.5 * clipped), slope

    loss, slope = _summed(one, target.size)
    slope = jax.lax.stop_gradient(slope).astype(predicted.dtype)  # as in `huber`
    return loss.sum() / (target.size * kappa), slope / (target.size * kappa)


_quantile_huber.defvjp(
    _quantile_huber_slope, lambda kappa, slope, gradient: (-gradient * slope, None, None)
)


def one_by_one() -> bool:
    """Whether what is summed over all pairs of two arrays is summed in a loop over one of them: for
    51 × 51 quantiles a CPU then takes a sixth of the time; on a GPU each turn is a launch."""
    return jax.default_backend() == "cpu"


def _summed(term: Callable[[jax.Array], Any], count: int) -> Any:
    """term(0) + … + term(count - 1), of each of its arrays."""
    like = jax.eval_shape(term, jax.ShapeDtypeStruct((), jnp.int32))
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)
    return jax.lax.fori_loop(
        0, count, lambda j, total: jax.tree.map(jnp.add, total, term(j)), zeros
    )


def _at(x: jax.Array, j: jax.Array) -> jax.Array:
    return jax.lax.dynamic_index_in_dim(x, j, keepdims=False)


def midpoints(n: int) -> jax.Array:
    """The fractions τ̂ of QR-DQN: (2i+1)/2n.

    Args:
        n: how many quantiles.
    """
    return (jnp.arange(n) + 0.5) / n
