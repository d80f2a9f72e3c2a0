"""Stable-Baselines3, SB3-contrib and SBX: python -m benchmarks.peers.run_sb3 REQUEST"""

from benchmarks.peers.clock import Clock

clock = Clock()

if clock.request["library"] == "sbx":
    import sbx
else:
    import stable_baselines3

    if clock.request["library"] == "sb3-contrib":
        import sb3_contrib

IMPORT_S = clock.seconds()

import torch  # noqa: E402
from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402
from stable_baselines3.common.evaluation import evaluate_policy  # noqa: E402
from stable_baselines3.common.monitor import Monitor  # noqa: E402
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: E402

from benchmarks.peers import work, worlds  # noqa: E402


class Board(BaseFeaturesExtractor):
    """MinAtar's convolution."""

    def __init__(self, space):
        super().__init__(space, features_dim=1024)
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(space.shape[0], 16, 3), torch.nn.ReLU(), torch.nn.Flatten()
        )

    def forward(self, x):
        return self.layers(x)


def model_of(task: work.Task, library: str, total: int, seed: int = 0, **more):
    kind = {"sb3": lambda: stable_baselines3.DQN, "sbx": lambda: sbx.DQN,
            "sb3-contrib": lambda: sb3_contrib.QRDQN}[library]()  # fmt: skip
    policy = {"net_arch": [64, 64]}
    if task.name == "breakout":
        policy = {"net_arch": [128], "features_extractor_class": Board}
    elif task.name == "screens":
        policy = {}  # Nature's network is theirs as well
    if library == "sb3-contrib":
        policy["n_quantiles"] = work.ATOMS
    envs = DummyVecEnv([lambda: worlds.make(task.name) for _ in range(task.envs)])
    return kind(
        "CnnPolicy" if task.name == "screens" else "MlpPolicy", envs, learning_rate=task.lr,
        buffer_size=task.replay, learning_starts=task.starts, batch_size=task.batch,
        gamma=task.gamma, train_freq=task.update_every // task.envs, gradient_steps=1,
        target_update_interval=task.target_every, exploration_final_eps=task.eps_end,
        exploration_fraction=min(1.0, task.eps_steps / total), policy_kwargs=policy, seed=seed,
        device="cpu", **more,
    )  # fmt: skip


def ready(task: work.Task):
    model = model_of(task, clock.request["library"], task.starts + task.loop_steps)
    model.learn(task.starts + 50 * task.envs)

    def stretch() -> int:
        before = model.num_timesteps
        model.learn(task.loop_steps, reset_num_timesteps=False)
        return model.num_timesteps - before

    return stretch


def learn(name: str, seed: int) -> None:
    """A curve of greedy episodes, told point by point."""
    task, total = work.LEARNING[name], work.STEPS[name]
    model = model_of(task, "sb3", total, seed)
    judge = Monitor(worlds.make(name))
    judge.reset(seed=seed)

    class Look(BaseCallback):
        def _on_step(self) -> bool:
            if self.num_timesteps % work.EVAL_EVERY[name] == 0:
                mean, _ = evaluate_policy(self.model, judge, work.EVAL_EPISODES)
                clock.tell(
                    seed=seed, steps=self.num_timesteps, value=float(mean), seconds=clock.seconds()
                )
            return True

    model.learn(total, callback=Look())


def main() -> None:
    torch.set_num_threads(clock.request["threads"])
    if "learn" in clock.request:
        for seed in clock.request["seeds"]:
            learn(clock.request["learn"], seed)
        return
    task = work.TASKS[clock.request["task"]]
    for job in clock.request["jobs"]:
        clock.measure(job, task.update_every, IMPORT_S, lambda: ready(task))


if __name__ == "__main__":
    main()
