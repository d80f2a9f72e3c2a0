"""Ask and tell: what to measure next, and what came of it."""

from __future__ import annotations

from typing import Any, TypeVar

import jax

from idrl.bandits.bernoulli import BetaBernoulli
from idrl.bandits.checks import as_points, as_values
from idrl.bandits.choosing import BanditRule, choose, named_rule
from idrl.bandits.gaussian import GaussianModel
from idrl.errors import IdrlError
from idrl.ids import Decision

Model = TypeVar("Model", GaussianModel, BetaBernoulli)


def suggest(
    model: GaussianModel | BetaBernoulli,
    rule: str | BanditRule = "ids",
    *,
    seed: int = 0,
    **options: Any,
) -> Decision:
    """The next candidate to measure, `action`, and for each `[n]` why: `mu`, `sigma`, `rho2`,
    `regret`, `info_gain`, `ratio`, `probs`.

    `rule` is a name of `RULES`; `options` change it: `lam`, `regret`, `info_gain`, `policy`,
    `beta`, `draws`. The rules that draw do so by `seed` and the number of observations so far: the
    same question has the same answer, the next step a fresh draw. `suggest(model, "greedy")` is the
    best candidate as far as is known. One candidate is always suggested.
    """
    if isinstance(rule, BanditRule):
        if options:
            raise IdrlError("options change a rule given by name; a `BanditRule` has them already.")
    else:
        rule = named_rule(rule, **options)
    key = jax.random.fold_in(jax.random.key(seed), model.count)
    return choose(rule, model.belief, model.rho2, key)


def observe(model: Model, index, value, noise_variance=None) -> Model:
    """The model after `value` was measured at candidate `index`; both may be lists.

    `noise_variance`, the variance of these very measurements, overrides the model's.
    """
    at = model._at_candidates(index)
    return model._observed(at, as_values(value, len(at)), noise_variance)


def observe_at(model: Model, points, values, noise_variance=None) -> Model:
    """The model after `values` `[k]` were measured at `points` `[k, d]`, candidates or not."""
    points = as_points(points, "points")
    values = as_values(values, len(points))
    wider, index = model._with_points(points)
    return wider._observed(index, values, noise_variance)
