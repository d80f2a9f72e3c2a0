"""Games of which some may rest.

ale-py steps all games of a vector or none. An evaluation, most of whose games stop before the last
(training/hosted/window.py), plays several small vectors: one whose games all rest is not stepped.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from idrl.envs.families.atari.vector import AtariVector
from idrl.envs.host import Seen, Vector

if TYPE_CHECKING:
    from idrl.envs.families.atari.env import AtariEnv

_SMALLEST, _MOST = 4, 16  # games of a group; groups, since handing each its actions takes time


class AtariGroups(Vector):
    """N games in groups of neighbours: window.py lets the last of them rest first."""

    def __init__(self, env: AtariEnv, count: int, timeout_s: float):
        size = max(_SMALLEST, -(-count // _MOST))
        self.ends = list(range(size, count, size))
        parts = np.split(np.arange(count), self.ends)
        self.groups = [AtariVector(env, len(part), timeout_s) for part in parts]
        # A seeded reset waits for its games, 90 ms each, and a group has few: where all begin anew
        # the groups do it side by side. (Steps are watched, which must be in the main thread.)
        self.threads = ThreadPoolExecutor(len(parts))
        self.stepping = False

    def send(self, action: np.ndarray, seed: np.ndarray) -> None:
        self.stepping = bool((np.asarray(action) >= 0).any())
        split = (np.split(x, self.ends) for x in (action, seed))
        for group, actions, seeds in zip(self.groups, *split, strict=True):
            group.send(actions, seeds)

    def recv(self) -> Seen:
        each = map if self.stepping else self.threads.map
        fields: Any = zip(*each(AtariVector.recv, self.groups), strict=True)
        whole: Any = (None if parts[0] is None else np.concatenate(parts) for parts in fields)
        return Seen(*whole)

    def picture(self) -> np.ndarray | None:
        return self.groups[0].picture()

    def close(self) -> None:
        self.threads.shutdown()
        for group in self.groups:
            group.close()
