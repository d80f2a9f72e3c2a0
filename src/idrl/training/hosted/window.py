"""Which episodes an evaluation of so many steps counts, where several are played side by side."""

from __future__ import annotations

import numpy as np


class Window:
    """The episodes that one environment would complete in `steps` steps, had it played them one
    after the other in the order in which they began.

    Cutting all environments off after the same time would not do: each drops the episode it is in,
    so that long ones count less often than short ones, the more the more environments there are.

    An episode that has gone on for n steps takes n + 1 at least. So it is known early from which
    number on none can count any more, and whoever plays one of those stops. After t steps each
    environment that goes on has made t of those `steps`, so at most `steps` / t go on, and E
    environments make at most (1 + ln E) · `steps` steps in all.
    """

    def __init__(self, envs: int, steps: int):
        self.steps = steps
        self.playing = np.arange(envs)  # the number of each environment's episode
        self.needed = np.ones(envs, bool)  # whose further play can matter
        self.begun = envs
        self.least = np.ones(2 * envs, np.int64)  # steps of each episode, at least
        self.found: dict[int, tuple[bool, float, int]] = {}  # completed: see `scores`
        self.counted, self.used = 0, 0  # episodes that count so far, and their steps

    def add(
        self, ended: np.ndarray, truncated: np.ndarray, returns: np.ndarray, lengths: np.ndarray
    ) -> bool:
        """What happened to each environment in one step, `[E]`, where it was needed; whether it is
        all known now."""
        self.least[self.playing[self.needed]] = lengths[self.needed] + 1
        for env in np.flatnonzero(ended & self.needed).tolist():
            self._end(env, (bool(truncated[env]), float(returns[env]), int(lengths[env])))
        while self.counted in self.found:
            length = self.found[self.counted][2]
            if self.used + length > self.steps:
                break
            self.used += length + 1  # a step that only resets
            self.counted += 1
        # The step that each episode that does not count yet ends in, at the earliest.
        ends = self.used + np.cumsum(self.least[self.counted : self.begun] + 1) - 1
        last = self.counted + int(np.searchsorted(ends, self.steps, "right"))
        self.needed = self.playing < last
        return last == self.counted

    def _end(self, env: int, seen: tuple[bool, float, int]) -> None:
        number = self.playing[env]
        self.found[int(number)], self.least[number] = seen, seen[2]
        if self.begun == len(self.least):
            self.least = np.concatenate([self.least, np.ones_like(self.least)])
        self.playing[env] = self.begun
        self.begun += 1

    def scores(self) -> list[tuple[bool, float, int]]:
        """Of every episode that counts whether it was truncated, its return and its length."""
        return [self.found[number] for number in range(self.counted)]
