"""A small environment that shows single frames, as Atari's do, and saves a run on it often."""

import os

import numpy as np

from idrl.envs.families.atari.env import AtariEnv
from idrl.envs.host import HostEnv, Seen, Vector
from idrl.runs import saving
from idrl.storage import segments

SIDE = 8


class Film(HostEnv):
    """Frames tell seed, episode, step and the last action; every other episode has a time limit."""

    name = "film"
    num_actions = 3
    obs_shape = (SIDE, SIDE, 4)
    obs_dtype = np.uint8
    masked = False
    stack = 4

    def make(self, count, timeout_s=0.0):
        return Reel(count)


class OftenSaved(Film):
    """Wherever it runs, a checkpoint is due all the time and segments are short."""

    def make(self, count, timeout_s=0.0):
        save_often(20 * count * SIDE * SIDE)
        return super().make(count, timeout_s)


class Pong(AtariEnv):
    """The same of a real game, with short episodes; processes differ in how many threads play."""

    def __init__(self):
        super().__init__("pong", sticky=0.25, threads=1 + os.getpid() % 3, max_frames=400)

    def make(self, count, timeout_s=0.0):
        save_often(20 * count * 84 * 84)
        return super().make(count, timeout_s)


def save_often(piece_bytes):
    saving.CHECKPOINT_SECONDS = 0.2
    segments.PIECE_BYTES = piece_bytes


class Reel(Vector):
    def __init__(self, count):
        self.seed, self.episode, self.t, self.last = np.zeros((4, count), np.int64)
        self.ended = np.zeros(count, bool)

    def send(self, action, seed):
        self.asked = action, seed

    def recv(self):
        action, seed = self.asked
        anew = seed >= 0
        reset = anew | (self.ended & (action >= 0))
        self.episode = np.where(anew, 0, self.episode + reset)
        self.seed = np.where(anew, seed, self.seed)
        acts = (action >= 0) & ~reset
        reward = np.where(acts & (action == (self.seed + self.t) % 3), 1.0, 0.0)
        self.t = np.where(reset, 0, self.t + acts)
        self.last = np.where(reset, 0, np.where(acts, action, self.last))
        over = acts & (self.t == 5 + (self.seed + self.episode) % 7)
        self.ended = np.where(acts | reset, over, self.ended)
        limit = self.episode % 2 == 1
        return Seen(
            self._frames(), reward.astype(np.float32), over & ~limit, over & limit, reset
        )  # fmt: skip

    def _frames(self):
        code = self.seed * 1009 + self.episode * 101 + self.t * 13 + self.last * 3
        mixed = code[:, None] * 2654435761 + np.arange(SIDE * SIDE) * 40503
        return (mixed >> 7).astype(np.uint8).reshape(-1, SIDE, SIDE)
