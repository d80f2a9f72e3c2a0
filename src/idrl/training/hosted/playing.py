"""An evaluation on the host, vector step by vector step: whoever plays it may do something else in
between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from idrl.envs.host import HostEnv, Vector
from idrl.training.doing import Between, nothing
from idrl.training.hosted import fleet as fleets
from idrl.training.hosted.fleet import NO_SEED, Fleet, by_seed
from idrl.training.hosted.window import Window

# Actions for all, `[N, ...]`, or from the device `[S, E, ...]`.
Act = Callable[[Fleet], Any]
Episode = tuple[bool, float, int]  # whether it was truncated, its return and its length


class Playing:
    """For each of `seeds`, whose environments lie side by side, a window of `steps`. Who cannot
    play an episode that counts any more stops.

    A vector step is `choose`, `send` and `recv`; the first one resets. Once all is `over` they do
    nothing.
    """

    def __init__(
        self, env: HostEnv, vector: Vector, seed: np.ndarray, seeds: int, steps: int, act: Act
    ):
        self.env, self.vector, self.act = env, vector, act
        self.windows = [Window(seed.size // seeds, steps) for _ in range(seeds)]
        self.needed = np.ones(seed.size, bool)
        self.fleet, self.seed = fleets.blank(env, seed.size), seed
        self.action: Any = env.no_actions(seed.size)
        self.begun = False

    @property
    def over(self) -> bool:
        return not self.needed.any()

    def choose(self) -> None:
        if self.begun and not self.over:
            self.action = self.act(self.fleet)

    def send(self) -> None:
        if not self.over:
            action = each(self.env, self.action, self.needed.size)
            self.vector.send(self.env.only(self.needed, action), self.seed)

    def recv(self) -> None:
        if self.over:
            return
        self.fleet = fleet = fleets.received(self.vector, self.fleet, self.seed)
        if self.begun:
            seen = (fleet.ended, fleet.truncated, fleet.episode_return, fleet.episode_length)
            parts = (by_seed(x, len(self.windows)) for x in seen)
            for window, *part in zip(self.windows, *parts, strict=True):
                window.add(*part)
            self.needed = np.concatenate([window.needed for window in self.windows])
        self.begun, self.seed = True, np.full_like(self.seed, NO_SEED)

    def finish(self, between: Between = nothing) -> list[list[Episode]]:
        """Play what is left; `Window.scores` of each seed."""
        while not self.over:
            between()
            self.choose()
            self.send()
            self.recv()
        return [window.scores() for window in self.windows]


def each(env: HostEnv, action: Any, count: int) -> np.ndarray:
    """What `count` environments are told, `[N, ...]`."""
    return np.asarray(action).reshape(env.no_actions(count).shape)
