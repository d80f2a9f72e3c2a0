"""`brax/NAME`: its refusals, and where Brax is installed its steps and limits."""

import importlib.util
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import idrl
from idrl.config import resolve
from idrl.envs import make_env
from idrl.training.rollout import advance, begin

installed = pytest.mark.skipif(
    importlib.util.find_spec("brax") is None, reason="pip install 'idrl[brax]'"
)
PENDULUM = "brax/inverted_pendulum?backend=spring&episode=4"


def test_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "brax", None)
    with pytest.raises(idrl.IdrlError, match=r"not installed: pip install 'idrl\[brax\]'"):
        make_env("brax/ant")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("brax", "did you mean 'brax/NAME'"),
        ("brax/ant?backend=sprin", "did you mean 'spring'"),
        ("brax/ant?backends=spring", "did you mean 'backend'"),
        ("brax/ant?episode=0", "episode is 0; it must be 1 to 1,000,000 steps"),
        ("brax/ant?episode=1.5", "'1.5' is not a whole number"),
        pytest.param("brax/ants", "did you mean 'ant'", marks=installed),
        pytest.param("brax/swimmer?backend=mjx", "cannot be had with", marks=installed),
    ],
)
def test_bad_names(name, says):
    with pytest.raises(idrl.IdrlError, match=says):
        make_env(name)


def test_an_evaluation_is_ten_whole_episodes():
    assert resolve("td3", "brax/ant").evaluation.steps == 10_000
    assert resolve("sac", "brax/ant?episode=200").evaluation.steps == 2_000


@pytest.fixture(scope="module")
def pendulum():
    jax.config.update("jax_disable_most_optimizations", True)  # compiling takes all the time here
    yield make_env(PENDULUM)
    jax.config.update("jax_disable_most_optimizations", False)


@installed
def test_steps_are_braxs_and_a_limit_truncates(pendulum):
    assert (pendulum.name, pendulum.obs_shape) == (PENDULUM, (4,))
    assert pendulum.action_box == idrl.Box((-1.0,), (1.0,))
    step = jax.jit(lambda state, action: pendulum.step((), state, action, jax.random.key(1)))
    state, obs = jax.jit(pendulum.reset)((), jax.random.key(0))
    theirs, ends = state.state, []
    for t in range(12):  # of full force, under which the pole falls
        state, seen = step(state, jnp.ones(1))
        if t == 0:
            theirs = jax.jit(pendulum.env.step)(theirs, jnp.ones(1))
            np.testing.assert_allclose(seen.obs, theirs.obs, rtol=1e-5, atol=1e-6)
            assert float(seen.reward) == float(theirs.reward) == 1
            assert not np.array_equal(seen.obs, obs)
        ends.append((bool(seen.terminated), bool(seen.truncated)))
    assert ends[:4] == [(False, False)] * 3 + [(False, True)]
    assert ends[-1] == (True, False)


@installed
def test_worlds_go_side_by_side_and_begin_again(pendulum):
    def act(worlds, key):
        return advance(pendulum, (), worlds, jnp.zeros((2, 1)), worlds.memory, key)

    @jax.jit
    def play(key):
        worlds = begin(pendulum, (), key, jnp.zeros((2, 1)))
        return jax.lax.scan(act, worlds, jax.random.split(key, 9))[1]

    happened = play(jax.random.key(0))
    assert np.flatnonzero(happened.ended[:, 0]).tolist() == [3, 8]  # after a limit a step resets
    np.testing.assert_array_equal(happened.episode_return[3], [4, 4])
    assert not happened.terminated.any()
