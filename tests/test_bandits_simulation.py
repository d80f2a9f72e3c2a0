"""The compiled simulations: the same as ask and tell, repeatable, and what they must show."""

import functools

import jax
import numpy as np
import pytest

from idrl import IdrlError
from idrl.bandits import SETTINGS, GaussianProcess, observe, simulate, suggest
from idrl.bandits.comparing import compare, table_rows
from idrl.bandits.settings import gp
from idrl.report.statistics import interval


@functools.cache
def played(setting, rule):
    """200 seeds to the setting's end, once for all tests: compiling is what takes the time."""
    return simulate(setting, rule, 200)


def bounds(values):
    half = interval(values)
    return values.mean() - half, values.mean() + half


@pytest.mark.slow
def test_ids_avoids_the_noise_that_ucb_and_thompson_sample():
    """The figure's claim over 50 seeds: 20 samples, shares where ρ² is above its median."""
    share = {
        rule: played("gp", rule).noisy[:50, :20].mean(1) for rule in ("ids", "thompson", "ucb")
    }
    _, ids_at_most = bounds(share["ids"])
    for other in ("thompson", "ucb"):
        at_least, _ = bounds(share[other])
        assert ids_at_most < at_least
    assert share["ids"].mean() < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["gp", "linear", "two-group"])
def test_ids_about_the_optimist_is_ahead_where_noise_is_uneven(setting):
    total = {rule: played(setting, rule).regret.sum(1) for rule in ("ids-ucb", "ucb", "thompson")}
    for other in ("ucb", "thompson"):
        _, at_most = bounds(total["ids-ucb"] - total[other])
        assert at_most < 0


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["ids", "ids-ucb", "ucb"])
def test_a_simulation_is_ask_and_tell(rule):
    seed = 11
    problem, plays = gp(seed), played("gp", rule)
    actions, rewards = plays.actions[seed], plays.rewards[seed]
    model = GaussianProcess(problem.points, lengthscale=0.2, noise_variance=problem.rho2)
    for t in range(60):
        assert suggest(model, rule).action == actions[t]
        model = observe(model, actions[t], rewards[t])
    model = observe(model, actions[60:], rewards[60:])
    np.testing.assert_allclose(plays.mean[seed], model.mean, atol=1e-9)
    np.testing.assert_allclose(plays.sigma[seed], model.sigma, atol=1e-9)
    best = problem.truth.max()
    np.testing.assert_allclose(plays.regret[seed], best - problem.truth[actions], atol=1e-12)
    assert plays.simple_regret[seed, -1] == best - problem.truth[model.mean.argmax()]


@pytest.mark.slow
def test_a_seed_is_the_same_in_any_company_and_any_length():
    alone, together = simulate("linear", "thompson", [30], 40), played("linear", "thompson")
    np.testing.assert_array_equal(alone.actions[0], together.actions[30, :40])
    np.testing.assert_allclose(alone.rewards[0], together.rewards[30, :40], atol=1e-12)


def test_seeds_that_do_not_fill_a_call_come_back_once():
    plays = simulate("linear", "thompson", 27)
    assert plays.actions.shape == (27, 500)
    np.testing.assert_array_equal(plays.actions, played("linear", "thompson").actions[:27])


def test_rules_meet_the_same_problems_and_the_same_luck():
    for seed in range(4):
        problem, luck = gp(seed), []
        for rule in ("ids", "ucb"):
            at = played("gp", rule).actions[seed]
            reward = played("gp", rule).rewards[seed]
            luck.append((reward - problem.truth[at]) / np.sqrt(problem.rho2[at]))
        np.testing.assert_allclose(*luck, atol=1e-9)


@pytest.mark.parametrize("name", SETTINGS)
def test_problems_are_what_they_say(name):
    one, again, other = (SETTINGS[name].problem(seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.truth, again.truth)
    n = len(one.points)
    assert one.truth.shape == one.rho2.shape == one.prior.mean.shape == (n,)
    assert (one.rho2 > 0).all()
    if name != "camelback":
        assert not np.array_equal(one.truth, other.truth)
    if name == "two-group":
        assert sorted(set(np.sqrt(one.rho2).round(6))) == [0.2, 1.0]
        assert (one.rho2 == 1.0).sum() == n // 2


def test_the_truth_is_a_draw_of_the_prior():
    """Otherwise the comparison would be of how wrong a prior may be."""
    for name in ("gp", "linear", "two-group"):
        problems = [SETTINGS[name].problem(seed) for seed in range(200)]
        size = np.mean([(p.truth**2 / p.prior.variance).mean() for p in problems])
        assert abs(size - 1) < 0.15


def test_bernoulli_rewards_are_outcomes():
    plays = simulate("bernoulli", "ucb", 5, 50)
    assert set(np.unique(plays.rewards)) == {0.0, 1.0}
    assert ((plays.mean > 0) & (plays.mean < 1)).all()


def test_the_global_precision_is_left_alone():
    plays = played("linear", "ucb")
    assert plays.mean.dtype == np.float64
    assert not jax.config.jax_enable_x64


def test_a_comparison_is_sorted_and_paired():
    comparison = compare("linear", ["ucb", "ids-ucb", "thompson"], seeds=25)
    heads, rows = table_rows(comparison)
    assert heads == ["rule", "regret", "minus ucb", "minus thompson", "simple regret 20"]
    totals = [comparison.total(row[0]).mean() for row in rows]
    assert totals == sorted(totals)
    assert rows[[row[0] for row in rows].index("ucb")][2] == "0 (0 to 0)"


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: simulate("gpp"), "unknown setting 'gpp'; did you mean 'gp'"),
        (lambda: simulate("gp", seeds=0), "1 or more"),
        (lambda: simulate("gp", seeds=[]), "at least one"),
        (lambda: simulate("gp", seeds=[-1]), "0 or above"),
        (lambda: simulate("gp", steps=0), "1 or more"),
        (lambda: compare("gp", []), "must be a rule"),
        (lambda: compare("gp", ["ids", "ids"]), "once only"),
    ],
)
def test_bad_input_is_told_in_one_sentence(made, sentence):
    with pytest.raises(IdrlError, match=sentence):
        made()
