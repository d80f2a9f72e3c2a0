"""Environments that misbehave, by name."""

import contextlib
import hashlib
import os
import time

import gymnasium
import numpy as np
from films import OftenSaved, Pong
from gymnasium import spaces

import idrl


class Plain(gymnasium.Env):
    """Eight steps an episode; what an action leads to depends on the episode's chance."""

    observation_space = spaces.Box(-10, 10, (2,), np.float32)
    action_space = spaces.Discrete(3, start=1)
    seconds = 0.0  # that a step takes

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.luck = 0, self.np_random.random()
        return self._seen(), {}

    def step(self, action):
        time.sleep(self.seconds)
        self.t += 1
        return self._seen(), float(self.luck * action), self.t == 8, False, {}

    def _seen(self):
        return np.array([self.t, self.luck], np.float32)


class Slow(Plain):
    """Fifty steps a second, and a file that is as long as there were steps."""

    seconds = 0.02

    def step(self, action):
        with open("steps", "ab") as file:
            file.write(b".")
        return super().step(action)


class Raises(Plain):
    def step(self, action):
        if self.t == 5:
            raise RuntimeError("no such\nroad")
        return super().step(action)


class Exits(Plain):
    """Calls sys.exit, as a script might that was made an environment."""

    def step(self, action):
        if self.t == 5:
            raise SystemExit(0)
        return super().step(action)


class Leaves(Plain):
    """Ends its process, and says that all is well."""

    def step(self, action):
        if self.t == 5:
            os._exit(0)
        return super().step(action)


class Moody(Plain):
    """Draws from elsewhere than its seed."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.luck = int.from_bytes(os.urandom(2)) / 2**16
        return self._seen(), {}


class NanReward(Plain):
    def step(self, action):
        obs, _, *rest = super().step(action)
        return obs, float("nan" if self.t == 5 else 1), *rest


class NanObservation(Plain):
    def _seen(self):
        return np.array([np.nan if self.t == 5 else 0, 0], np.float32)


class WrongShape(Plain):
    def _seen(self):
        return np.zeros(3 if getattr(self, "t", 0) == 5 else 2, np.float32)


class Sleeps(Plain):
    """Waits for what never comes, and catches everything it can."""

    def step(self, action):
        while self.t == 5:
            with contextlib.suppress(Exception):
                time.sleep(1000)
        return super().step(action)


class Foreign(Plain):
    """Hangs in code that never looks at a signal."""

    def step(self, action):
        if self.t == 5:
            hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
        return super().step(action)


ALL = (
    Plain, Slow, Raises, Exits, Leaves, Moody, NanReward, NanObservation, WrongShape, Sleeps,
    Foreign,
)  # fmt: skip


def register() -> None:
    for env in ALL:
        idrl.register_env(f"odd-{env.__name__.lower()}", env)
    idrl.register_env("odd-film", OftenSaved)
    idrl.register_env("odd-pong", Pong)
