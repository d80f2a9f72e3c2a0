"""Stable-Baselines3's or SBX's TD3 or SAC with this library's settings: returns and speed.

    PYTHON_WITH_SB3 -m benchmarks.sb3_control td3 Pendulum-v1 --steps 10000 --seeds 100 101
    PYTHON_WITH_SBX -m benchmarks.sb3_control td3 Pendulum-v1 --library sbx

Needs nothing of this library, so that it can run in an environment of its own. Prints one line a
seed: the mean return of 10 deterministic episodes after the last step, and how long training took.
It is a worker of `benchmarks.control_speed` as well.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time

import gymnasium
import numpy as np
import torch
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise

from benchmarks.sb3_clock import Clock
from benchmarks.turns import serve


def make(args: argparse.Namespace, seed: int):
    library = importlib.import_module(args.library)
    torch.set_num_threads(1)
    env = gymnasium.make(args.env)
    how = {
        "learning_rate": args.lr, "batch_size": args.batch, "learning_starts": args.starts,
        "buffer_size": args.steps, "train_freq": 1, "gradient_steps": 1, "seed": seed,
        "policy_kwargs": {"net_arch": args.hidden}, "device": "cpu",
    }  # fmt: skip
    if args.agent == "sac":
        return library.SAC("MlpPolicy", env, **how)
    count = int(np.prod(env.action_space.shape))
    noise = NormalActionNoise(np.zeros(count), 0.1 * np.ones(count))
    return library.TD3("MlpPolicy", env, action_noise=noise, **how)


def options() -> argparse.ArgumentParser:
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
    return parser


def learn(args: argparse.Namespace) -> None:
    for seed in args.seeds:
        model = make(args, seed)
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


def work(job: dict) -> None:
    words = [job["agent"], job["env"], "--library", job["library"], "--steps", "100000"]
    args = options().parse_args(words)
    model = make(args, 100)
    model.learn(10**9, callback=Clock(1e9, 2 * args.starts))  # all compiled, and learning

    def rows():
        clock, cpu = Clock(job["seconds"]), time.process_time()
        model.learn(10**9, callback=clock, reset_num_timesteps=False)
        yield {"steps_per_s": clock.rate, "cpu_share": (time.process_time() - cpu) / clock.spent}

    serve(rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        work(json.loads(sys.argv[2]))
    else:
        learn(options().parse_args())
