"""Mistakes in an environment of one's own: a sentence before anything is compiled or written."""

import abc
import sys
import types

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import idrl
from idrl.envs.adapters.gymnasium_env import GymnasiumEnv
from idrl.envs.checking import check_env, own_env


class Corridor:
    """As it should be."""

    name, num_actions, obs_shape = "corridor", 2, (1,)

    def task(self, key):
        return jax.random.uniform(key)

    def reset(self, task, key):
        return {"at": jnp.int32(0), "time": 0}, jnp.zeros(1)

    def step(self, task, state, action, key):
        at = jnp.maximum(state["at"] + 2 * action - 1, 0)
        state = {"at": at, "time": state["time"] + 1}
        return state, self.seen(at >= 3, jnp.ones(1) * at)

    def seen(self, done, obs):
        return idrl.Step(obs, jnp.where(done, 1.0, 0.0), done, jnp.bool_(False), {"task": 0.5})


def changed(**methods):
    """A corridor with other members."""
    return type("Mine", (Corridor,), {"name": "Mine", **methods})()


def stepping(**parts):
    """One whose Step has other parts."""

    def seen(self, done, obs):
        return Corridor.seen(self, done, obs)._replace(**parts)

    return changed(seen=seen)


def python_if(self, task, state, action, key):
    if state["at"] > 3:
        return state, None
    return Corridor.step(self, task, state, action, key)


def in_numpy(self, task, state, action, key):
    return state, np.asarray(state["at"])


def to_int(self, task, key):
    return int(task), jnp.zeros(1)


def fails(self, task, state, action, key):
    return state["nowhere"], None


def returns(value):
    return lambda self, *given: value


STATE = {"at": jnp.int32(0), "time": 0}


@pytest.mark.parametrize(
    ("env", "says"),
    [
        (
            changed(reset=returns(jnp.zeros(1))),
            r"Mine.reset returns an? \w+; it must return \(state, ",
        ),
        (
            changed(reset=returns((1, 2, 3))),
            r"Mine.reset returns 3 values; it must return \(state, ",
        ),
        (
            changed(reset=returns((STATE, jnp.zeros(3)))),
            r"of shape \(3,\), but obs_shape is \(1,\)",
        ),
        (changed(reset=returns((STATE, None))), "Mine.reset returns a NoneType as observation"),
        (changed(reset=returns(("here", jnp.zeros(1)))), "Mine.reset returns a state with a str; "),
        (
            changed(step=returns((jnp.zeros(1), 0.0, False, False, {}))),
            r"Mine.step returns 5 values; it must return \(state, idrl.Step\)",
        ),
        (
            changed(step=returns((STATE, (1, 2)))),
            r"Mine.step returns \(state, a tuple\); the second",
        ),
        (
            changed(step=lambda self, *given: (given[1]["at"], Corridor.step(self, *given)[1])),
            r"state of another structure than reset: \*, not \{'at': \*, 'time': \*\}",
        ),
        (
            changed(
                step=lambda self, *given: ({"at": 0.5, "time": 0}, Corridor.step(self, *given)[1])
            ),
            r"a state that is one float32 at \['at'\], and reset one that is one int32 there",
        ),
        (stepping(obs=jnp.zeros((1, 1))), r"Mine.step returns an observation of shape \(1, 1\)"),
        (stepping(obs=jnp.zeros(1, int)), "an observation of int32, but reset one of float32"),
        (
            stepping(reward=jnp.zeros(1)),
            r"returns float32 of shape \(1,\) as reward; it must be one",
        ),
        (stepping(reward=None), "returns a NoneType as reward; it must be one number"),
        (
            stepping(terminated=jnp.int32(0)),
            "returns one int32 as terminated; it must be one boolean",
        ),
        (stepping(truncated=jnp.zeros(2, bool)), r"bool of shape \(2,\) as truncated"),
        (stepping(info=[1]), "a list as info; it must be a dictionary"),
        (
            stepping(info={"x": jnp.zeros(2)}),
            r"of shape \(2,\) as info\['x'\]; it must be one number",
        ),
        (
            changed(step=python_if),
            r"Mine.step asks in Python whether a traced value is true at test_env_mistakes.py:\d+ "
            r"\(`if state\[\"at\"\] > 3:`\): .* use jnp.where",
        ),
        (changed(step=in_numpy), r"Mine.step needs the number of a traced value at .*np.asarray"),
        (changed(reset=to_int), r"Mine.reset needs the number of a traced value at .*int\(task\)"),
        (
            changed(step=fails),
            r"Mine.step raised KeyError at test_env_mistakes.py:\d+ .*: 'nowhere'",
        ),
        (
            changed(step=lambda self, state: None),
            r"Mine.step raised TypeError: .* takes 2 positiona",
        ),
        (
            changed(obs_shape=4),
            r"Mine.obs_shape is 4; it must be a tuple of whole numbers, such as",
        ),
        (changed(num_actions=2.0), "Mine.num_actions is 2.0; it must be a whole number, 1 or more"),
        (changed(action_box=([-1], [1])), r"Mine.action_box is a tuple; it must be an idrl.Box"),
        (changed(allowed=python_if), "Mine .* raised TypeError"),
    ],
)
def test_an_environment_on_the_device(env, says, tmp_path):
    with pytest.raises(idrl.IdrlError, match=says) as caught:
        idrl.train("dqn", env, out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_what_is_right_passes():
    check_env(Corridor())
    check_env(changed(num_actions=0, action_box=idrl.Box((-1.0,), (1.0,)), step=moved))
    check_env(stepping(terminated=False, reward=1, info={}))


def moved(self, task, state, action, key):
    at = state["at"] + jnp.int32(action[0] > 0)
    return {"at": at, "time": state["time"]}, self.seen(at >= 3, jnp.ones(1) * at)


def test_a_mistake_that_tracing_does_not_show_leaves_no_folder(tmp_path):
    """One that only compiling, or a computation, meets."""

    class Late(Corridor):
        def step(self, task, state, action, key):
            jax.debug.callback(self.look, action)
            return super().step(task, state, action, key)

        def look(self, action):
            raise RuntimeError("not this one")

    with pytest.raises(Exception, match="not this one"):
        idrl.train("dqn", Late(), steps=40, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


class Gym(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(3, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        assert action == 1
        return np.zeros(2, np.float32), 1.0, True, False, {}


def gym(reset=None, step=None, **members):
    for name, value in (("reset", reset), ("step", step)):
        if value is not None:
            members[name] = lambda self, *given, value=value, **named: value
    return type("Theirs", (Gym,), members)


OBS, NONE = np.zeros(2, np.float32), np.zeros(0, np.float32)


@pytest.mark.parametrize(
    ("env", "says"),
    [
        (
            gym(reset=OBS),
            r"Theirs.reset returns an array of float32, shape \(2,\),; it must return",
        ),
        (gym(reset=(OBS, None)), r"Theirs.reset returns 2 values; .* and info is a dictionary"),
        (gym(reset=(np.zeros(3), {})), r"observation of shape \(3,\), .* at its first reset"),
        (
            gym(step=(OBS, 0.0, False, {})),
            r"Theirs.step returns 4 values; it must return \(observation",
        ),
        (gym(step=(np.zeros(3), 0.0, False, False, {})), r"\(3,\), but .* at its first step, acti"),
        (
            gym(step=(OBS, None, False, False, {})),
            "returns NoneType None as reward; it must be one",
        ),
        (
            gym(step=(OBS, np.zeros(1), False, False, {})),
            r"shape \(1,\), as reward; it must be one",
        ),
        (gym(step=(OBS, 0.0, "no", False, {})), "str 'no' as terminated; it must be a bool"),
        (gym(step=(OBS, 0.0, False, None, {})), "None as truncated; it must be a bool"),
        (gym(step=(OBS, 0.0, False, False, 3)), "returns int 3 as info; it must be a dictionary"),
        (
            gym(
                (NONE, {}), (NONE, 0.0, False, False, {}), observation_space=spaces.Box(0, 1, (0,))
            ),
            r"Theirs has observations without a number in them: Box\(.*\(0,\), float32\)",
        ),
        (gym(action_space=3), "Theirs has no action_space that is one of gymnasium.spaces"),
        (gymnasium.Env, "Env does not implement reset and step"),
        (type("Half", (gymnasium.Env,), {"reset": Gym.reset}), "Half does not implement step,"),
    ],
)
def test_an_environment_of_gymnasium(env, says, tmp_path):
    with pytest.raises(idrl.IdrlError, match=says):
        idrl.train("dqn", env, out=tmp_path / "run")
    with pytest.raises(idrl.IdrlError, match=says):
        idrl.train("dqn", env(), out=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_one_that_cannot_be_closed_is_no_mistake_in_it():
    def close(self):
        raise OSError("no window")

    with pytest.warns(UserWarning, match="Theirs raised OSError at its closing: no window"):
        env = GymnasiumEnv(gym(close=close))
    with pytest.warns(UserWarning, match="Theirs raised OSError at its closing: no window"):
        env.make(1).close()


@pytest.mark.parametrize("mask", [True, [1], "all", [1, 0], [0, 0, 0, 1], [1, [1]], None])
def test_a_mask_that_does_not_fit_is_named(mask):
    """Before anything is compiled, or where it comes."""
    with pytest.raises(idrl.IdrlError, match=r"mask .* each of 3 actions at its first reset\."):
        GymnasiumEnv(gym(reset=(OBS, {"action_mask": mask})))
    masks = iter([*[np.ones(3, np.int8)] * 4, mask])

    class Later(Gym):
        def reset(self, *, seed=None, options=None):
            return OBS, {"action_mask": next(masks)}

    env = GymnasiumEnv(Later).make(1)
    env.step(np.array([-1]), np.array([0]))
    with pytest.raises(idrl.IdrlError, match=r"mask .* each of 3 actions at a reset with seed 1"):
        env.step(np.array([-1]), np.array([1]))


def test_a_mask_that_a_wrapper_mends_is_none_of_its_mistakes():
    class Masks(gymnasium.Wrapper):
        def reset(self, *, seed=None, options=None):
            obs, info = self.env.reset(seed=seed)
            legal = info["action_mask"]
            return obs, {"action_mask": np.isin(np.arange(3), legal)}

    made = gym(reset=(OBS, {"action_mask": [2]}))
    assert GymnasiumEnv(lambda: Masks(made())).masked


def test_wrappers_are_no_reason_to_miss_it():
    gymnasium.register("Mistaken-v0", gym(step=(OBS, 0.0, False, {})), max_episode_steps=3)
    with pytest.raises(idrl.IdrlError, match=r"gym/Mistaken-v0.step returns 4 values"):
        own_env("gym/Mistaken-v0")
    assert own_env(gym(step=(OBS, np.float64(1), np.bool_(True), 0, {}))).obs_shape == (2,)


def test_what_is_of_another_kind_is_named(monkeypatch):
    old = types.ModuleType("gym")
    old.Env = type("Env", (), {"__module__": "gym.core"})
    monkeypatch.setitem(sys.modules, "gym", old)
    with pytest.raises(idrl.IdrlError, match="Old is an environment of the old gym package"):
        own_env(type("Old", (old.Env,), {})())
    with pytest.raises(idrl.IdrlError, match="Old is an environment of the old gym package"):
        own_env(lambda: type("Old", (old.Env,), {})())

    class Abstract(abc.ABC, Corridor):
        @abc.abstractmethod
        def step(self, task, state, action, key): ...

    with pytest.raises(idrl.IdrlError, match="Abstract is abstract: it does not implement step"):
        own_env(Abstract)

    def broken():
        raise OSError("no display")

    with pytest.raises(
        idrl.IdrlError, match=r"broken cannot be made: it raised OSError .*no displ"
    ):
        own_env(broken)


def test_vectors_of_gymnasium(tmp_path):
    """By what made them: its options, its wrappers, and how many they are."""
    made = gymnasium.make_vec(
        "FrozenLake-v1", 3, is_slippery=False, max_episode_steps=7,
        wrappers=[gymnasium.wrappers.TimeAwareObservation],
    )  # fmt: skip
    env = own_env(made)
    one = env.one()
    assert (env.side_by_side, env.obs_shape, one.spec.max_episode_steps) == (3, (17,), 7)
    assert one.spec.kwargs == {"map_name": "4x4", "is_slippery": False}
    for vector in (made, gymnasium.make_vec("CartPole-v1", 2)):
        vector.close()
    assert own_env(vector).side_by_side == 2  # of a class of its own
    assert own_env(lambda: vector).side_by_side == 2
    functions = gymnasium.vector.SyncVectorEnv([Gym] * 2)
    with pytest.raises(idrl.IdrlError, match="a function that makes one and envs=2"):
        own_env(functions)
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(vector)
    with pytest.raises(idrl.IdrlError, match="RecordEpisodeStatistics wraps a whole vector"):
        idrl.train("dqn", wrapped, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
