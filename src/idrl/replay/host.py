"""Observations of a replay in the host's memory, for what would not fit on the device.

The rest of a replay, a few numbers a row, stays on the device: it draws as ever, and says where the
frames of what it drew are (`ring.Address`). The host looks them up.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from idrl.networks.heads import Transition


class HostObservations:
    """`[S, T, E, ...]` in plain memory, written row by row and read at addresses."""

    def __init__(self, obs: np.ndarray, before: np.ndarray):
        """`obs`: the rows so far, which are written over. `before`: `[S, E, ...]`, what was shown
        in the vector step before the first that `write` is told of."""
        self.obs, self._waiting = obs, before
        self._seeds = np.arange(len(obs))[:, None, None]
        self._pool = ThreadPoolExecutor(2)  # NumPy copies without holding the interpreter's lock

    def write(self, t: int, shown: np.ndarray) -> None:
        """In vector step `t` the environments show `[S, E, ...]`: a row of step `t`-1 is written,
        as it is on the device, since updates due at `t` may still draw what row `t` replaces."""
        if t > 0:
            self.obs[:, (t - 1) % self.obs.shape[1]] = self._waiting
        self._waiting = shown

    def read(self, drawn: Transition) -> tuple[np.ndarray, np.ndarray]:
        """The frames at the addresses in `drawn`, `[..., S, B, depth, ...]` of s and of s'."""
        before, after = self._pool.map(self.at, (drawn.s_tm1, drawn.s_t))
        return before, after

    def at(self, address: Any) -> np.ndarray:
        """The frames at one `ring.Address`."""
        times, env = np.asarray(address.times), np.asarray(address.env)
        return self.obs[self._seeds, times, env[..., None]]

    def close(self) -> None:
        self._pool.shutdown()
