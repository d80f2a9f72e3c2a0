"""Stable-Baselines3's DQN at Atari size, on frames that cost nothing: steps a second.

    python -m benchmarks.sb3_atari SECONDS

For `benchmarks.gpu`, which runs it beside ours. Needs stable-baselines3 and PyTorch only. One
environment, an update of 32 transitions per four steps, replay of 100,000 transitions in the host's
memory (of 1M it would be 28 GB).
"""

from __future__ import annotations

import json
import sys
import time

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

WARM_UP = 2_000  # steps


class Free(gymnasium.Env):
    """Frames without a game."""

    observation_space = gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    action_space = gymnasium.spaces.Discrete(6)

    def __init__(self):
        self.frame = np.random.default_rng(0).integers(0, 255, (4, 84, 84), dtype=np.uint8)
        self.t = 0

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return self.frame, {}

    def step(self, action):
        self.t += 1
        return self.frame, float(action == 1), self.t >= 1_000, False, {}


class Clock(BaseCallback):
    """Stops after `seconds`, counted from when updates run."""

    def __init__(self, seconds: float):
        super().__init__()
        self.seconds, self.begin, self.rate = seconds, 0.0, 0.0

    def _on_step(self) -> bool:
        if self.num_timesteps == WARM_UP:
            self.begin = time.perf_counter()
        elif self.num_timesteps > WARM_UP and self.num_timesteps % 64 == 0:
            spent = time.perf_counter() - self.begin
            self.rate = (self.num_timesteps - WARM_UP) / spent
            return spent < self.seconds
        return True


def main() -> None:
    clock = Clock(float(sys.argv[1]))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    agent = DQN(
        "CnnPolicy", Free(), learning_rate=1e-4, buffer_size=100_000, learning_starts=500,
        batch_size=32, train_freq=4, target_update_interval=10_000, device=device,
    )  # fmt: skip
    agent.learn(10**9, callback=clock)
    versions = f"stable-baselines3 {stable_baselines3.__version__}, PyTorch {torch.__version__}"
    print(json.dumps({"steps_per_s": clock.rate, "versions": versions, "device": device}))


if __name__ == "__main__":
    main()
