"""Stable-Baselines3's or SBX's TD3 or SAC with this library's settings: returns and speed.

    PYTHON_WITH_SB3 benchmarks/sb3_control.py td3 Pendulum-v1 --steps 10000 --seeds 100 101
    PYTHON_WITH_SBX benchmarks/sb3_control.py td3 Pendulum-v1 --library sbx

Needs nothing of this library, so that it can run in an environment of its own. Prints one line a
seed: the mean return of 10 deterministic episodes after the last step, and how long training took.
"""

from __future__ import annotations

import argparse
import importlib
import time

import gymnasium
import numpy as np
import torch
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("agent", choices=("td3", "sac"))
    parser.add_argument("env")
    parser.add_argument(
        "--library", choices=("stable_baselines3", "sbx"), default="stable_baselines3"
    )
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100])
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--starts", type=int, default=1_000)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    library = importlib.import_module(args.library)
    torch.set_num_threads(1)
    for seed in args.seeds:
        env = gymnasium.make(args.env)
        how = {
            "learning_rate": args.lr, "batch_size": args.batch, "learning_starts": args.starts,
            "buffer_size": args.steps, "train_freq": 1, "gradient_steps": 1, "seed": seed,
            "policy_kwargs": {"net_arch": args.hidden}, "device": "cpu",
        }  # fmt: skip
        if args.agent == "td3":
            count = int(np.prod(env.action_space.shape))
            noise = NormalActionNoise(np.zeros(count), 0.1 * np.ones(count))
            model = library.TD3("MlpPolicy", env, action_noise=noise, **how)
        else:
            model = library.SAC("MlpPolicy", env, **how)
        wall, cpu = time.perf_counter(), time.process_time()
        model.learn(args.steps)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        mean, _ = evaluate_policy(model, gymnasium.make(args.env), 10, deterministic=True)
        print(
            f"{args.library} {args.agent} {args.env} seed {seed}: return {mean:.1f} after "
            f"{args.steps:,} steps, {args.steps / wall:,.0f} steps/s, "
            f"{args.steps / cpu:,.0f} a second of CPU time",
            flush=True,
        )


if __name__ == "__main__":
    main()
