"""From regret and information gain to a distribution over actions."""

from __future__ import annotations

import jax

from idrl.errors import IdrlError

POLICIES = ("deterministic", "additive", "randomized")


def one_hot_of_best(xp, score, allowed):
    """One-hot of the smallest score among the allowed; the lowest index on ties."""
    score = xp.where(allowed, score, xp.inf)
    best = score.argmin(-1)
    # Where every allowed score overflowed to inf, argmin may point at a forbidden action.
    best_allowed = xp.take_along_axis(allowed, best[..., None], -1)[..., 0]
    best = xp.where(best_allowed, best, allowed.argmax(-1))
    return (best[..., None] == xp.arange(score.shape[-1])) & allowed


def randomized(xp, delta, gain, allowed):
    """The distribution that minimises (E Δ)²/E I. An optimum mixes at most two actions.

    For a pair with Δ₁ < Δ₂ and I₁ < I₂ the best weight of the second has a closed form; any other
    pair is best at one of its ends, which the pairs (a, a) cover.
    """
    actions = delta.shape[-1]
    d1, d2 = delta[..., :, None], delta[..., None, :]
    i1, i2 = gain[..., :, None], gain[..., None, :]
    mixes = (d1 < d2) & (i1 < i2) & xp.isfinite(d2)
    rise_d = xp.where(mixes, d2 - d1, 1)
    rise_i = xp.where(mixes, i2 - i1, 1)
    weight = xp.where(mixes, xp.clip(d1 / rise_d - 2 * i1 / rise_i, 0, 1), 0)
    cost = xp.where(weight > 0, (1 - weight) * d1 + weight * d2, d1)
    teach = xp.where(weight > 0, (1 - weight) * i1 + weight * i2, i1)
    ratio = xp.where(teach > 0, cost**2 / teach, xp.where(cost == 0, 0.0, xp.inf))
    pair_allowed = allowed[..., :, None] & allowed[..., None, :]
    flat = (*ratio.shape[:-2], actions * actions)
    chosen = one_hot_of_best(xp, ratio.reshape(flat), pair_allowed.reshape(flat))
    chosen = chosen.reshape(ratio.shape).astype(delta.dtype)
    return (chosen * (1 - weight)).sum(-1) + (chosen * weight).sum(-2)


def draw(xp, probs, key):
    if key is None:
        raise IdrlError("policy='randomized' draws its action: pass a JAX random `key`")
    u = xp.asarray(jax.random.uniform(key, probs.shape[:-1]), dtype=probs.dtype)
    # Counting the cumulative sums at or below u skips actions of probability 0.
    action = (xp.cumsum(probs, -1) <= u[..., None]).sum(-1)
    last_possible = probs.shape[-1] - 1 - (probs[..., ::-1] > 0).argmax(-1)
    return xp.minimum(action, last_possible)
