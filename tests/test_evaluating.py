"""An evaluation acts by the rule for evaluation, whatever training explores by, in both loops."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from idrl.config import resolve
from idrl.envs import Step
from idrl.envs.adapters.gymnasium_env import GymnasiumEnv
from idrl.runs.session import make_program

SMALL = {
    "trunk": {"hidden": [4]},
    "heads": {"q": {"hidden": [4]}},
    "learning": {"learning_starts_steps": 8, "replay_capacity": 50, "batch_size": 4},
    "training": {"steps": 40, "envs": 2, "distributions_every_steps": 0},
    "evaluation": {"every_steps": 20, "steps": 40, "envs": 2},
    "explore": {"start": 1.0, "end": 1.0},  # random for ever
}


class Told:
    """Pays the action, and is over."""

    name, num_actions, obs_shape = "told", 2, (1,)

    def task(self, key):
        return ()

    def reset(self, task, key):
        return jnp.int32(0), jnp.ones(1)

    def step(self, task, state, action, key):
        return state, Step(jnp.ones(1), jnp.float32(action), jnp.bool_(True), jnp.bool_(False))


class GymTold(gymnasium.Env):
    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.ones(1, np.float32), {}

    def step(self, action):
        return np.ones(1, np.float32), float(action), True, False, {}


@pytest.mark.parametrize("env", [Told(), GymnasiumEnv(GymTold)], ids=["compiled", "hosted"])
def test_an_evaluation_does_not_explore(env):
    config = resolve("dqn", env.name, changes=[SMALL], obs_shape=env.obs_shape)
    program = make_program(config, env)
    state, played = program.start(program.seed_keys(0))
    state, (score, _) = program.evaluate(state, np.int32(1))
    program.close()
    assert set(np.unique(played.returns[played.ended])) == {0.0, 1.0}, "training explores"
    assert int(score.episodes[0]) >= 20
    assert float(score.return_std[0]) == 0
