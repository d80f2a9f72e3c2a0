"""The rules: a belief over the candidates in, the same `Decision` as the deep agents' out."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.stats
import numpy as np
import scipy.stats

from idrl import ids
from idrl.bandits.posterior import Beta, Gaussian
from idrl.errors import IdrlError, unknown

KINDS = ("ids", "ucb", "thompson", "greedy", "ei")

# name: (what it is, what it changes in the paper's `ids`)
RULES: dict[str, tuple[str, dict[str, Any]]] = {
    "ids": ("the paper's: argmin regret² / log(1 + σ²/ρ²)", {}),
    "ids-ucb": (
        "IDS that asks what a point teaches about the most optimistic one",
        {"info_gain": "ucb"},
    ),
    "ids-variance": (
        "IDS with the variance gain over posterior draws",
        {"info_gain": "variance"},
    ),
    "ids-additive": ("argmin regret² − β·gain", {"policy": "additive"}),
    "ids-randomized": (
        "the distribution that minimises (E regret)² / E gain",
        {"policy": "randomized"},
    ),
    "vids": (
        "Russo and Van Roy's: expected regret, variance gain, randomized",
        {"regret": "bayes", "info_gain": "variance", "policy": "randomized"},
    ),
    "ucb": ("the largest mean + λ·σ", {"kind": "ucb"}),
    "thompson": ("the best point of one draw from the posterior", {"kind": "thompson"}),
    "greedy": ("the largest mean", {"kind": "greedy"}),
    "ei": ("the largest expected improvement over the best mean", {"kind": "ei"}),
}


@dataclasses.dataclass(frozen=True)
class BanditRule:
    """How to choose. Hashable, so that a compiled simulation can close over it."""

    kind: str = "ids"  # `ids`, `ucb`, `thompson`, `greedy` or `ei`
    lam: float = 2.0  # width of the confidence interval, in standard deviations
    regret: str = "conservative"  # as in `idrl.ids.decide_moments`
    info_gain: str = "log"  # as there
    policy: str = "deterministic"  # as there
    beta: float = 1.0  # what a unit of gain is worth to the additive policy, in regret²
    draws: int = 512  # posterior draws for the expected regret and the variance gain
    eps2: float = 1e-12  # far below any real gain; the posterior is exact, so no ensemble collapses

    def __post_init__(self) -> None:
        for name, known in (
            ("kind", KINDS),
            ("regret", ids.REGRETS),
            ("info_gain", ids.INFO_GAINS),
            ("policy", ids.POLICIES),
        ):
            if getattr(self, name) not in known:
                raise unknown(name, str(getattr(self, name)), known)
        for name in ("lam", "beta", "eps2"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise IdrlError(f"{name}={value} must be a finite number, 0 or above.")
        if self.draws < 1:
            raise IdrlError(f"draws={self.draws} must be 1 or more.")

    @property
    def needs_draws(self) -> bool:
        return self.regret == "bayes" or self.info_gain == "variance"


def named_rule(name: str, **options: Any) -> BanditRule:
    """A rule by its name, with some of its options changed.

    Args:
        name: in `RULES`.
    """
    if name not in RULES:
        raise unknown("rule", name, RULES)
    known = {field.name for field in dataclasses.fields(BanditRule)} - {"kind"}
    for option in options:
        if option not in known:
            raise unknown("option", option, known)
    rule = BanditRule(**{**RULES[name][1], **options})
    # An option that could change nothing is a mistake, and must not pass for a choice.
    if rule.kind != "ids" and "policy" in options:
        raise IdrlError(f"policy belongs to the ids rules, and {name!r} is not one of them.")
    if "beta" in options and (rule.kind != "ids" or rule.policy != "additive"):
        raise IdrlError("beta belongs to policy='additive' of the ids rules.")
    if "draws" in options and not rule.needs_draws:
        raise IdrlError("draws belong to regret='bayes' and info_gain='variance'.")
    return rule


def choose(rule: BanditRule, belief: Gaussian | Beta, rho2, key: jax.Array) -> ids.Decision:
    """The rule's decision, described in the terms of `idrl.ids` whatever the rule."""
    mu, sigma2 = _steady(belief.mean), _steady(belief.variance)
    draw_key, pick_key = jax.random.split(key)
    draws = None
    if rule.needs_draws:
        draws = belief.draw(draw_key, rule.draws)
    cov = _steady(belief.cov) if rule.info_gain == "ucb" else None
    said = ids.decide_moments(
        mu, sigma2, rho2, cov=cov, samples=draws,
        lam=rule.lam, eps2=rule.eps2, key=pick_key, regret=rule.regret, info_gain=rule.info_gain,
        policy=rule.policy, beta=rule.beta,
    )  # fmt: skip
    if rule.kind == "ids":
        return said
    if rule.kind == "ucb":
        score = mu + rule.lam * said.sigma
    elif rule.kind == "thompson":
        score = belief.draw(pick_key, 1)[0]
    elif rule.kind == "greedy":
        score = mu
    else:
        score = _expected_improvement(mu, said.sigma)
    action = score.argmax(-1).astype(np.int32)  # ties go to the lowest index, as in `ids`
    xp = np if isinstance(mu, np.ndarray) else jnp
    return said._replace(action=action, probs=(xp.arange(mu.shape[-1]) == action).astype(mu.dtype))


def _steady(values):
    """Rounded to 12 significant digits.

    Points that are alike, such as all of them before the first observation, would otherwise differ
    by the last bit, and which of them is chosen by the machine it runs on.
    """
    xp = np if isinstance(values, np.ndarray) else jnp
    mantissa, exponent = xp.frexp(values)
    return xp.ldexp(xp.round(mantissa * 1e12) / 1e12, exponent)


def _expected_improvement(mu, sigma):
    """E max(value − best, 0), the best being the largest mean of all candidates.

    The largest *observation* is the usual reference without noise; under noise it is the luckiest
    one, so the largest mean stands in for it.
    """
    xp, normal = (
        (np, scipy.stats.norm) if isinstance(mu, np.ndarray) else (jnp, jax.scipy.stats.norm)
    )
    behind = mu - mu.max()
    safe = xp.where(sigma > 0, sigma, 1)
    z = behind / safe
    return xp.where(sigma > 0, behind * normal.cdf(z) + safe * normal.pdf(z), 0)
