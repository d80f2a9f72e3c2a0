"""Numbers gone wrong: who is frozen, what the others do, and which operation it was."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import idrl
from idrl.cli.app import main
from idrl.envs import Step
from idrl.report.reading import read_runs
from idrl.schema import merge
from idrl.storage import checkpoint
from idrl.training.locating import first_bad_operation
from idrl.training.seeding import seed_key, stream

SMALL = {
    "trunk": {"hidden": [8]},
    "heads": {"q": {"hidden": [8]}},
    "learning": {"learning_starts_steps": 20, "replay_capacity": 500},
    "training": {"envs": 2, "log_every_steps": 50},
    "evaluation": {"every_steps": 100, "steps": 40, "envs": 2},
}
NEVER = 10**6


def marks(seed: int) -> jax.Array:
    """What the task of a seed is drawn from, so that an environment knows whose it is."""
    return jax.random.key_data(stream(seed_key(seed), "task"))[0]


class Poison:
    """Four steps an episode. Seed `victim` meets 0/0 in its reward after 40 steps of the world."""

    name, num_actions, obs_shape = "poison", 2, (1,)

    def __init__(self, victim: int):
        self.victim = marks(victim)

    def task(self, key):
        return jax.random.key_data(key)[0]

    def reset(self, task, key):
        return jnp.int32(0), jnp.zeros(1)

    def step(self, task, state, action, key):
        state = state + 1
        lucky = jax.random.uniform(key) < 0.1
        divisor = jnp.where((task == self.victim) & lucky, 0.0, 1.0)
        reward = (state * 0.0) / divisor + action
        return state, Step(jnp.ones(1) * state, reward, state == 4, jnp.bool_(False))


def rows(path, seed=None):
    lines = path.read_text().splitlines()
    return [line for line in lines if seed is None or line.startswith(f"{seed},")]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """The same run with seed 1 poisoned and with nobody poisoned."""
    folder = tmp_path_factory.mktemp("numbers")
    options = {"steps": 300, "seeds": 4, "settings": SMALL}
    with pytest.warns(
        UserWarning, match=r"the loss of head q of seed 1 .* the other seeds continue"
    ):
        bad = idrl.train("dqn", Poison(1), out=folder / "bad", **options)
    good = idrl.train("dqn", Poison(NEVER), out=folder / "good", **options)
    return bad, good


@pytest.mark.slow
def test_one_seed_is_frozen_and_the_others_keep_their_bits(pair):
    bad, good = pair
    (told,) = bad.frozen
    assert told["seed"] == 1
    assert told["what"] == "the loss of head q"
    when = int(told["steps"])
    assert 20 < when < 100
    for name in ("metrics.csv", "evaluations.csv", "episodes.csv"):
        for seed in (0, 2, 3):
            assert rows(bad.path / name, seed) == rows(good.path / name, seed), (name, seed)
    assert len(rows(bad.path / "evaluations.csv", 1)) == 0
    assert len(rows(bad.path / "metrics.csv", 1)) <= 1
    with pytest.raises(idrl.IdrlError, match=f"seed 1 .* before it froze at step {when}"):
        read_runs([bad.path])
    places = [checkpoint.newest(run.path / "checkpoints")[0] for run in pair]
    states = [checkpoint.restore(place, _like(place)) for place in places]
    for name in states[0]:
        ours, theirs = (np.delete(state[name], 1, axis=0) for state in states)
        if not name.startswith("task"):
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
        if name.startswith("agent/params"):
            assert np.isfinite(states[0][name]).all()
            assert (states[0][name][1] != states[1][name][1]).any(), "it was not frozen"


def _like(place):
    from safetensors.numpy import load_file

    return load_file(place / checkpoint.ARRAYS)


@pytest.mark.slow
def test_a_frozen_seed_stays_frozen_when_resumed(pair):
    bad, good = pair
    idrl.train(resume=bad.path, env=Poison(1), steps=400)
    idrl.train(resume=good.path, env=Poison(NEVER), steps=400)
    assert len(bad.frozen) == 1
    for seed in (0, 2, 3):
        for name in ("metrics.csv", "evaluations.csv"):
            assert rows(bad.path / name, seed) == rows(good.path / name, seed)
    assert len(rows(bad.path / "evaluations.csv", 1)) == 0


@pytest.mark.slow
def test_the_last_seed_stops_the_run_with_its_checkpoint_intact(tmp_path):
    class Late(Poison):
        def step(self, task, state, action, key):
            state, step = super().step(task, state, action, key)
            return state, step._replace(reward=step.reward * 0 + jnp.exp(jnp.float32(1e3)))

    settings = SMALL | {"training": {"envs": 1, "log_every_steps": 50}}
    idrl.train("dqn", Poison(NEVER), steps=100, settings=settings, out=tmp_path / "run")
    # The end of the shorter run is none of the longer one, which goes on from before it.
    before, _ = checkpoint.listed(tmp_path / "run" / "checkpoints")
    kept = {p: p.read_bytes() for p in before.rglob("*.*")}
    assert len(kept) >= 2
    with pytest.raises(idrl.TrainingDiverged, match=r"At step \d+ .* seed 0 .*No seed is left"):
        idrl.train(resume=tmp_path / "run", env=Late(NEVER), steps=300)
    assert {p: p.read_bytes() for p in kept} == kept


@pytest.mark.slow
def test_debug_nans_names_the_operation(tmp_path):
    says = r"a NaN was made by `div` in test_numbers.py:\d+ \(.*step\)"
    options = {"steps": 120, "settings": SMALL, "debug_nans": True}
    with pytest.raises(idrl.TrainingDiverged, match=says):
        idrl.train("dqn", Poison(1), seed=1, out=tmp_path / "one", **options)
    with pytest.warns(UserWarning, match=says):
        run = idrl.train("dqn", Poison(1), seeds=2, out=tmp_path / "two", **options)
    assert "`div`" in run.frozen[0]["operation"]


class Grows(gymnasium.Env):
    """Rewards that Q cannot hold: the squared error is infinite."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        huge = 1e30 if self.np_random.random() < 0.1 else 1.0
        return np.zeros(1, np.float32), huge, self.t == 4, False, {}


@pytest.mark.slow
def test_the_hosted_loop_freezes_and_locates_too(tmp_path):
    how = {
        "settings": merge(SMALL, {"learning": {"unit": "task"}}),  # measured ones would grow too
        "out": tmp_path / "run",
    }
    with pytest.raises(idrl.TrainingDiverged, match="an infinity was made by .*losses.py.*squared"):
        idrl.train("dqn", Grows, steps=200, debug_nans=True, **how)


def test_infinite_q_freezes_at_the_end_of_a_block():
    from idrl.training.health import examine
    from idrl.training.program import TrainState
    from idrl.training.spec import Cadence

    c = Cadence(1, 1, 1, 10, 4, 4, 20, 100, 50, 50, 0)
    state = TrainState(*[None] * 6, jax.device_put(np.array([-1, -1, 3], np.int32)))
    metrics = {"q_max": np.array([1.0, np.inf, np.nan]), "sigma_max": np.zeros(3)}
    state, failures = examine(state, np.array([-1, -1, 3]), metrics, c, 20)
    assert np.asarray(state.failed).tolist() == [-1, 19, 3]
    assert [(f.seed, f.steps, f.what) for f in failures] == [(1, 30, "Q")]


def test_operations_are_found_inside_loops_and_branches():
    def inner(x):
        y = jax.lax.cond(x > 2, lambda v: jnp.log(v - 10), lambda v: v, x)
        return y, y

    def looped(x):
        return jax.lax.scan(lambda c, i: inner(c + i), x, jnp.arange(4.0))

    assert "`log` in test_numbers.py" in first_bad_operation(looped, jnp.float32(0))
    assert first_bad_operation(jnp.sqrt, jnp.float32(4)) == ""
    assert "was there before" in first_bad_operation(jnp.sqrt, jnp.float32(jnp.nan))
    assert "an infinity was made by `exp`" in first_bad_operation(jnp.exp, jnp.float32(1e3))


@pytest.mark.slow
def test_the_command_line_stops_with_status_1(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [
        "train", "dqn", "cartpole", "--steps", "400", "--set", "optimiser.lr=1e30",
        "trunk.hidden=8", "heads.q.hidden=8", "learning.learning_starts_steps=40",
        "evaluation.steps=40", "learning.replay_capacity=500",
    ]  # fmt: skip
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "of seed 0 is not a finite number" in error
