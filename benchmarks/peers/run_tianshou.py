"""Tianshou: python -m benchmarks.peers.run_tianshou REQUEST"""

from benchmarks.peers.clock import Clock

clock = Clock()

import tianshou  # noqa: E402, F401
from tianshou.algorithm import C51, DQN, IQN, QRDQN  # noqa: E402
from tianshou.algorithm.modelfree.c51 import C51Policy  # noqa: E402
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy  # noqa: E402
from tianshou.algorithm.modelfree.iqn import IQNPolicy  # noqa: E402
from tianshou.algorithm.modelfree.qrdqn import QRDQNPolicy  # noqa: E402
from tianshou.algorithm.optim import AdamOptimizerFactory  # noqa: E402
from tianshou.data import Collector, VectorReplayBuffer  # noqa: E402
from tianshou.env import DummyVectorEnv  # noqa: E402
from tianshou.trainer import OffPolicyTrainerParams  # noqa: E402
from tianshou.utils.net.common import ModuleWithVectorOutput  # noqa: E402
from tianshou.utils.net.discrete import ImplicitQuantileNetwork  # noqa: E402

IMPORT_S = clock.seconds()

import torch  # noqa: E402
from torch import nn  # noqa: E402

from benchmarks.peers import work, worlds  # noqa: E402

# convolutions (features, size, stride), what they leave, dense layer
LAYERS = {
    "cartpole": ((), 4, (64, 64)),
    "breakout": (((16, 3, 1),), 1024, (128,)),
    "screens": (((32, 8, 4), (64, 4, 2), (64, 3, 1)), 3136, (512,)),
}


class Net(ModuleWithVectorOutput):
    """The task's network; `last` layers with what is asked for per action."""

    def __init__(self, task: str, dense: tuple[int, ...], actions: int, per_action: int):
        convolutions, width, _ = LAYERS[task]
        super().__init__(actions * per_action or (dense[-1] if dense else width))
        self.shape = (-1, actions, per_action) if per_action > 1 else None
        self.scale = 1 / 255 if task == "screens" else 1.0
        layers: list[nn.Module] = []
        channels = 4
        for features, size, stride in convolutions:
            layers += [nn.Conv2d(channels, features, size, stride), nn.ReLU()]
            channels = features
        layers.append(nn.Flatten())
        for size in dense:
            layers += [nn.Linear(width, size), nn.ReLU()]
            width = size
        if actions:
            layers.append(nn.Linear(width, actions * per_action))
        self.layers = nn.Sequential(*layers)

    def forward(self, obs, state=None, info=None):
        x = self.layers(torch.as_tensor(obs, dtype=torch.float32) * self.scale)
        return (x if self.shape is None else x.view(self.shape)), state


class Probabilities(Net):
    def forward(self, obs, state=None, info=None):
        logits, state = super().forward(obs, state, info)
        return logits.softmax(-1), state


class Quantiles(Net):
    """What QR-DQN asks of a network: [batch, actions, quantiles]."""


def algorithm_of(task: work.Task, algo: str, env):
    actions, space = env.action_space.n, env.action_space
    dense = LAYERS[task.name][2]
    common = {
        "optim": AdamOptimizerFactory(lr=task.lr), "gamma": task.gamma,
        "target_update_freq": task.target_every // task.update_every,
    }  # fmt: skip
    eps = {"eps_training": 0.1, "action_space": space}
    if algo == "dqn":
        policy = DiscreteQLearningPolicy(model=Net(task.name, dense, actions, 1), **eps)
        return DQN(policy=policy, is_double=False, huber_loss_delta=1.0, **common)
    if algo == "c51":
        net = Probabilities(task.name, dense, actions, work.ATOMS)
        policy = C51Policy(
            model=net, num_atoms=work.ATOMS, v_min=work.V_MIN, v_max=work.V_MAX, **eps
        )
        return C51(policy=policy, **common)
    if algo == "qr-dqn":
        policy = QRDQNPolicy(model=Quantiles(task.name, dense, actions, work.ATOMS), **eps)
        return QRDQN(policy=policy, num_quantiles=work.ATOMS, **common)
    features = Net(task.name, dense[:-1], 0, 0)
    net = ImplicitQuantileNetwork(
        preprocess_net=features, action_shape=actions, hidden_sizes=dense[-1:], num_cosines=64
    )
    policy = IQNPolicy(
        model=net, sample_size=work.ACT_FRACTIONS, online_sample_size=work.FRACTIONS,
        target_sample_size=work.FRACTIONS, **eps,
    )  # fmt: skip
    return IQN(policy=policy, num_quantiles=work.FRACTIONS, **common)


def ready(task: work.Task, algo: str):
    envs = DummyVectorEnv([lambda: worlds.make(task.name) for _ in range(task.envs)])
    algorithm = algorithm_of(task, algo, worlds.make(task.name))
    collector = Collector(
        algorithm, envs, VectorReplayBuffer(task.replay, task.envs), exploration_noise=True
    )
    collector.reset()
    collector.collect(n_step=task.starts, random=True)

    def train(steps: int) -> int:
        params = OffPolicyTrainerParams(
            training_collector=collector, max_epochs=1, epoch_num_steps=steps,
            collection_step_num_env_steps=task.update_every, batch_size=task.batch,
            update_step_num_gradient_steps_per_sample=1 / task.update_every,
            test_collector=None, verbose=False, show_progress=False,
        )  # fmt: skip
        algorithm.run_training(params)
        return steps

    train(50 * task.envs)
    return lambda: train(task.loop_steps)


def main() -> None:
    torch.set_num_threads(clock.request["threads"])
    task = work.TASKS[clock.request["task"]]
    for job in clock.request["jobs"]:
        algo = job["algo"]
        clock.measure(job, task.update_every, IMPORT_S, lambda algo=algo: ready(task, algo))


main()
