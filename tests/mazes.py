"""`idrl.envs.families.maze` as a Gymnasium environment, the same in every step."""

import gymnasium
import numpy as np
from gymnasium import spaces

from idrl.envs.families.maze import COST, OPEN

MOVES = ((-1, 0), (0, -1), (1, 0), (0, 1), (0, 0))
# From each cell the way to the door leads north (1) or west (0).
NORTH = np.array([[0, 0, 0, 0], [1, 0, 1, 0], [1, 1, 0, 0], [1, 0, 1, 1]], bool)


class GymMaze(gymnasium.Env):
    """`at_the_end`: what the info of the last step says: the mask (True), a mask of nothing (False)
    or nothing (None)."""

    action_space = spaces.Discrete(5)

    def __init__(self, north=NORTH, mask=True, limit=None, at_the_end=True):
        self.north, self.mask, self.at_the_end = north, mask, at_the_end
        self.size = len(north)
        self.limit = limit or 10 * self.size**2
        self.observation_space = spaces.Box(0, 1, (self.size**2,), np.uint8)

    def possible(self):
        row, column = self.where
        north, door = self.north, row == column == 0
        south = row + 1 < self.size and north[row + 1, column]
        east = column + 1 < self.size and not north[row, column + 1]
        here = north[row, column]
        return np.array([here, not here and not door, south, east, door])

    def seen(self, over=False):
        obs = np.zeros(self.size**2, np.uint8)
        obs[self.where[0] * self.size + self.where[1]] = 1
        if not self.mask or (over and self.at_the_end is None):
            return obs, {}
        allowed = self.possible() & (not over or self.at_the_end)
        return obs, {"action_mask": allowed.astype(np.int8)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.where, self.t = (self.size - 1, self.size - 1), 0
        return self.seen()

    def step(self, action):
        possible = bool(self.possible()[action])
        assert possible or not self.mask, f"illegal action {action} at {self.where}"
        self.t += 1
        if possible:
            self.where = tuple(np.add(self.where, MOVES[action]).tolist())
        opened = possible and action == OPEN
        cut = self.t >= self.limit and not opened
        obs, info = self.seen(cut)
        return obs, 1.0 if opened else -COST, opened, cut, info
