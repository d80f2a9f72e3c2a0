"""Gymnasium environments for the libraries that step from Python. Needs gymnasium and numpy."""

import gymnasium
import numpy as np

SIDE, FRAMES, ACTIONS = 84, 4, 6


class Screens(gymnasium.Env):
    """Stacks of Atari's size that cost nothing: one of a few that lie ready, whatever is done."""

    metadata = {"render_modes": []}

    def __init__(self, channels_first: bool = False):
        shape = (FRAMES, SIDE, SIDE) if channels_first else (SIDE, SIDE, FRAMES)
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self.action_space = gymnasium.spaces.Discrete(ACTIONS)
        self._ready = np.random.default_rng(0).integers(0, 256, (8, *shape), np.uint8)
        self._step = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return self._ready[0], {}

    def step(self, action):
        self._step += 1
        return self._ready[self._step % 8], float(action == 0), self._step % 1_000 == 0, False, {}


class Breakout(gymnasium.Env):
    """The MinAtar package's breakout as gymnax has it: no sticky actions, 3 actions, 1,000 frames
    at most (`make` adds the limit)."""

    metadata = {"render_modes": []}

    def __init__(self, channels_first: bool = True):
        from minatar import Environment

        self._channels_first = channels_first
        self._game = Environment("breakout", sticky_action_prob=0.0)
        self._moves = self._game.minimal_action_set()
        shape = (4, 10, 10) if channels_first else (10, 10, 4)
        self.observation_space = gymnasium.spaces.Box(0, 1, shape, np.uint8)
        self.action_space = gymnasium.spaces.Discrete(len(self._moves))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self._game.seed(seed)
        self._game.reset()
        return self._seen(), {}

    def step(self, action):
        reward, terminated = self._game.act(self._moves[int(action)])
        return self._seen(), float(reward), bool(terminated), False, {}

    def _seen(self):
        state = self._game.state().astype(np.uint8)
        return state.transpose(2, 0, 1) if self._channels_first else state


def make(task: str, channels_first: bool = True):
    if task == "cartpole":
        return gymnasium.make("CartPole-v1")
    if task == "screens":
        return Screens(channels_first)
    return gymnasium.wrappers.TimeLimit(Breakout(channels_first), 1_000)
