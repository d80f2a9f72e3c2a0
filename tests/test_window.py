"""Episodes side by side count as if one environment had played them one after the other."""

import numpy as np
import pytest

from idrl.training.hosted.window import Window


def played(lengths, envs, steps):
    """Environments that play episodes of these lengths, in the order of their starts."""
    window, at = Window(envs, steps), [0] * envs
    number, begun, resting = list(range(envs)), envs, [False] * envs
    for _ in range(10_000):
        ended = np.zeros(envs, bool)
        for env in range(envs):
            if resting[env]:  # the step that only resets
                resting[env], at[env] = False, 0
                number[env], begun = begun, begun + 1
                continue
            at[env] += 1
            ended[env] = resting[env] = at[env] >= lengths[number[env]]
        returns = np.array([1000.0 + number[env] for env in range(envs)])
        if window.add(ended, ended, returns, np.array(at)):
            return window
    raise AssertionError("it never ends")


def one_after_the_other(lengths, steps):
    used, counted = 0, []
    for number, length in enumerate(lengths):
        if used + length > steps:
            break
        used += length + 1
        counted.append((True, 1000.0 + number, length))
    return counted


@pytest.mark.parametrize("envs", [1, 2, 5, 16])
@pytest.mark.parametrize("steps", [1, 30, 100, 101, 400])
def test_the_same_episodes_count_however_many_play(envs, steps):
    rng = np.random.default_rng(steps)
    lengths = rng.choice([3, 10, 60], 500)
    assert played(lengths, envs, steps).scores() == one_after_the_other(lengths, steps)


def test_it_stops_as_soon_as_the_first_that_is_open_cannot_count():
    window = Window(2, 10)
    no = np.zeros(2, bool)
    assert not window.add(no, no, np.zeros(2), np.array([9, 9]))
    assert window.add(no, no, np.zeros(2), np.array([10, 10]))
    assert window.scores() == []
