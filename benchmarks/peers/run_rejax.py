"""rejax: python -m benchmarks.peers.run_rejax REQUEST

Its networks are MLPs; the convolutions of the other tasks are put in its agent's place.
"""

import dataclasses

from benchmarks.peers.clock import Clock

clock = Clock()

import rejax  # noqa: E402

IMPORT_S = clock.seconds()

import flax.linen as nn  # noqa: E402
import gymnax  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from gymnax.environments import environment, spaces  # noqa: E402
from rejax.evaluate import evaluate  # noqa: E402
from rejax.networks import EpsilonGreedyPolicy  # noqa: E402

from benchmarks.peers import work  # noqa: E402

CONVOLUTIONS = {
    "breakout": (((16, 3, 1),), 128),
    "screens": (((32, 8, 4), (64, 4, 2), (64, 3, 1)), 512),
}


class Convolutional(nn.Module):
    """The task's network with the methods that rejax asks of one."""

    action_dim: int
    convolutions: tuple
    dense: int
    scale: float = 1.0

    @nn.compact
    def __call__(self, obs):
        x = obs.astype(jnp.float32) * self.scale
        for features, size, stride in self.convolutions:
            x = nn.relu(nn.Conv(features, (size, size), stride, padding="VALID")(x))
        x = nn.relu(nn.Dense(self.dense)(x.reshape(x.shape[0], -1)))
        return nn.Dense(self.action_dim)(x)

    def take(self, obs, action):
        return jnp.take_along_axis(self(obs), action[:, None], axis=1).squeeze(1)


class Screens(environment.Environment):
    """Stacks of Atari's size that cost nothing."""

    def step_env(self, key, state, action, params):
        reward = jnp.float32(action == 0)
        done = (state + 1) % 1_000 == 0
        return self._screen(state + 1), state + 1, reward, done, {}

    def reset_env(self, key, params):
        return self._screen(jnp.int32(0)), jnp.int32(0)

    def _screen(self, state):
        return jnp.full((84, 84, 4), state % 256, jnp.uint8)

    def observation_space(self, params):
        return spaces.Box(0, 255, (84, 84, 4), jnp.uint8)

    def action_space(self, params=None):
        return spaces.Discrete(6)


ENVS = {"cartpole": "CartPole-v1", "breakout": "Breakout-MinAtar"}


def algorithm(task: work.Task, algo: str, steps: int, ddqn: bool, **more):
    env, params = (
        (Screens(), environment.EnvParams())
        if task.name == "screens"
        else gymnax.make(ENVS[task.name])
    )
    kind = {"dqn": rejax.get_algo("dqn"), "iqn": rejax.get_algo("iqn")}[algo]
    if algo == "dqn":
        more["ddqn"] = ddqn
    else:
        more |= {"num_tau_samples": work.FRACTIONS, "num_tau_prime_samples": work.FRACTIONS}
    made = kind.create(
        env=env, env_params=params, agent_kwargs={"activation": "relu"}, num_envs=task.envs,
        buffer_size=task.replay, fill_buffer=task.starts, batch_size=task.batch,
        total_timesteps=steps, learning_rate=task.lr, gamma=task.gamma, polyak=0.0,
        target_update_freq=task.target_every, eps_end=task.eps_end,
        exploration_fraction=min(1.0, task.eps_steps / steps), skip_initial_evaluation=True, **more,
    )  # fmt: skip
    if task.name in CONVOLUTIONS:
        layers, dense = CONVOLUTIONS[task.name]
        scale = 1 / 255 if task.name == "screens" else 1.0
        net = EpsilonGreedyPolicy(Convolutional)(env.action_space(params).n, layers, dense, scale)
        made = made.replace(agent=net)
    return made


def ready(task: work.Task, job: dict):
    """Speed: the whole of `train`, without evaluations, as one compiled program. It begins with an
    empty replay every time, so here updates begin as soon as there is a batch, and those few steps
    are not counted."""
    steps, filling = task.stretch(job), task.batch
    task = dataclasses.replace(task, starts=filling)
    whole = steps + filling
    made = algorithm(task, job["algo"], whole, ddqn=False, eval_freq=whole)
    made = made.replace(eval_callback=lambda algo, ts, key: jnp.zeros(()))
    keys = jax.random.split(jax.random.PRNGKey(0), job["seeds"])
    train = jax.vmap(made.train) if job["seeds"] > 1 else lambda keys: made.train(keys[0])
    compiled = jax.jit(train).lower(keys).compile()

    def stretch() -> int:
        jax.block_until_ready(compiled(keys))
        return steps

    return stretch


def learn(name: str, seeds: list[int]) -> None:
    task, total, every = work.LEARNING[name], work.STEPS[name], work.EVAL_EVERY[name]
    made = algorithm(task, "dqn", total, ddqn=False, eval_freq=every)

    def look(algo, ts, key):
        def act(obs, key):
            q = algo.agent.apply(ts.q_ts.params, obs[None])
            return q.argmax(-1)[0]

        limit = algo.env_params.max_steps_in_episode
        _, returns = evaluate(act, key, algo.env, algo.env_params, work.EVAL_EPISODES, limit)
        return returns.mean()

    made = made.replace(eval_callback=look)
    keys = jnp.stack([jax.random.PRNGKey(seed) for seed in seeds])
    values = jax.jit(jax.vmap(made.train))(keys)[1]
    for seed, curve in zip(seeds, values.tolist(), strict=True):
        for number, value in enumerate(curve, 1):
            # all points come at once, with the end of the one compiled program
            clock.tell(seed=seed, steps=number * every, value=value, seconds=clock.seconds())


def main() -> None:
    if "learn" in clock.request:
        learn(clock.request["learn"], clock.request["seeds"])
        return
    task = work.TASKS[clock.request["task"]]
    for job in clock.request["jobs"]:
        clock.measure(job, task.update_every, IMPORT_S, lambda job=job: ready(task, job))


main()
