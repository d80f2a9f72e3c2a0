"""Stable-Baselines3's DQN at Atari size: frames a second.

A worker of `benchmarks.gpu`, which measures it in turns with ours. Needs stable-baselines3 and
PyTorch, and ale-py where it plays a game; `frames` is `free` (stacks that lie ready) or a game of
ALE's own vector environment. An update of 32 transitions per four steps, replay of 100,000
transitions in the host's memory (of 1M it would be 56 GB).
"""

from __future__ import annotations

import json
import sys

import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from benchmarks.peers.worlds import Screens
from benchmarks.sb3_clock import Clock
from benchmarks.turns import serve

WARM_UP = 2_000  # steps


class Ale(VecEnv):
    """The vector environment that ours plays, as Stable-Baselines3 asks for one."""

    def __init__(self, game: str, count: int):
        from ale_py.vector_env import AtariVectorEnv

        self.games = AtariVectorEnv(game, num_envs=count, use_fire_reset=False, noop_max=31)
        super().__init__(count, self.games.single_observation_space, self.games.single_action_space)

    def reset(self):
        return self.games.reset()[0]

    def step_async(self, actions) -> None:
        self.games.send(np.asarray(actions))

    def step_wait(self):
        seen, rewards, ended, cut, _ = self.games.recv()
        done = ended | cut
        # The last screen of a game comes with its end, the next game's first with the step after.
        infos: list[dict] = [{} for _ in done]
        for index in np.flatnonzero(done):
            infos[index]["terminal_observation"] = seen[index]
        return seen, rewards, done, infos

    def close(self) -> None:
        self.games.close()

    def get_attr(self, attr_name, indices=None):
        return [None] * self.num_envs

    def set_attr(self, attr_name, value, indices=None) -> None:
        raise NotImplementedError

    def env_method(self, method_name, *args, indices=None, **kwargs):
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * self.num_envs


def main() -> None:
    job = json.loads(sys.argv[2])
    count, frames = job["envs"], job["frames"]
    if frames == "free":
        worlds: VecEnv = DummyVecEnv([lambda: Screens(channels_first=True) for _ in range(count)])
    else:
        worlds = Ale(frames, count)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # One environment: four steps, one update. Many: a step of all, and the updates that makes due.
    agent = DQN(
        "CnnPolicy", worlds, learning_rate=1e-4, buffer_size=100_000, learning_starts=500,
        batch_size=32, train_freq=max(1, 4 // count), gradient_steps=max(1, count // 4),
        target_update_interval=10_000, device=device,
    )  # fmt: skip
    agent.learn(10**9, callback=Clock(60.0, WARM_UP))
    versions = f"stable-baselines3 {stable_baselines3.__version__}, PyTorch {torch.__version__}"

    def rows():
        clock = Clock(job["seconds"])
        agent.learn(10**9, callback=clock, reset_num_timesteps=False)
        yield {
            "what": "atari", "who": "Stable-Baselines3 dqn", "count": count,
            "value": round(4 * clock.rate), "unit": "frames/s", "more": f"{frames}; {versions}",
            "device": torch.cuda.get_device_name() if device == "cuda" else device,
        }  # fmt: skip

    serve(rows)


if __name__ == "__main__":
    main()
