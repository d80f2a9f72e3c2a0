"""MinAtar through gymnax: shapes, a training smoke test, and the reference package's dynamics."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import idrl
from idrl.config import resolve
from idrl.envs import make_env
from idrl.envs.families.minatar import GAMES
from idrl.runs.session import make_program
from idrl.storage import checkpoint
from idrl.storage.folder import FORMAT
from idrl.storage.older import in_todays_words
from idrl.training.loop import train

KEY = jax.random.key(0)
SHAPES = {  # channels, smallest action set (of the MinAtar paper's table)
    "asterix": (4, 5),
    "breakout": (4, 3),
    "freeway": (7, 3),
    "seaquest": (10, 6),
    "space_invaders": (6, 4),
}


@pytest.mark.parametrize("game", GAMES)
def test_shapes_and_bytes(game):
    env = make_env(f"minatar/{game}?sticky=0")
    channels, actions = SHAPES[game]
    assert env.obs_shape == (10, 10, channels)
    assert env.num_actions == actions
    task = env.task(KEY)
    state, obs = jax.eval_shape(env.reset, task, KEY)
    _, step = jax.eval_shape(env.step, task, state, jnp.int32(0), KEY)
    assert obs.dtype == step.obs.dtype == jnp.uint8
    assert step.terminated.dtype == step.truncated.dtype == bool


@pytest.mark.slow
def test_sticky_actions_repeat_the_last():
    env = make_env("minatar/breakout?sticky=0.5")
    task = env.task(KEY)
    state, _ = env.reset(task, KEY)
    state = state._replace(last_action=jnp.int32(1))  # left
    keys = jax.random.split(KEY, 400)
    after, _ = jax.jit(jax.vmap(lambda key: env.step(task, state, jnp.int32(2), key)))(keys)
    moved = np.asarray(after.game.pos) - 4
    assert set(moved.tolist()) == {-1, 1}
    assert abs((moved == -1).mean() - 0.5) < 0.1
    np.testing.assert_array_equal(after.last_action, np.where(moved == -1, 1, 2))


@pytest.mark.parametrize(
    ("game", "limit", "ends"),
    [
        ("breakout", "1000", {(999, ""): (0, 0), (10_000_000, ""): (0, 0), (999, "?"): (0, 0),
                              (1000, "?"): (0, 1)}),
        # freeway's end is the game's own, as in the reference
        pytest.param(
            "freeway", "2500", {(2500, ""): (0, 0), (2501, ""): (1, 0), (2500, "?"): (0, 1)},
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_games_have_no_time_limit_but_the_one_that_is_asked_for(game, limit, ends):
    plain, limited = make_env(f"minatar/{game}"), make_env(f"minatar/{game}?limit={limit}")
    step = jax.jit(plain.step, compiler_options={"xla_backend_optimization_level": 0})
    state, _ = plain.reset(plain.task(KEY), KEY)
    for (frame, asked), expected in ends.items():
        task = (limited if asked else plain).task(KEY)  # the limit is a part of the task
        before = state._replace(game=state.game.replace(time=jnp.int32(frame - 1)))
        _, seen = step(task, before, jnp.int32(0), KEY)
        assert (seen.terminated, seen.truncated) == expected, (frame, asked)


@pytest.mark.parametrize("limit", ["-1", "1.5", "none"])
def test_a_limit_is_a_number_of_frames(limit):
    with pytest.raises(idrl.IdrlError, match="number"):
        make_env(f"minatar/breakout?limit={limit}")


def test_names_in_folders_of_before_say_their_limit_today():
    told = {
        "minatar/breakout": "minatar/breakout?limit=1000",
        "minatar/freeway": "minatar/freeway?limit=2500",
        "minatar/asterix?sticky=0": "minatar/asterix?sticky=0&limit=1000",
        "minatar/asterix?limit=7": "minatar/asterix?limit=7",
        "cartpole": "cartpole",
    }
    for before, today in told.items():
        assert in_todays_words({"env": before, "seed": 3}, 1) == {"env": today, "seed": 3}
        assert in_todays_words({"env": before}, FORMAT) == {"env": before}


@pytest.mark.slow
def test_a_run_of_before_keeps_its_limit(tmp_path, monkeypatch):
    """Its name does not say it: what is resumed is what it would have been, bit for bit."""
    monkeypatch.setattr("idrl.storage.older._LIMIT", 5)  # no ball is down so soon
    few = {
        "trunk": {"channels": 1}, "heads": {"q": {"hidden": [2]}},
        "learning": {"learning_starts_steps": 20, "update_every_steps": 4, "batch_size": 2,
                     "replay_capacity": 50, "target_every_steps": 20},
        "training": {"distributions_every_steps": 0, "log_every_steps": 20},
        "evaluation": {"every_steps": 40, "steps": 20, "envs": 1},
    }  # fmt: skip
    env, today = "minatar/breakout", "minatar/breakout?limit=5"
    whole = idrl.train("dqn", today, steps=80, settings=few, out=tmp_path / "whole")
    old = idrl.train("dqn", today, steps=40, settings=few, out=tmp_path / "old").path
    about = json.loads((old / "run.json").read_text())
    (old / "run.json").write_text(json.dumps(about | {"format": 1}))
    config = (old / "config.toml").read_text()
    (old / "config.toml").write_text(config.replace(today, env))
    for place in checkpoint.listed(old / "checkpoints"):
        path = place / checkpoint.MANIFEST
        manifest = json.loads(path.read_text())
        manifest["meta"]["config"]["env"] = env
        del manifest["check"]  # as the first had none
        path.write_text(json.dumps(manifest))
    assert idrl.evaluate(old, episodes=2).length_mean.tolist() == [5.0]
    again = idrl.train(resume=old, steps=80)
    assert again.config.env == today
    assert set(again.episodes["length"]) == {5}
    for table in ("episodes.csv", "metrics.csv", "evaluations.csv"):
        assert (old / table).read_bytes() == (whole.path / table).read_bytes()


def test_preset_is_that_of_the_minatar_paper():
    c51, dqn = (resolve(agent, "minatar/breakout") for agent in ("c51-ids", "dqn"))
    assert c51.trunk.kind == "minatar_cnn"
    assert c51.heads["q"].hidden == c51.heads["z"].hidden == (128,)
    assert c51.learning == dqn.learning
    assert (dqn.learning.replay_capacity, dqn.learning.target_every_steps) == (100_000, 1_000)
    assert (dqn.optimiser.kind, c51.optimiser.kind) == ("rmsprop", "adam")
    assert (dqn.explore.start, dqn.explore.end, dqn.explore.decay_steps) == (1.0, 0.1, 100_000)


@pytest.mark.slow
def test_trains_and_keeps_boards_as_bytes():
    small = {
        "trunk": {"channels": 2},
        "heads": {"q": {"k": 2, "hidden": [8]}, "z": {"hidden": [8]}},
        "learning": {"learning_starts_steps": 20, "replay_capacity": 64, "batch_size": 4,
                     "target_every_steps": 10},
        "training": {"steps": 60, "log_every_steps": 20},
        "evaluation": {"every_steps": 60, "steps": 40, "envs": 2},
    }  # fmt: skip
    config = resolve("c51-ids", "minatar/breakout", changes=[small])
    program = make_program(config, make_env(config.env))
    *_, last = train(program, None, 0, program.seed_keys(0))
    assert last.steps == 60
    assert last.state.replay.obs.dtype == jnp.uint8
    assert last.state.replay.obs.shape == (1, 64, 1, 10, 10, 4)
    assert np.isfinite(last.metrics["loss_z"]).all()


# -- against the reference, where it is installed (it is GPL and no dependency of ours) ----------


def rollouts(game, episodes=20, limit=300):
    """Random play in both, with the same actions, from the same start, until one ends."""
    minatar = pytest.importorskip("minatar")
    env = make_env(f"minatar/{game}?sticky=0")
    task = env.task(KEY)
    step, reset = jax.jit(env.step), jax.jit(env.reset)
    reference = minatar.Environment(game, sticky_action_prob=0.0)
    actions = reference.env.minimal_action_set()
    assert len(actions) == env.num_actions
    rng = np.random.default_rng(0)
    for episode in range(episodes):
        state, obs = reset(task, jax.random.key(episode))
        reference.reset()
        same_start(game, state.game, reference.env)
        np.testing.assert_array_equal(obs, reference.state())
        for t in range(limit):
            action = int(rng.integers(env.num_actions))
            state, seen = step(task, state, action, jax.random.key(t))
            reward, terminal = reference.act(actions[action])
            yield state.game, reference, seen, reward, terminal
            if terminal or bool(seen.terminated):
                break


def same_start(game, ours, theirs):
    """Whatever is drawn at random when an episode starts."""
    if game == "breakout":
        theirs.ball_x = theirs.last_x = int(ours.ball_x)
        theirs.ball_dir = int(ours.ball_dir)
    if game == "freeway":
        theirs.cars = np.asarray(ours.cars).tolist()


@pytest.mark.parametrize("game", ["breakout", "space_invaders", "freeway"])
def test_dynamics_are_those_of_the_reference(game):
    steps = ends = 0
    total = 0.0
    for ours, theirs, seen, reward, terminal in rollouts(game):
        if game == "freeway" and reward:  # the cars are drawn anew
            same_start(game, ours, theirs.env)
        assert float(seen.reward) == reward
        assert bool(seen.terminated) == terminal
        np.testing.assert_array_equal(seen.obs, theirs.state())
        steps, ends, total = steps + 1, ends + terminal, total + reward
    assert steps > 100
    if game != "freeway":
        assert ends > 0
        assert total > 0
