"""Which episodes an evaluation of so many steps counts, where several are played side by side."""

from __future__ import annotations

import numpy as np


class Window:
    """The episodes that one environment would complete in `steps` steps, had it played them one
    after the other in the order in which they began.

    Cutting all environments off after the same time would not do: each drops the episode it is in,
    so that long ones count less often than short ones, the more the more environments there are.
    """

    def __init__(self, envs: int, steps: int):
        self.steps = steps
        self.playing = list(range(envs))  # the number of each environment's episode
        self.begun = envs
        self.found: dict[int, tuple[bool, float, int]] = {}  # completed: see `scores`
        self.counted, self.used = 0, 0  # episodes that count so far, and their steps

    def add(
        self, ended: np.ndarray, truncated: np.ndarray, returns: np.ndarray, lengths: np.ndarray
    ) -> bool:
        """What happened to each environment in one step, `[E]`; whether it is all known now."""
        for env in np.flatnonzero(ended).tolist():
            seen = bool(truncated[env]), float(returns[env]), int(lengths[env])
            self.found[self.playing[env]] = seen
            self.playing[env] = self.begun
            self.begun += 1
        while self.counted in self.found:
            length = self.found[self.counted][2]
            if self.used + length > self.steps:
                return True
            self.used += length + 1  # a step that only resets
            self.counted += 1
        going_on = self.playing.index(self.counted)
        return self.used + (0 if ended[going_on] else int(lengths[going_on])) >= self.steps

    def scores(self) -> list[tuple[bool, float, int]]:
        """Of every episode that counts whether it was truncated, its return and its length."""
        return [self.found[number] for number in range(self.counted)]
