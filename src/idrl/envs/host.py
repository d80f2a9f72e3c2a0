"""Environments that live on the host: stepped by the CPU, whatever they are written in.

Unlike `base.Env` they keep their own state, so training holds a `Vector` of them and steps all at
once. An episode's end is followed by one step that only resets: the observation before it is the
last of the old episode, from which a time limit bootstraps; the one after it is a first.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np


class Seen(NamedTuple):
    """What one step of N environments brought, in arrays that nobody writes to again."""

    obs: np.ndarray  # [N, ...]
    reward: np.ndarray  # [N] float32
    terminated: np.ndarray  # [N]
    truncated: np.ndarray  # [N]
    reset: np.ndarray  # [N] this step was no action: obs is the first of an episode
    allowed: np.ndarray | None = None  # [N, A] actions that may follow; None: always all


class Vector(Protocol):
    """N environments side by side."""

    def step(self, action: np.ndarray, seed: np.ndarray) -> Seen:
        """One step of each, `[N]`.

        Where `seed` is not negative the environment is reset with it, whatever it was doing; where
        its episode ended in the step before, it is reset as it likes; where `action` is negative
        nothing happens to it.
        """

    def close(self) -> None: ...


class HostEnv:
    """A kind of environment with discrete actions. Subclasses say how to make a vector of it."""

    name: str
    num_actions: int
    obs_shape: tuple[int, ...]
    obs_dtype: Any
    masked: bool  # whether it says which actions are allowed

    def make(self, count: int, timeout_s: float = 0.0) -> Vector:
        """`timeout_s`: how long one environment may take for one call (0: for ever)."""
        raise NotImplementedError
