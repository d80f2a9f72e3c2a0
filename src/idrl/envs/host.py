"""Environments that live on the host: stepped by the CPU, whatever they are written in.

Unlike `base.Env` they keep their own state, so training holds a `Vector` of them and steps all at
once. An episode's end is followed by one step that only resets: the observation before it is the
last of the old episode, from which a time limit bootstraps; the one after it is a first.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from idrl.actions import Box

NO_SEED = -1


class Seen(NamedTuple):
    """What one step of N environments brought, in arrays that nobody writes to again."""

    obs: np.ndarray  # [N, ...]
    reward: np.ndarray  # [N] float32
    terminated: np.ndarray  # [N]
    truncated: np.ndarray  # [N]
    # [N] this step was no action: obs is the first of an episode. After a lost life it is that only
    # for who learns; the game goes on, and the reward on the way belongs to its score.
    reset: np.ndarray
    # [N, A] actions that may follow; None: always all. At the end of an episode it is still that of
    # the last observation, whose value a time limit bootstraps from.
    allowed: np.ndarray | None = None
    life_lost: np.ndarray | None = None  # [N] an end for who learns, while the episode goes on


class History(NamedTuple):
    """How each of N environments got where it is: it was reset with `seed` behind the first `since`
    of the `actions`, the first of all behind none, and given the others."""

    seed: np.ndarray  # [N]
    since: np.ndarray  # [N]
    actions: np.ndarray  # [L, N, ...]


class Vector(Protocol):
    """N environments side by side."""

    elsewhere: bool = False  # stepped by other processes, from `send` on

    def send(self, action: np.ndarray, seed: np.ndarray) -> None:
        """Begin a step of each, `[N]`, or `[N, D]` of continuous actions; `recv` must follow.

        Where `seed` is not negative the environment is reset with it, whatever it was doing; where
        its episode ended in the step before, it is reset as it likes; where `action` is none (see
        `no_actions`) nothing that matters happens to it: some vectors cannot leave one environment
        alone, so nobody may rely on it before it is reset with a seed. Where all actions are none
        nothing is stepped.
        """

    def recv(self) -> Seen:
        """What the step brought. What happens between the two happens beside it, if it can."""
        raise NotImplementedError

    def step(self, action: np.ndarray, seed: np.ndarray) -> Seen:
        """One step of each: `send`, then `recv`."""
        self.send(action, seed)
        return self.recv()

    def replay(self, env: HostEnv, history: History, told: Callable[[int], None]) -> Seen:
        """Do again what `history` says. `told` is called at least once a second with the steps
        that are done, of all environments; what it raises ends the replay."""
        seed, since, actions = history
        count = len(seed)
        seen = self.step(env.no_actions(count), np.where(since == 0, seed, NO_SEED))
        for t, action in enumerate(actions):
            told(t * count)
            given = env.only(since <= t, action)
            seen = self.step(given, np.where(since == t + 1, seed, NO_SEED))
        told(len(actions) * count)
        return seen

    def picture(self) -> np.ndarray | None:
        """`[H, W, 3]` of how the first environment looks, if it was made to draw itself."""
        return None

    def close(self) -> None: ...


class HostEnv:
    """A kind of environment. Subclasses say how to make a vector of it. Its actions are numbers
    below `num_actions`, or the points of its `action_box`."""

    name: str
    num_actions: int = 0
    action_box: Box | None = None
    obs_shape: tuple[int, ...]
    obs_dtype: Any
    masked: bool = False  # whether it says which actions are allowed
    # Frames in an observation. Where there are several a vector shows the newest alone, without the
    # last axis of `obs_shape`; the device keeps the others, and so does the replay.
    stack: int = 1
    repeat_first: bool = False  # what comes before an episode's first frame: it again, or zeros
    reseed_every: int = 1  # evaluations between new seeds, unless `training.reseed_every` says so
    timeout_terminates: bool = False  # learn from a time limit as from an end
    slow_resets: bool = False  # resetting many with seeds takes longer than making one more
    repeats: bool = True  # a reset with the same seed was seen to show the same
    first: int = 0  # what its vectors call their first one, where those before it are elsewhere

    @property
    def shown_shape(self) -> tuple[int, ...]:
        """Of what one environment shows at a time."""
        return self.obs_shape if self.stack == 1 else self.obs_shape[:-1]

    @property
    def allowed_like(self) -> tuple[tuple[int, ...], Any] | None:
        """Shape and type of which actions one environment allows; None: always all."""
        return ((self.num_actions,), bool) if self.masked else None

    def no_actions(self, count: int) -> np.ndarray:
        """Actions that tell `count` environments to do nothing: -1 each, or NaN in a box."""
        if self.action_box is None:
            return np.full(count, -1, np.int32)
        return np.full((count, self.action_box.dims), np.nan, np.float32)

    def given(self, action: np.ndarray) -> np.ndarray:
        """`[N]`: which environments are told to do something."""
        return action >= 0 if action.ndim == 1 else ~np.isnan(action).any(1)

    def only(self, where: np.ndarray, action: np.ndarray) -> np.ndarray:
        """`action` for the environments `where`, and none for the others."""
        nothing = self.no_actions(len(where))
        return np.where(where.reshape(-1, *[1] * (action.ndim - 1)), action, nothing)

    def for_evaluation(self) -> HostEnv:
        """What agents are scored in: the same, unless training in it differs from playing it."""
        return self

    def drawn(self) -> HostEnv:
        """The same, with vectors that have a `picture`, where it can draw itself."""
        return self

    def processes(self, count: int, cores: int) -> int:
        """How many processes should step `count` of them, unless `training.env_processes` says."""
        return 1

    def part(self, first: int, cores: int) -> Self:
        """The same for a process that has `cores` to step some of them, from number `first` on."""
        other = copy.copy(self)
        other.first = first
        return other

    def make(self, count: int, timeout_s: float = 0.0) -> Vector:
        """`timeout_s`: how long one environment may take for one call (0: forever)."""
        raise NotImplementedError
