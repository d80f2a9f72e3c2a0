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
    """Suggest the next candidate to measure.

    Returns a `Decision`: the candidate as `action`, and for each candidate why (`mu`, `sigma`,
    `rho2`, `regret`, `info_gain`, `ratio`, `probs`). More keywords change the rule: `lam`,
    `regret`, `info_gain`, `policy`, `beta`, `draws`. `suggest(model, "greedy")` is the best
    candidate as far as is known.

    Args:
        model: what is believed of the candidates.
        rule: a name in `RULES`, or a `BanditRule`.
        seed: for rules that draw. They draw by `seed` and the number of observations so far: the
            same question has the same answer, the next step a fresh draw.
    """
    _check(model)
    if isinstance(rule, BanditRule):
        if options:
            raise IdrlError("options change a rule given by name; a `BanditRule` has them already.")
    else:
        rule = named_rule(rule, **options)
    key = jax.random.fold_in(jax.random.key(seed), model.count)
    return choose(rule, model.belief, model.rho2, key)


def observe(model: Model, index, value, noise_variance=None) -> Model:
    """The model after measurements at candidates; the old one stays as it is.

    Args:
        model: what was believed before.
        index: the index of a candidate, or a list.
        value: what was measured, or a list.
        noise_variance: the variance of these very measurements, in place of the model's.
    """
    _check(model)
    at = model._at_candidates(index)
    return model._observed(at, as_values(value, len(at)), noise_variance)


def observe_at(model: Model, points, values, noise_variance=None) -> Model:
    """The model after measurements at points, candidates or not.

    Args:
        model: what was believed before.
        points: `[k, d]`.
        values: what was measured, `[k]`.
        noise_variance: the variance of these very measurements, in place of the model's.
    """
    _check(model)
    points = as_points(points, "points")
    values = as_values(values, len(points))
    wider, index = model._with_points(points)
    return wider._observed(index, values, noise_variance)


def _check(model: Any) -> None:
    if not isinstance(model, GaussianModel | BetaBernoulli):
        raise IdrlError(
            f"{type(model).__name__} is not a model of idrl.bandits, such as GaussianProcess; "
            "idrl.ids.decide_moments takes beliefs of your own."
        )
