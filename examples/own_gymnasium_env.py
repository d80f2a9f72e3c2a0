"""Train on a Gymnasium environment of your own.

python examples/own_gymnasium_env.py
"""

import gymnasium
import numpy as np

import idrl


class Thermostat(gymnasium.Env):
    """Keep a room near 20 degrees: cool, wait or heat, while the weather drifts."""

    def __init__(self):
        self.observation_space = gymnasium.spaces.Box(-2.0, 2.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)  # chance comes from self.np_random: then runs repeat
        self.room, self.weather = self.np_random.uniform(-1, 1, size=2)
        self.time = 0
        return self._observe(), {}

    def step(self, action):
        self.weather = np.clip(self.weather + self.np_random.normal(0, 0.05), -1, 1)
        self.room = np.clip(self.room + 0.1 * self.weather + 0.2 * (action - 1), -2, 2)
        self.time += 1
        reward = 1.0 - min(abs(self.room), 1.0)
        return self._observe(), reward, False, self.time == 50, {}  # a time limit truncates

    def _observe(self):
        return np.array([self.room, self.weather], np.float32)


if __name__ == "__main__":
    idrl.register_env("thermostat", Thermostat)  # a name, so that evaluate and resume find it
    run = idrl.train("dqn-ids", "thermostat", steps=3_000, progress=True)
    print(idrl.evaluate(run, episodes=20))  # the most is 50
