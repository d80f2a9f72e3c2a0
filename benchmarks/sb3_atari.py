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

import stable_baselines3
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

from benchmarks.peers.worlds import Screens

WARM_UP = 2_000  # steps


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
        "CnnPolicy", Screens(channels_first=True), learning_rate=1e-4, buffer_size=100_000,
        learning_starts=500, batch_size=32, train_freq=4, target_update_interval=10_000,
        device=device,
    )  # fmt: skip
    agent.learn(10**9, callback=clock)
    versions = f"stable-baselines3 {stable_baselines3.__version__}, PyTorch {torch.__version__}"
    print(json.dumps({"steps_per_s": clock.rate, "versions": versions, "device": device}))


if __name__ == "__main__":
    main()
