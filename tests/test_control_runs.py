"""Runs with continuous actions, compiled and hosted: resume, evaluation, explanation, bad input."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import idrl
from idrl.cli.app import main
from idrl.config import resolve
from idrl.envs import make_env
from idrl.envs.adapters.gymnasium_env import GymnasiumEnv
from idrl.envs.families.noisy_push import NoisyPush
from idrl.replay import ring as ring
from idrl.runs.session import make_program
from idrl.training.loop import train

TINY = {
    "heads": {
        "q": {"hidden": [4], "k": 2, "prior_scale": 0.1, "mask_prob": 0.5},
        "z": {"hidden": [4], "quantiles": 3},
        "actor": {"hidden": [4], "candidates": {"perturbed": 2, "uniform": 1}},
    },
    "learning": {"learning_starts_steps": 20, "replay_capacity": 200, "batch_size": 4},
    "training": {"steps": 120, "envs": 2, "log_every_steps": 40, "distributions_every_steps": 0},
    "evaluation": {"every_steps": 60, "steps": 30, "envs": 2},
}


@pytest.fixture(autouse=True, scope="module")
def quick():
    jax.config.update("jax_disable_most_optimizations", True)  # compiling takes all the time here
    yield
    jax.config.update("jax_disable_most_optimizations", False)


class Reach(gymnasium.Env):
    """Pays for being told its own numbers; a box of two axes, of which each number differs."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Box(
        np.array([[-1.0], [0.0]]), np.array([[1.0], [4.0]]), (2, 1), np.float64
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.goal = 0, self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.goal, {}

    def step(self, action):
        assert action.shape == (2, 1)
        assert action.dtype == np.float64
        assert self.action_space.contains(action)
        self.t += 1
        reward = -abs(float(action[0, 0]) - float(self.goal[0]))
        return self.goal, reward, False, self.t == 7, {}


def collect(p, state=None, iteration=0):
    return [
        progress._replace(state=jax.device_get(progress.state))
        for progress in train(p, state, iteration, p.seed_keys(0))
    ]


def check_same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(np.testing.assert_array_equal, a, b)


@pytest.fixture(scope="module")
def whole():
    env = GymnasiumEnv(Reach)
    config = resolve("ddpg-ids", env.name, changes=[TINY], obs_shape=env.obs_shape)
    p = make_program(config, env)
    return p, collect(p)


def test_a_run_goes_on_with_the_same_bits(whole):
    p, parts = whole
    middle = parts[len(parts) // 2]
    assert 0 < middle.iteration < parts[-1].iteration
    p.close()  # its environments are made and brought there anew
    rest = collect(p, p.place(middle.state), middle.iteration)
    check_same(parts[-1].state, rest[-1].state)


def test_what_was_done_is_in_the_replay_and_in_the_box(whole):
    p, parts = whole
    replay = jax.tree.map(lambda x: x[0], parts[-1].state.replay)
    drawn = ring.gather(replay, jnp.arange(40), jnp.zeros(40, jnp.int32), 0.99, dims=2)
    action = np.asarray(drawn.a_tm1)
    assert action.shape == (40, 2)
    assert drawn.mask.shape == (40, 2)
    assert (action >= np.array(p.agent.box.low)).all()
    assert (action <= np.array(p.agent.box.high)).all()
    assert len(np.unique(action[:, 1])) > 10
    reward = -np.abs(action[:, 0] - np.asarray(drawn.s_tm1)[:, 0])
    there = np.asarray(replay.facts[:40, 0, 3]) > 0
    assert 0 < there.sum() < 40  # rows of time limits are no transitions
    np.testing.assert_allclose(np.asarray(drawn.r_t)[there], reward[there], atol=1e-6)


@pytest.mark.slow
def test_a_run_is_evaluated_loaded_and_explained(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    settings = TINY | {"heads": {"actor": {"hidden": [4]}, "q": {"hidden": [4]}}}
    run = idrl.train("td3", "pendulum", settings=settings, seeds=2, out="run")
    agent = idrl.load(run.path)
    again = idrl.load(agent.save("model.safetensors"))
    seen = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 3.0]])
    action = agent.predict(seen)
    assert action.shape == (2, 1)
    assert (np.abs(action) <= 2).all()
    np.testing.assert_array_equal(again.predict(seen), action)
    decision = agent.explain(seen[0])
    assert decision.candidates.shape == (2, 1)
    assert decision.action == 1
    score = idrl.evaluate(run.path, episodes=2)
    assert np.isfinite(score.return_mean).all()
    assert main(["explain", "run"]) == 0
    assert "(actor)" in capsys.readouterr().out
    assert main(["play", "run", "--max-steps", "3"]) == 0
    assert "gaussian_noise and the actor disagree in 3 of them" in capsys.readouterr().out
    assert (run.path / "play.html").stat().st_size > 0
    with pytest.raises(idrl.IdrlError, match="have no mask"):
        agent.predict(seen[0], mask=[True])


def test_the_push():
    env = NoisyPush(5, noise=2.0)
    way = env.task(jax.random.key(0))
    assert set(np.asarray(way).tolist()) <= {-1.0, 1.0}
    state, obs = env.reset(way, jax.random.key(1))
    total, push = 0.0, jax.jit(env.step)
    for t in range(4):
        whole_push = np.array([way[state.where], -1.0])
        state, step = push(way, state, whole_push, jax.random.key(t))
        total += float(step.reward)
        assert int(step.obs.argmax()) == t + 1
    assert bool(step.terminated)
    assert total == pytest.approx(env.optimal_return(), abs=1e-6)
    assert env.optimal_return() == pytest.approx(1 - 0.1 * 4 / 5)
    # half a push and half a gamble: a quarter of the steps move, and pay N(0, 1)
    state, obs = env.reset(way, jax.random.key(1))
    keys = jax.random.split(jax.random.key(2), 4000)
    half = jnp.array([0.5 * way[0], 0.5])
    after, steps = jax.jit(jax.vmap(env.step, (None, None, None, 0)))(way, state, half, keys)
    assert float(after.where.mean()) == pytest.approx(0.25, abs=0.03)
    assert float(steps.reward.std()) == pytest.approx(1.0, rel=0.05)
    assert float(steps.info["raw_return"][0]) == pytest.approx(-0.01)
    assert int(obs.argmax()) == 0


def test_pendulum_is_gymnasiums():
    ours, theirs = make_env("pendulum"), gymnasium.make("Pendulum-v1").unwrapped
    task = ours.task(jax.random.key(0))
    state, obs = ours.reset(task, jax.random.key(1))
    theirs.reset(seed=0)
    theirs.state = np.array([state.theta, state.theta_dot])
    step = jax.jit(ours.step)
    for torque in (2.0, -1.5, 0.3):
        state, seen = step(task, state, jnp.array([torque]), jax.random.key(0))
        obs, reward, *_ = theirs.step(np.array([torque], np.float32))
        np.testing.assert_allclose(seen.obs, obs, atol=1e-4)
        assert float(seen.reward) == pytest.approx(reward, rel=1e-4)


class Endless(Reach):
    action_space = spaces.Box(-np.inf, np.inf, (2, 1), np.float32)


class Whole(Reach):
    action_space = spaces.Box(0, 4, (2,), np.int32)


@pytest.mark.parametrize(
    ("env", "says"),
    [(Endless, r"without bounds; gymnasium.wrappers.TransformAction\("),
     (Whole, "int32 Box actions"), (NoisyPush, "2-dimensional continuous actions.*try 'td3'")],
)  # fmt: skip
def test_actions_that_do_not_fit(env, says, tmp_path):
    with pytest.raises(idrl.IdrlError, match=says):
        idrl.train("dqn", env, out=tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["ddpg-ids", "cartpole"],
            "this agent is for continuous ones; try",
        ),
        (["td3", "pendulum", "--set", "explore.kind=sample"], "heads.actor.kind=gaussian_actor"),
        (["td3", "pendulum", "--set", "explore.kind=epsilon_greedy"], "gaussian_noise"),
        (["dqn", "cartpole", "--set", "explore.kind=ou_noise"], "the agent has none"),
        (["td3", "pendulum", "--set", "heads.q.double=true"], "heads.q.double=false"),
        (["td3", "pendulum", "--set", "heads.actor.delay=0"], "delay is 0"),
        (["td3", "pendulum", "--set", "learning.tau=0"], "in (0, 1]"),
        (["ddpg", "pendulum", "--set", "explore.kind=ids"], "needs at least 2"),
        (["ddpg-ucb", "pendulum", "--set", "heads.actor.candidates.refine=1"], "explore.kind=ids"),
        (["td3", "noisy_push/1"], "from 2 to 1000"),
        (["td3", "noisy_push/5?nois=1"], "did you mean 'noise'"),
    ],
)
def test_bad_input_is_one_sentence(words, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *words]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())
