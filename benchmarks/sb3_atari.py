"""Stable-Baselines3's DQN at Atari size, on frames that cost nothing: frames a second.

A worker of `benchmarks.gpu`, which measures it in turns with ours. Needs stable-baselines3 and
PyTorch only. One environment, an update of 32 transitions per four steps, replay of 100,000
transitions in the host's memory (of 1M it would be 28 GB).
"""

from __future__ import annotations

import json
import sys

import stable_baselines3
import torch
from stable_baselines3 import DQN

from benchmarks.peers.worlds import Screens
from benchmarks.sb3_clock import Clock
from benchmarks.turns import serve

WARM_UP = 2_000  # steps


def main() -> None:
    job = json.loads(sys.argv[2])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    agent = DQN(
        "CnnPolicy", Screens(channels_first=True), learning_rate=1e-4, buffer_size=100_000,
        learning_starts=500, batch_size=32, train_freq=4, target_update_interval=10_000,
        device=device,
    )  # fmt: skip
    agent.learn(10**9, callback=Clock(60.0, WARM_UP))
    versions = f"stable-baselines3 {stable_baselines3.__version__}, PyTorch {torch.__version__}"

    def rows():
        clock = Clock(job["seconds"])
        agent.learn(10**9, callback=clock, reset_num_timesteps=False)
        yield {
            "what": "atari", "who": "Stable-Baselines3 dqn", "value": round(4 * clock.rate),
            "unit": "frames/s", "more": versions,
            "device": torch.cuda.get_device_name() if device == "cuda" else device,
        }  # fmt: skip

    serve(rows)


if __name__ == "__main__":
    main()
