"""The rule: from an ensemble, or the moments of any posterior, to a decision."""

from __future__ import annotations

import jax
import numpy as np

from idrl.ids.arrays import Array, floating, namespace
from idrl.ids.decision import Decision
from idrl.ids.noise import NOISES, observation_noise
from idrl.ids.policies import POLICIES, draw, one_hot_of_best, randomized
from idrl.ids.terms import (
    INFO_GAINS,
    REGRETS,
    bayes_regret,
    conservative_regret,
    ucb_gain,
    variance_gain,
)
from idrl.system.arguments import check_heads, check_moments, known, need


def decide(
    q_heads: Array,
    return_variance: Array | None = None,
    *,
    lam: float | Array = 0.1,
    rho2: float | Array = 1.0,
    rho2_floor: float = 0.25,
    eps1: float = 1e-5,
    eps2: float = 1e-5,
    key: jax.Array | None = None,
    noise: str = "normalized",
    regret: str = "conservative",
    info_gain: str = "log",
    policy: str = "deterministic",
    beta: float | Array = 1.0,
    mask: Array | None = None,
) -> Decision:
    """Choose by an ensemble, and by the variance of the return where it is known.

    Args:
        q_heads: the Q-values of K heads, `[..., K, A]`.
        return_variance: the variance of the return of each action, `[..., A]`. Without it the noise
            is the constant `rho2` (DQN-IDS).
        lam: λ, the width of the confidence interval in standard deviations.
        rho2, rho2_floor, eps1, noise: how the variance becomes ρ², see `observation_noise`.
        eps2: added to the information gain.
        key: a JAX random key, for `policy="randomized"`.
        regret: `"conservative"`, the paper's bound, or `"bayes"`, the mean over heads of max Q −
            Q(a).
        info_gain: `"log"`, the paper's; `"ucb"`, about the most optimistic action; or `"variance"`.
        policy: `"deterministic"` minimises regret²/gain, `"additive"` regret² − β·gain;
            `"randomized"` draws from the distribution that minimises (E regret)²/E gain.
        beta: β of `"additive"`, in squared units of the return per unit of gain.
        mask: true where an action is allowed, `[..., A]`; the others are ignored.
    """
    xp = namespace(q_heads, return_variance, rho2, mask, lam, beta)
    q_heads = floating(xp, q_heads)
    check_heads(q_heads, mask, return_variance, rho2=rho2, lam=lam, beta=beta)
    known("noise", noise, NOISES)
    if return_variance is None:
        noise = "constant"
    mu, sigma2 = moments(q_heads)
    rho2 = observation_noise(
        mu, return_variance, noise=noise, rho2=rho2, rho2_floor=rho2_floor, eps1=eps1, mask=mask
    )
    return decide_moments(
        mu, sigma2, rho2, samples=q_heads, lam=lam, eps2=eps2, key=key,
        regret=regret, info_gain=info_gain, policy=policy, beta=beta, mask=mask,
    )  # fmt: skip


def decide_moments(
    mu: Array,
    sigma2: Array,
    rho2: Array,
    *,
    cov: Array | None = None,
    samples: Array | None = None,
    lam: float | Array = 0.1,
    eps2: float = 1e-5,
    key: jax.Array | None = None,
    regret: str = "conservative",
    info_gain: str = "log",
    policy: str = "deterministic",
    beta: float | Array = 1.0,
    mask: Array | None = None,
) -> Decision:
    """Choose by the moments of any posterior.

    Args:
        mu: the mean of each action's value, `[..., A]`.
        sigma2: its variance, `[..., A]`.
        rho2: the variance of the noise, `[..., A]`.
        cov: the covariance of the values, `[..., A, A]`, for `info_gain="ucb"`.
        samples: draws from the posterior, `[..., K, A]`: for `regret="bayes"`,
            `info_gain="variance"`, and in place of a missing `cov`.
        lam, eps2, key, regret, info_gain, policy, beta, mask: as in `decide`.
    """
    for name, value, names in (
        ("regret", regret, REGRETS),
        ("info_gain", info_gain, INFO_GAINS),
        ("policy", policy, POLICIES),
    ):
        known(name, value, names)
    xp = namespace(mu, sigma2, rho2, cov, samples, mask, lam, beta)
    mu = floating(xp, mu)
    check_moments(mu, sigma2, cov, samples, mask, rho2=rho2, lam=lam, beta=beta)
    samples = None if samples is None else xp.asarray(samples, dtype=mu.dtype)
    sigma2 = xp.maximum(xp.asarray(sigma2, dtype=mu.dtype), 0)
    rho2 = xp.broadcast_to(xp.asarray(rho2, dtype=mu.dtype), mu.shape)
    lam = xp.asarray(lam, dtype=mu.dtype)
    sigma = xp.sqrt(sigma2)
    finite = xp.isfinite(mu) & xp.isfinite(sigma2) & xp.isfinite(rho2)
    allowed = finite if mask is None else finite & xp.asarray(mask, dtype=bool)

    if regret == "conservative":
        delta = conservative_regret(xp, mu, sigma, lam, allowed)
    else:
        delta = bayes_regret(xp, need(samples, "regret='bayes'"), allowed)
    if info_gain == "log":
        # ρ² = 0 with σ² > 0 would teach everything: the largest finite number keeps it a number.
        ceiling = xp.asarray(np.finfo(mu.dtype).max, dtype=mu.dtype)
        tiny = xp.asarray(np.finfo(mu.dtype).tiny, dtype=mu.dtype)
        gain = xp.log1p(xp.minimum(sigma2 / xp.maximum(rho2, tiny), ceiling))
    elif info_gain == "ucb":
        gain = ucb_gain(xp, mu, sigma2, rho2, cov, samples, lam, allowed)
    else:
        gain = variance_gain(xp, need(samples, "info_gain='variance'"), allowed)
    gain = gain + xp.asarray(eps2, dtype=mu.dtype)

    # ε₂ keeps the gain above 0; a caller who sets ε₂ = 0 gets the limits of Δ²/I as I → 0.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = xp.where(gain > 0, delta**2 / gain, xp.where(delta == 0, 0.0, xp.inf))
        ratio = xp.where(allowed, ratio, xp.inf).astype(mu.dtype)
        if policy == "randomized":
            probs = randomized(xp, delta, gain, allowed)
        else:
            score = ratio if policy == "deterministic" else delta**2 - beta * gain
            probs = one_hot_of_best(xp, score, allowed).astype(mu.dtype)
    action = draw(xp, probs, key) if policy == "randomized" else xp.argmax(probs, axis=-1)
    action = xp.where(allowed.any(-1), action, -1).astype(np.int32)
    return Decision(action, mu, sigma, delta, rho2, gain, ratio, probs)


def moments(q_heads: Array) -> tuple[Array, Array]:
    """Mean and biased variance over the heads, `[..., A]` each.

    Args:
        q_heads: the Q-values of K heads, `[..., K, A]`.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        mu = q_heads.mean(-2)
        return mu, ((q_heads - mu[..., None, :]) ** 2).mean(-2)


def relative(q_heads: Array, mask: Array | None = None) -> Array:
    """Heads without what each of them adds to all allowed actions alike.

    The value of a state is not a reason to prefer one action in it, yet it is part of σ. The
    mean over heads stays, σ becomes that of differences.

    Args:
        q_heads: the Q-values of K heads, `[..., K, A]`.
        mask: true where an action is allowed, `[..., A]`; by default everywhere.
    """
    xp = namespace(q_heads, mask)
    q_heads = floating(xp, q_heads)
    # What is not finite must not spoil the other actions: `decide` passes over it.
    counts = xp.isfinite(q_heads).all(-2, keepdims=True)
    if mask is not None:
        counts = counts & xp.asarray(mask, bool)[..., None, :]
    counts = xp.broadcast_to(counts, q_heads.shape)
    total = xp.where(counts, q_heads, 0.0).sum(-1, keepdims=True)
    level = total / xp.maximum(counts.sum(-1, keepdims=True), 1)
    return q_heads - level + level.mean(-2, keepdims=True)
