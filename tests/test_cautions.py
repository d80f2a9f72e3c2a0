"""What a run says of numbers that cannot be right: once each, and only then."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from idrl.agents.choosing import EpsilonGreedy, Ids
from idrl.runs.cautions import Cautions

ADDED = Ids(noise="added")


def said(explore=ADDED, rows=3, alive=(True, True), **metrics):
    """The warnings of so many rows of two seeds, whose returns are between 0 and 100."""
    usual = {"q_max": 50.0, "rho2_max": 9.0, "unit": 1.0, "return_low": 0.0, "return_high": 100.0}
    row = {name: np.broadcast_to(x, 2).astype(float) for name, x in (usual | metrics).items()}
    cautions, alive = Cautions(explore), np.array(alive)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(rows):
            cautions.check(SimpleNamespace(log=True, metrics=row, alive=alive))
    return [str(one.message) for one in caught]


def test_possible_numbers_are_passed_over():
    assert said() == []
    assert said(q_max=140.0, rho2_max=2_500.0) == []
    assert said(return_high=0.0, q_max=1e6, rho2_max=1e9) == []  # no reward yet


@pytest.mark.parametrize("largest", [[50.0, 151.0], [-51.0, 50.0]])
def test_values_beyond_all_returns_are_told_once(largest):
    (told,) = said(q_max=largest)
    assert "its values have run away" in told
    assert said(rows=1, q_max=largest) == []  # a mean over what had no unit yet


def test_a_variance_beyond_all_returns_is_told_once():
    (told,) = said(rho2_max=[9.0, 2e7])
    assert "a variance of 2e+07, and between 0 and 100 none is above 2.5e+03" in told
    assert said(rho2_max=[9.0, 2e7], alive=(True, False)) == []


@pytest.mark.parametrize(
    "explore",
    [Ids(noise="constant"), Ids(noise="normalized"), Ids(noise="added", rho2=1e4), EpsilonGreedy()],
)
def test_other_noise_is_not_a_variance_of_returns(explore):
    assert said(explore, rho2_max=2e7) == []


def test_what_a_rule_adds_is_no_variance():
    """Rewards of about 1,000 that hardly differ: their unit is far above the range of returns."""
    assert said(return_low=100_000.0, return_high=100_100.0, q_max=100_050.0, unit=1024.0,
                rho2_max=0.25 * 1024.0**2) == []  # fmt: skip


def test_mass_at_an_end_of_the_range_is_told():
    (told,) = said(at_ends_z=0.4)
    assert "40% of what heads.z says" in told
    assert said(at_ends_z=0.2) == []
