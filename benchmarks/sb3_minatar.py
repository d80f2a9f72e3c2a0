"""Stable-Baselines3's DQN with the settings of MinAtar's own example: one seed on one game.

A worker of `benchmarks.minatar_dqn`. Needs stable-baselines3, PyTorch, JAX and gymnax, and idrl's
sources on the path: the game is ours, so that both sides play by the same rules. Everything that
happens is written as it happens; a worker that is cut off leaves what it has.
"""

from __future__ import annotations

import json
import os
import sys
import time

import jax
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from benchmarks import minatar_world as world


class Board(BaseFeaturesExtractor):
    """MinAtar's convolution."""

    def __init__(self, space):
        super().__init__(space, features_dim=1024)
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(space.shape[0], 16, 3), torch.nn.ReLU(), torch.nn.Flatten()
        )

    def forward(self, x):
        return self.layers(x)


class Watch(BaseCallback):
    """Tells every episode that ends, and how greedy play does now and then."""

    def __init__(self, job: dict, told: world.Told):
        super().__init__()
        self.job, self.told, self.began = job, told, time.perf_counter()
        self.total, self.length = 0.0, 0
        self.judge = world.Judge(job["env"], job["episodes"])

    def _on_step(self) -> bool:
        self.total += float(self.locals["rewards"][0])
        self.length += 1
        if self.locals["dones"][0]:
            self.told.episode(self.num_timesteps, self.total, self.length)
            self.total, self.length = 0.0, 0
        if self.num_timesteps % self.job["look_every"] == 0:
            self.look()
        return True

    def look(self) -> None:
        def act(obs):
            return self.model.predict(obs.transpose(0, 3, 1, 2), deterministic=True)[0]

        played = self.judge.play(act, self.job["seed"])
        self.told.score(self.num_timesteps, played, time.perf_counter() - self.began)


def model_of(job: dict) -> DQN:
    s = job["settings"]
    return DQN(
        "MlpPolicy", world.OneGame(job["env"]), learning_rate=s["lr"], buffer_size=s["replay"],
        learning_starts=s["starts"], batch_size=s["batch"], gamma=s["gamma"], train_freq=1,
        gradient_steps=1, target_update_interval=s["target_every"], exploration_initial_eps=1.0,
        exploration_final_eps=s["eps_end"],
        exploration_fraction=min(1.0, s["eps_steps"] / job["steps"]),
        max_grad_norm=float("inf"), seed=job["seed"], device="cpu",
        policy_kwargs={
            "net_arch": [128], "features_extractor_class": Board,
            "optimizer_class": torch.optim.RMSprop,
            # PyTorch adds eps outside the root, to gradients that are means over the batch.
            "optimizer_kwargs": {"alpha": s["decay"], "eps": s["eps_outside"], "centered": True},
        },
    )  # fmt: skip


def main() -> None:
    job = json.loads(sys.argv[1])
    if job["core"] is not None:
        os.sched_setaffinity(0, {job["core"]})
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # moments of dead units decay to numbers that a CPU is slow with
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # a frame is too short to wait for
    told = world.Told(job["out"], "Stable-Baselines3", job["game"], job["seed"])
    watch = Watch(job, told)
    model = model_of(job)
    model.learn(job["steps"], callback=watch)
    if job["steps"] % job["look_every"]:
        watch.look()


if __name__ == "__main__":
    main()
