"""Atari games as the code that the paper's authors released plays them.

It differs from `vector` in the starts: 1 to 30 frames of doing nothing, then FIRE and the
action after it where the game has FIRE, and in training the same again after every lost life. That
restart is a step of its own: for who learns an episode begins there, while the game goes on and its
score with it.
"""

from __future__ import annotations

import functools
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from idrl.envs.families.atari.env import MAX_NOOPS, SIDE, SKIP, emulator, open_game
from idrl.envs.families.atari.vector import check_actions
from idrl.envs.host import Seen, Vector
from idrl.envs.patience import Patience

if TYPE_CHECKING:
    from idrl.envs.families.atari.env import AtariEnv


class ReleaseFrame(NamedTuple):
    """What one step of one game brought."""

    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    reset: bool = False
    lost: bool = False


class ReleaseVector(Vector):
    """Games stepped by threads: the emulator lets others run meanwhile."""

    def __init__(self, env: AtariEnv, count: int, timeout_s: float):
        self.env = env
        self.patience = Patience(env.name, timeout_s)
        self.games = [ReleaseGame(env) for _ in range(count)]
        self.pool = ThreadPoolExecutor(env.threads or os.cpu_count())
        self.sent: list[Future[ReleaseFrame]] = []

    def send(self, action: np.ndarray, seed: np.ndarray) -> None:
        check_actions(self.env, action, seed)
        for future in self.sent:  # a step that nobody received is over before the next
            future.result()
        self.sent = [
            self.pool.submit(game.go, int(a), int(s))
            for game, a, s in zip(self.games, action, seed, strict=True)
        ]

    def recv(self) -> Seen:
        if not self.sent:
            raise RuntimeError("recv must follow send")
        futures, self.sent = self.sent, []
        moments = [self.patience.call(future.result, lambda: "a step") for future in futures]
        reward, *flags = (np.array(part) for part in zip(*moments, strict=True))
        terminated, truncated, reset, lost = flags
        obs = np.stack([game.seen for game in self.games])
        life_lost = lost if self.env.life_loss else None
        return Seen(
            obs, reward.astype(np.float32), terminated, truncated, reset, life_lost=life_lost
        )

    def picture(self) -> np.ndarray | None:
        return self.games[0].picture

    def close(self) -> None:
        self.pool.shutdown(wait=True)
        self.patience.close()


class ReleaseGame:
    """One of them."""

    def __init__(self, env: AtariEnv):
        self.env = env
        self.ale: Any = None  # before the first seed
        self.actions: list[Any] = []
        self.over = self.restarting = False
        self.frames = self.lives = 0
        self.seen = np.zeros((SIDE, SIDE), np.uint8)
        self.picture: np.ndarray | None = None

    def go(self, action: int, seed: int) -> ReleaseFrame:
        """As `Vector.send` says."""
        if seed >= 0:
            self.ale = open_game(self.env.game, seed, self.env.sticky)
            self.actions = self.ale.getMinimalActionSet()
            self.rng = np.random.default_rng(seed)
        elif action < 0:
            return ReleaseFrame()
        if seed >= 0 or self.over:
            self.ale.reset_game()
            self.over, self.frames = False, 0
            self._start()
            return ReleaseFrame(reset=True)
        if self.restarting:
            return ReleaseFrame(self._start(), reset=True)
        return self._step(self.actions[action])

    def _start(self) -> float:
        """No-ops and FIRE; the reward on the way, which belongs to the score after a lost life."""
        noop = self.actions[0]
        first = [noop] * int(self.rng.integers(1, MAX_NOOPS + 1))
        if len(self.actions) > 2 and self.actions[1] == emulator().Action.FIRE:
            first += self.actions[1:3]
        reward = sum(self.ale.act(action) for action in first if not self.ale.game_over())
        self._look([self._screens()])
        self.lives, self.restarting = self.ale.lives(), False
        return float(reward)

    def _step(self, action: Any) -> ReleaseFrame:
        reward, screens = 0, []
        for frame in range(SKIP):
            if self.ale.game_over() or self.frames >= self.env.max_frames:
                break
            reward += self.ale.act(action)
            self.frames += 1
            if frame >= SKIP - 2:
                screens.append(self._screens())
        self._look(screens)
        terminated = self.ale.game_over()
        truncated = not terminated and self.frames >= self.env.max_frames
        lives, before = self.ale.lives(), self.lives
        self.lives, self.over = lives, terminated or truncated
        lost = lives < before and not terminated
        self.restarting = self.env.life_loss and lost and not truncated
        return ReleaseFrame(float(reward), terminated, truncated, lost=lost)

    def _screens(self) -> list[np.ndarray]:
        coloured = [self.ale.getScreenRGB()] if self.env.colour else []
        return [self.ale.getScreenGrayscale(), *coloured]

    def _look(self, screens: list[list[np.ndarray]]) -> None:
        """The brighter of each pixel, since some games draw a thing in every other frame only."""
        if not screens:  # the game ended before there was one
            return
        grey, *coloured = (
            functools.reduce(np.maximum, kind) for kind in zip(*screens, strict=True)
        )
        self.seen = shrink(grey)
        self.picture = coloured[0] if coloured else None


def shrink(grey: np.ndarray) -> np.ndarray:
    """`[H, W]` → 84×84, each pixel the mean over its area; equal to OpenCV's INTER_AREA."""
    columns, weights = _parts(grey.shape[1])
    wide = sum(grey[:, column] * weight for column, weight in zip(columns, weights, strict=True))
    rows, weights = _parts(grey.shape[0])
    small = sum(wide[row] * weight[:, None] for row, weight in zip(rows, weights, strict=True))
    return np.rint(small).astype(np.uint8)


@functools.cache
def _parts(size: int) -> tuple[np.ndarray, np.ndarray]:
    """For each of 84 equal parts of a line of pixels: which it touches, how much; `[K, 84]`."""
    scale = size / SIDE
    left = np.arange(SIDE) * scale
    pixel = np.floor(left).astype(int) + np.arange(int(np.ceil(scale)) + 1)[:, None]
    overlap = np.minimum(left + scale, pixel + 1) - np.maximum(left, pixel)
    return np.minimum(pixel, size - 1), (overlap.clip(0) / scale).astype(np.float32)
