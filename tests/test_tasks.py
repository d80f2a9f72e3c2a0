"""`noisy_chain`: its rules by hand, its tasks, its noise, its records and its exact values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl.config import resolve
from idrl.envs import make_env
from idrl.envs.families.noisy_chain import BACK, FORWARD, GAMBLE, NoisyChain
from idrl.envs.tabular import exact
from idrl.errors import IdrlError
from idrl.report.statistics import solved_episode
from idrl.training.seeding import seed_key, task_of

KEY = jax.random.key(0)


def play(env, task, meanings):
    """The steps that follow from actions given by what they mean."""
    state, obs = env.reset(task, KEY)
    step = jax.jit(env.step)
    seen = [(obs, None)]
    for t, meaning in enumerate(meanings):
        action = jnp.argmax(task[state.where] == meaning)
        state, happened = step(task, state, action, jax.random.fold_in(KEY, t))
        seen.append((happened.obs, happened))
    return seen


@pytest.fixture(scope="module")
def chain():
    env = make_env("noisy_chain/4")
    return env, task_of(env, seed_key(1))


def test_moves_pays_and_ends_by_hand(chain):
    seen = play(*chain, [BACK, FORWARD, GAMBLE, BACK, FORWARD, FORWARD, FORWARD])
    assert [int(obs.argmax()) for obs, _ in seen] == [0, 0, 1, 1, 0, 1, 2, 3]
    assert all(obs.dtype == jnp.uint8 and obs.sum() == 1 for obs, _ in seen)
    steps = [step for _, step in seen[1:]]
    gamble = steps.pop(2)
    assert float(gamble.reward) != 0
    assert [float(s.reward) for s in steps] == [0, 0, 0, 0, 0, 1]
    assert [bool(s.terminated) for s in steps] == [False] * 5 + [True]
    assert not any(bool(s.truncated) for s in steps)
    last = steps[-1].info
    assert float(last["bad"]) == 0
    assert float(last["gambles"]) == pytest.approx(1 / 7)


def test_truncates_after_3n_steps(chain):
    steps = [s for _, s in play(*chain, [GAMBLE, BACK] * 6)[1:]]
    assert [bool(s.truncated) for s in steps] == [False] * 11 + [True]
    assert not any(bool(s.terminated) for s in steps)
    assert float(steps[-1].info["bad"]) == 1
    assert float(steps[-1].info["gambles"]) == 0.5


def test_the_goal_in_the_last_step_is_no_truncation(chain):
    last = play(*chain, [BACK] * 9 + [FORWARD] * 3)[-1][1]
    assert bool(last.terminated)
    assert not bool(last.truncated)


def test_meanings_are_permutations_of_the_seed():
    env = make_env("noisy_chain/30")
    task = np.asarray(task_of(env, seed_key(3)))
    assert (np.sort(task, axis=1) == np.arange(3)).all()
    assert len(np.unique(task, axis=0)) == 6, "the states differ, and all orders occur"
    np.testing.assert_array_equal(task, task_of(env, seed_key(3)))
    assert (task != np.asarray(task_of(env, seed_key(4)))).any()


@pytest.mark.parametrize("noise", [0.0, 1.0, 2.5])
def test_gambles_pay_their_noise(noise):
    env = NoisyChain(5, noise=noise)
    task = env.task(KEY)
    state, _ = env.reset(task, KEY)
    gamble = jnp.argmax(task[0] == GAMBLE)
    keys = jax.random.split(jax.random.key(7), 20_000)
    paid = np.asarray(jax.vmap(lambda k: env.step(task, state, gamble, k)[1].reward)(keys))
    # 5 standard errors of the mean and of the standard deviation
    assert abs(paid.mean()) <= 5 * noise / np.sqrt(20_000)
    assert abs(paid.std() - noise) <= 5 * noise / np.sqrt(40_000)


def test_exact_values():
    env = NoisyChain(5, noise=2.0)
    gamma = 0.9
    q, variance = exact(env.mdp(), gamma)
    np.testing.assert_allclose(q[:4, FORWARD], gamma ** np.arange(3, -1, -1))
    np.testing.assert_allclose(q[0, BACK], gamma**4)
    np.testing.assert_allclose(q[:4, GAMBLE], gamma ** np.arange(4, 0, -1))
    np.testing.assert_allclose(variance[:4, GAMBLE], 4.0)  # one gamble, then forward
    np.testing.assert_allclose(variance[:4, :GAMBLE], 0, atol=1e-12)
    assert env.optimal_return() == 1.0


def test_mdp_moves_as_the_environment():
    env = NoisyChain(5, noise=0.0)
    task, mdp = env.task(KEY), env.mdp()
    for where in range(4):
        for action in range(3):
            state = env.reset(task, KEY)[0]._replace(where=jnp.int32(where))
            after, step = env.step(task, state, action, KEY)
            meaning = int(task[where, action])
            assert mdp.move[where, meaning, int(after.where)] == 1
            assert mdp.reward[where, meaning] == float(step.reward)
            assert bool(mdp.ends[where, meaning]) == bool(step.terminated)


def test_bad_episodes_fit_the_rule_of_solving():
    assert solved_episode([1, 1, 1, 0]) == 4
    assert solved_episode([1] * 20) is None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("noisy_chain/1", "from 2 to 1000"),
        ("noisy_chain/x", "not a whole number"),
        ("noisy_chain/6?noise=-1", "at least 0"),
        ("noisy_chain/6?noise=nan", "at least 0"),
        ("noisy_chain/6?nois=1", "did you mean 'noise'"),
        ("hetero/reward", "did you mean 'rewards'"),
        ("hetero/rewards?x=1", "takes no options"),
        ("minatar/pong", "MinAtar game"),
        ("minatar/breakout?sticky=2", "below 1"),
        ("minatar", "unknown environment"),
    ],
)
def test_wrong_names_are_refused_in_one_sentence(name, says):
    with pytest.raises(IdrlError, match=says):
        make_env(name)


def test_preset_covers_the_noise_and_a_thousand_episodes():
    config = resolve("c51-ids", "noisy_chain/6?noise=2")
    assert (config.heads["z"].v_min, config.heads["z"].v_max) == (-7.0, 7.0)
    assert config.learning.gamma == 0.99
    assert config.training.steps == 1000 * 19
