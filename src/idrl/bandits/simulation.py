"""A rule played on a setting, compiled, for many seeds side by side."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.bandits.checks import as_count
from idrl.bandits.choosing import BanditRule, choose, named_rule
from idrl.bandits.posterior import Beta, Gaussian
from idrl.bandits.settings import SETTINGS, Problem
from idrl.errors import IdrlError, unknown

SIMULATED_DRAWS = 64  # a step of a simulation; hundreds of steps average what single ones miss
_SIDE_BY_SIDE = 25  # seeds of one compiled call: their state stays in the processor's cache


class Plays(NamedTuple):
    """What happened: S seeds, T steps, n candidates."""

    actions: np.ndarray  # [S, T]
    rewards: np.ndarray  # [S, T] as observed
    regret: np.ndarray  # [S, T] expected reward lost in each step
    simple_regret: np.ndarray  # [S, T] of the candidate with the largest mean after each step
    noisy: np.ndarray  # [S, T] whether ρ² there is above the candidates' median
    mean: np.ndarray  # [S, n] at the end
    sigma: np.ndarray  # [S, n]


def simulated_rule(name: str, **options) -> BanditRule:
    """The named rule, with few draws where it draws and nothing else is said."""
    rule = named_rule(name, **options)
    if rule.needs_draws and "draws" not in options:
        rule = named_rule(name, draws=SIMULATED_DRAWS, **options)
    return rule


def simulate(
    setting: str,
    rule: str | BanditRule = "ids",
    seeds: int | Iterable[int] = 20,
    steps: int | None = None,
    **options,
) -> Plays:
    """Play a rule on the problems of a setting. More keywords change the rule, as in `suggest`.

    The noise of step t of a seed is the same for all rules, so that their differences are paired.

    Args:
        setting: a name in `SETTINGS`.
        rule: a name in `RULES`, or a `BanditRule`.
        seeds: how many problems, or which.
        steps: samples of each; by default the setting's.
    """
    if setting not in SETTINGS:
        raise unknown("setting", setting, SETTINGS)
    if isinstance(rule, BanditRule):
        if options:
            raise IdrlError("options change a rule given by name; a `BanditRule` has them already.")
    else:
        rule = simulated_rule(rule, **options)
    chosen = list(range(as_count(seeds, "seeds"))) if np.ndim(seeds) == 0 else list(seeds)  # type: ignore[arg-type]
    if not chosen or min(chosen) < 0:
        raise IdrlError("seeds must be whole numbers, 0 or above, and at least one.")
    steps = SETTINGS[setting].steps if steps is None else as_count(steps, "steps")
    return play([SETTINGS[setting].problem(seed) for seed in chosen], chosen, rule, steps)


def play(problems: list[Problem], seeds: list[int], rule: BanditRule, steps: int) -> Plays:
    """Play a rule on problems of one shape, problem i with the randomness of seed i."""
    wide = min(len(seeds), _SIDE_BY_SIDE)
    parts = []
    for start in range(0, len(seeds), wide):
        # The last call repeats a seed where too few are left: one shape, one compilation.
        some = [min(i, len(seeds) - 1) for i in range(start, start + wide)]
        # float64: after hundreds of precise measurements a variance is far below float32's reach.
        with jax.enable_x64(True):
            told = [_told(problems[i], seeds[i], steps) for i in some]
            stacked = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *told)
            keys = jax.vmap(jax.random.key)(jnp.asarray([seeds[i] for i in some]))
            parts.append(jax.tree.map(np.asarray, _play(stacked, keys, rule=rule)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(seeds)], *parts)


class _Told(NamedTuple):
    """All of one play that its rule does not decide."""

    prior: Gaussian | Beta
    truth: Any  # [n]
    rho2: Any  # [n]
    loud: Any  # [n]
    luck: Any  # [T] standard normal, or uniform for outcomes of 0 and 1


def _told(problem: Problem, seed: int, steps: int) -> _Told:
    # Drawn here, in the order of the steps: the same for every rule, and a longer play begins as
    # the shorter one.
    generator = np.random.default_rng([seed, *b"luck"])
    outcomes = isinstance(problem.prior, Beta)
    luck = generator.uniform(size=steps) if outcomes else generator.standard_normal(steps)
    loud = problem.rho2 > np.median(problem.rho2)
    return _Told(problem.prior, problem.truth, problem.rho2, loud, luck)


@functools.partial(jax.jit, static_argnames="rule")
def _play(told: _Told, keys: jax.Array, *, rule: BanditRule) -> Plays:
    return jax.vmap(functools.partial(_one_seed, rule=rule))(told, keys)


def _one_seed(told: _Told, key: jax.Array, *, rule: BanditRule) -> Plays:
    truth, rho2 = told.truth, told.rho2

    def step(belief, now):
        t, luck = now
        rule_key = jax.random.fold_in(key, t)
        if isinstance(belief, Beta):
            action = choose(rule, belief, belief.rho2, rule_key).action
            reward = (luck < truth[action]).astype(truth.dtype)
            belief = belief.update(action, reward)
        else:
            action = choose(rule, belief, rho2, rule_key).action
            reward = truth[action] + jnp.sqrt(rho2[action]) * luck
            belief = belief.update(action, reward, rho2[action])
        lost = truth.max() - truth[action]
        would_lose = truth.max() - truth[belief.mean.argmax()]
        return belief, (action, reward, lost, would_lose, told.loud[action])

    steps = jnp.arange(told.luck.shape[0])
    belief, happened = jax.lax.scan(step, told.prior, (steps, told.luck))
    return Plays._make((*happened, belief.mean, jnp.sqrt(belief.variance)))
