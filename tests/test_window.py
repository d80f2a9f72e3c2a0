"""Episodes side by side count as if one environment had played them one after the other."""

import numpy as np
import pytest
from films import Film

from idrl.training.hosted import playing
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


class Everybody:
    """The same rule where all play until the last that counts has ended."""

    def __init__(self, envs, steps):
        self.steps, self.playing, self.begun = steps, list(range(envs)), envs
        self.found, self.counted, self.used = {}, 0, 0
        self.needed = np.ones(envs, bool)

    def add(self, ended, truncated, returns, lengths):
        for env in np.flatnonzero(ended).tolist():
            seen = bool(truncated[env]), float(returns[env]), int(lengths[env])
            self.found[self.playing[env]] = seen
            self.playing[env] = self.begun
            self.begun += 1
        while self.counted in self.found:
            length = self.found[self.counted][2]
            if self.used + length > self.steps:
                self.needed = np.zeros_like(self.needed)
                return
            self.used += length + 1
            self.counted += 1
        first = self.playing.index(self.counted)
        if self.used + (0 if ended[first] else int(lengths[first])) >= self.steps:
            self.needed = np.zeros_like(self.needed)

    def scores(self):
        return [self.found[number] for number in range(self.counted)]


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize(("envs", "steps"), [(1, 40), (8, 5), (8, 60), (16, 30), (16, 1000)])
def test_who_cannot_matter_any_more_stops_and_the_same_episodes_count(
    envs, steps, seeds, monkeypatch
):
    film = Film()
    started = np.arange(seeds * envs) * 7 + 3

    def play(kind):
        made = []

        def act(fleet):
            return (fleet.obs[:, 0, 0] % 3).astype(np.int32)

        vector = film.make(len(started))
        send = vector.send
        monkeypatch.setattr(vector, "send", lambda a, s: (made.append((a >= 0).sum()), send(a, s)))
        monkeypatch.setattr(playing, "Window", kind)
        found = playing.Playing(film, vector, started, seeds, steps, act).finish()
        return found, sum(made)

    ours, made = play(Window)
    before, all_made = play(Everybody)
    assert ours == before
    assert made <= (1 + np.log(envs)) * (steps + 1) * seeds
    assert made < all_made or envs == 1


def test_long_episodes_are_left_as_soon_as_they_cannot_count():
    """Thirty-two games of 900 steps, a window of 1,000: one counts, and few play on."""
    window, made = Window(32, 1000), 0
    for t in range(1, 10_000):
        made += window.needed.sum()
        ended = np.full(32, t == 900)
        if window.add(ended, ended, np.zeros(32), np.full(32, t)):
            break
    assert window.scores() == [(True, 0.0, 900)]
    assert made < 4.5 * 1000
