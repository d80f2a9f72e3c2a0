"""Information-directed sampling: what an action may cost, what it may teach, and which to take.

Pure functions over arrays with any leading batch shape, usable without the rest of the library.
NumPy arrays in give NumPy arrays out (float64 stays float64); JAX arrays give JAX arrays, under
`jit` and `vmap` too. Names follow the paper: `mu`, `sigma`, `rho2`, `regret`, `info_gain`, `ratio`.

An action whose mean, variance or noise is NaN or infinite is never chosen while a finite one is
left: its regret and ratio read +inf, it takes no part in the maximum of the regret, and its
probability is 0. Where no action is left (all of them non-finite or masked) `action` is -1 and
every probability 0, so that nobody mistakes the answer for a choice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.errors import IdrlError
from idrl.system.arguments import brief, check_heads, check_moments, known, need

Array = Any  # a NumPy or a JAX array

REGRETS = ("conservative", "bayes")
INFO_GAINS = ("log", "ucb", "variance")
NOISES = ("constant", "return", "normalized", "smoothed", "tempered", "added")
POLICIES = ("deterministic", "additive", "randomized")


class Decision(NamedTuple):
    """What a rule decided for each state, and why. Unless noted they are `[..., A]`."""

    action: Array  # the action taken, `[...]`
    mu: Array  # mean of the heads
    sigma: Array  # standard deviation of the heads
    regret: Array  # what the action may cost
    rho2: Array  # variance of the noise of its return
    info_gain: Array  # what the action may teach
    ratio: Array  # regret² / info_gain
    probs: Array  # the distribution that `action` was drawn from

    def __repr__(self) -> str:
        return brief(self)

    def times(self, unit: Array, gain_in_returns: bool = False) -> Decision:
        """The same where returns are `unit` times larger; `gain_in_returns`: so is the square root
        of the information gain."""
        square = unit**2
        told = self._replace(
            mu=self.mu * unit, sigma=self.sigma * unit, regret=self.regret * unit,
            rho2=self.rho2 * square,
        )  # fmt: skip
        if gain_in_returns:
            return told._replace(info_gain=self.info_gain * square)
        return told._replace(ratio=self.ratio * square)

    @property
    def candidates(self) -> None:
        """Actions are whole numbers, and all are compared."""

    @property
    def taken(self) -> Array:
        """What to do."""
        return self.action


class Comparison(NamedTuple):
    """A decision among some of infinitely many actions: `action` is a number in `candidates`."""

    action: Array  # the index of the action taken in `candidates`, `[...]`
    mu: Array  # mean of the critics
    sigma: Array  # standard deviation of the critics
    regret: Array  # what the action may cost
    rho2: Array  # variance of the noise of its return
    info_gain: Array  # what the action may teach
    ratio: Array  # regret² / info_gain
    probs: Array  # the distribution that `action` was drawn from
    candidates: Array  # the actions compared, `[..., A, D]`

    def __repr__(self) -> str:
        return brief(self)

    @property
    def taken(self) -> Array:
        """What to do, `[..., D]`."""
        xp = _namespace(self.candidates)
        number = xp.maximum(xp.asarray(self.action), 0)[..., None, None]  # -1: none was finite
        return xp.take_along_axis(self.candidates, number, -2)[..., 0, :]


Decided = Decision | Comparison


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
    xp = _namespace(q_heads, return_variance, rho2, mask, lam, beta)
    q_heads = _floating(xp, q_heads)
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
    xp = _namespace(mu, sigma2, rho2, cov, samples, mask, lam, beta)
    mu = _floating(xp, mu)
    check_moments(mu, sigma2, cov, samples, mask, rho2=rho2, lam=lam, beta=beta)
    samples = None if samples is None else xp.asarray(samples, dtype=mu.dtype)
    sigma2 = xp.maximum(xp.asarray(sigma2, dtype=mu.dtype), 0)
    rho2 = xp.broadcast_to(xp.asarray(rho2, dtype=mu.dtype), mu.shape)
    lam = xp.asarray(lam, dtype=mu.dtype)
    sigma = xp.sqrt(sigma2)
    finite = xp.isfinite(mu) & xp.isfinite(sigma2) & xp.isfinite(rho2)
    allowed = finite if mask is None else finite & xp.asarray(mask, dtype=bool)

    if regret == "conservative":
        delta = _conservative_regret(xp, mu, sigma, lam, allowed)
    else:
        delta = _bayes_regret(xp, need(samples, "regret='bayes'"), allowed)
    if info_gain == "log":
        # ρ² = 0 with σ² > 0 would teach everything: the largest finite number keeps it a number.
        ceiling = xp.asarray(np.finfo(mu.dtype).max, dtype=mu.dtype)
        tiny = xp.asarray(np.finfo(mu.dtype).tiny, dtype=mu.dtype)
        gain = xp.log1p(xp.minimum(sigma2 / xp.maximum(rho2, tiny), ceiling))
    elif info_gain == "ucb":
        gain = _ucb_gain(xp, mu, sigma2, rho2, cov, samples, lam, allowed)
    else:
        gain = _variance_gain(xp, need(samples, "info_gain='variance'"), allowed)
    gain = gain + xp.asarray(eps2, dtype=mu.dtype)

    # ε₂ keeps the gain above 0; a caller who sets ε₂ = 0 gets the limits of Δ²/I as I → 0.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = xp.where(gain > 0, delta**2 / gain, xp.where(delta == 0, 0.0, xp.inf))
        ratio = xp.where(allowed, ratio, xp.inf).astype(mu.dtype)
        if policy == "randomized":
            probs = _randomized(xp, delta, gain, allowed)
        else:
            score = ratio if policy == "deterministic" else delta**2 - beta * gain
            probs = _one_hot_of_best(xp, score, allowed).astype(mu.dtype)
    action = _draw(xp, probs, key) if policy == "randomized" else xp.argmax(probs, axis=-1)
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
    xp = _namespace(q_heads, mask)
    q_heads = _floating(xp, q_heads)
    # What is not finite must not spoil the other actions: `decide` passes over it.
    counts = xp.isfinite(q_heads).all(-2, keepdims=True)
    if mask is not None:
        counts = counts & xp.asarray(mask, bool)[..., None, :]
    counts = xp.broadcast_to(counts, q_heads.shape)
    total = xp.where(counts, q_heads, 0.0).sum(-1, keepdims=True)
    level = total / xp.maximum(counts.sum(-1, keepdims=True), 1)
    return q_heads - level + level.mean(-2, keepdims=True)


def observation_noise(
    like: Array,
    return_variance: Array | None,
    *,
    noise: str = "normalized",
    rho2: float | Array = 1.0,
    rho2_floor: float = 0.25,
    eps1: float = 1e-5,
    mask: Array | None = None,
) -> Array:
    """ρ² `[..., A]` from the variance of the return.

    Args:
        like: an array whose shape and type the result has.
        return_variance: `[..., A]`.
        noise: `"normalized"`, the paper's, divides the variance by its mean over the allowed
            actions and floors it; `"return"` takes it as it is; `"constant"` is `rho2`;
            `"smoothed"` adds 1e-4 above and below, with no floor; `"tempered"` adds the normalised
            variance to `rho2`, so that an action without noise teaches no more than under
            `"constant"`; `"added"` adds the variance itself to `rho2`: it divides by nothing, so no
            action seems to teach much because the others are noisy.
        rho2: the constant of `"constant"`, `"tempered"` and `"added"`.
        rho2_floor: the least ρ² of `"normalized"`.
        eps1: added to the mean variance.
        mask: true where an action is allowed, `[..., A]`.
    """
    known("noise", noise, NOISES)
    xp = _namespace(like, return_variance, rho2, mask)
    if noise == "constant":
        return xp.broadcast_to(xp.asarray(rho2, dtype=like.dtype), like.shape)
    variance = xp.asarray(need(return_variance, f"noise={noise!r}"), dtype=like.dtype)
    if noise == "return":
        return variance
    if noise == "added":
        return xp.asarray(rho2, dtype=like.dtype) + variance
    # A non-finite variance condemns its own action, not the others through their mean.
    counted = xp.isfinite(variance)
    if mask is not None:
        counted = counted & xp.asarray(mask, dtype=bool)
    total = xp.where(counted, variance, 0).sum(-1, keepdims=True)
    mean = total / xp.maximum(counted.sum(-1, keepdims=True), 1).astype(like.dtype)
    # With ε₁ = 0 and no variance anywhere this is 0 and the floor, not 0/0.
    scale = xp.maximum(eps1 + mean, xp.asarray(np.finfo(like.dtype).tiny, dtype=like.dtype))
    if noise == "smoothed":
        return (variance + 1e-4) / (1e-4 + mean)
    if noise == "tempered":
        return xp.asarray(rho2, dtype=like.dtype) + variance / scale
    return xp.maximum(variance / scale, xp.asarray(rho2_floor, dtype=like.dtype))


def _conservative_regret(xp, mu, sigma, lam, allowed):
    """Δ̂(a) = max_b[μ(b)+λσ(b)] − [μ(a)−λσ(a)]: the best it could be less the worst this may be."""
    with np.errstate(invalid="ignore"):
        best = xp.where(allowed, mu + lam * sigma, -xp.inf).max(-1, keepdims=True)
        return xp.where(allowed, best - (mu - lam * sigma), xp.inf).astype(mu.dtype)


def _bayes_regret(xp, samples, allowed):
    """mean_k[max_b Q_k(b) − Q_k(a)]: what the action is expected to cost under the posterior."""
    samples = xp.asarray(samples)
    with np.errstate(invalid="ignore"):
        best = xp.where(allowed[..., None, :], samples, -xp.inf).max(-1, keepdims=True)
        return xp.where(allowed, (best - samples).mean(-2), xp.inf).astype(samples.dtype)


def _ucb_gain(xp, mu, sigma2, rho2, cov, samples, lam, allowed):
    """What the action teaches about the value of the most optimistic one, `u`, alone."""
    if cov is None:
        samples = need(samples, "info_gain='ucb' without `cov`")
        with np.errstate(invalid="ignore", over="ignore"):
            centred = samples - samples.mean(-2, keepdims=True)
            cov = xp.einsum("...ka,...kb->...ab", centred, centred) / samples.shape[-2]
    cov = xp.asarray(cov, dtype=mu.dtype)
    u = xp.where(allowed, mu + lam * xp.sqrt(sigma2), -xp.inf).argmax(-1)[..., None]
    sigma2_u = xp.take_along_axis(sigma2, u, -1)
    cov_u = xp.take_along_axis(cov, u[..., None], -2)[..., 0, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = (cov_u / sigma2_u) * (cov_u / (rho2 + sigma2))  # C² may overflow
    explained = xp.where((sigma2_u > 0) & xp.isfinite(explained), explained, 0)
    # Rounding may lift a perfect correlation without noise to 1 or above: stay below it.
    limit = xp.asarray(1 - np.finfo(mu.dtype).eps, dtype=mu.dtype)
    return -xp.log1p(-xp.clip(explained, 0, limit))


def _variance_gain(xp, samples, allowed):
    """Σ_{a*} p(a*)·(E[Q(a)|a*] − E[Q(a)])², with p(a*) the share of heads greedy on a*."""
    samples = xp.asarray(samples)
    dtype = samples.dtype
    finite = xp.where(allowed[..., None, :], samples, 0)
    best = xp.where(allowed[..., None, :], samples, -xp.inf).argmax(-1)
    greedy = (best[..., None] == xp.arange(samples.shape[-1])).astype(dtype)  # [..., K, A*]
    count = greedy.sum(-2)
    conditional = xp.einsum("...ks,...ka->...sa", greedy, finite) / xp.maximum(count, 1)[..., None]
    spread = (conditional - finite.mean(-2)[..., None, :]) ** 2
    return xp.einsum("...s,...sa->...a", count / samples.shape[-2], spread)


def _one_hot_of_best(xp, score, allowed):
    """One-hot of the smallest score among the allowed; the lowest index on ties."""
    score = xp.where(allowed, score, xp.inf)
    best = score.argmin(-1)
    # Where every allowed score overflowed to inf, argmin may point at a forbidden action.
    best_allowed = xp.take_along_axis(allowed, best[..., None], -1)[..., 0]
    best = xp.where(best_allowed, best, allowed.argmax(-1))
    return (best[..., None] == xp.arange(score.shape[-1])) & allowed


def _randomized(xp, delta, gain, allowed):
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
    chosen = _one_hot_of_best(xp, ratio.reshape(flat), pair_allowed.reshape(flat))
    chosen = chosen.reshape(ratio.shape).astype(delta.dtype)
    return (chosen * (1 - weight)).sum(-1) + (chosen * weight).sum(-2)


def _draw(xp, probs, key):
    if key is None:
        raise IdrlError("policy='randomized' draws its action: pass a JAX random `key`")
    u = xp.asarray(jax.random.uniform(key, probs.shape[:-1]), dtype=probs.dtype)
    # Counting the cumulative sums at or below u skips actions of probability 0.
    action = (xp.cumsum(probs, -1) <= u[..., None]).sum(-1)
    last_possible = probs.shape[-1] - 1 - (probs[..., ::-1] > 0).argmax(-1)
    return xp.minimum(action, last_possible)


def _floating(xp, x):
    """Whole numbers become floats: what is computed from them is none."""
    x = xp.asarray(x)
    return x if xp.issubdtype(x.dtype, np.floating) else x.astype(float)


def _namespace(*arrays):
    """jax.numpy if any argument is a JAX array (or tracer), NumPy otherwise."""
    return jnp if any(isinstance(a, jax.Array) for a in arrays) else np
