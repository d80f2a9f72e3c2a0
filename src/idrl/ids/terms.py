"""What an action may cost, Δ, and what it may teach, I: `[..., A]` each. `allowed` is where an
action may be taken, `[..., A]`; `samples` are draws from the posterior, `[..., K, A]`."""

from __future__ import annotations

import numpy as np

from idrl.system.arguments import need

REGRETS = ("conservative", "bayes")
INFO_GAINS = ("log", "ucb", "variance")


def conservative_regret(xp, mu, sigma, lam, allowed):
    """Δ̂(a) = max_b[μ(b)+λσ(b)] − [μ(a)−λσ(a)]: the best it could be less the worst this may be."""
    with np.errstate(invalid="ignore"):
        best = xp.where(allowed, mu + lam * sigma, -xp.inf).max(-1, keepdims=True)
        return xp.where(allowed, best - (mu - lam * sigma), xp.inf).astype(mu.dtype)


def bayes_regret(xp, samples, allowed):
    """mean_k[max_b Q_k(b) − Q_k(a)]: what the action is expected to cost under the posterior."""
    samples = xp.asarray(samples)
    with np.errstate(invalid="ignore"):
        best = xp.where(allowed[..., None, :], samples, -xp.inf).max(-1, keepdims=True)
        return xp.where(allowed, (best - samples).mean(-2), xp.inf).astype(samples.dtype)


def ucb_gain(xp, mu, sigma2, rho2, cov, samples, lam, allowed):
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


def variance_gain(xp, samples, allowed):
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
