"""MinAtar: shapes, options, older folders, a training smoke test, random play."""

import csv
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tomli_w

import idrl
from idrl.agents import make_agent
from idrl.config import read_config, resolve
from idrl.envs import make_env
from idrl.envs.families.minatar import GAMES, OURS
from idrl.envs.families.minatar.boards import LEFT, RIGHT, STILL
from idrl.envs.families.minatar.by_gymnax import GymnaxGame
from idrl.runs import policy
from idrl.runs.session import make_program
from idrl.runs.sizing import shapes
from idrl.schema import to_dict
from idrl.storage import checkpoint
from idrl.storage.folder import FORMAT
from idrl.storage.older import in_todays_words
from idrl.sweep import folder as studies
from idrl.sweep.job import Job
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


@pytest.mark.parametrize("game", OURS)
def test_games_of_ours_stick_and_are_truncated_as_asked(game):
    env = make_env(f"minatar/{game}?sticky=0.5&limit=7")
    task = env.task(KEY)
    state, _ = env.reset(task, KEY)
    state = state._replace(last_action=jnp.int32(LEFT))
    keys = jax.random.split(KEY, 400)
    after, seen = jax.jit(jax.vmap(lambda key: env.step(task, state, jnp.int32(RIGHT), key)))(keys)
    left = np.asarray(after.last_action) == LEFT
    assert abs(left.mean() - 0.5) < 0.1
    columns = np.asarray(seen.obs)[..., 0].sum(1).argmax(1)  # of the player, who was at 5
    np.testing.assert_array_equal(columns, np.where(left, 4, 6))
    step = jax.jit(env.step)
    for frame, truncated in ((5, False), (6, True)):
        _, seen = step(task, state._replace(frame=jnp.int32(frame)), jnp.int32(STILL), KEY)
        assert (bool(seen.terminated), bool(seen.truncated)) == (False, truncated)


@pytest.mark.parametrize("game", OURS)
def test_games_of_ours_are_without_loops_and_scatters(game):
    env = make_env(f"minatar/{game}")
    task = env.task(KEY)
    state, _ = env.reset(task, KEY)
    program = str(jax.make_jaxpr(env.step)(task, state, jnp.int32(0), KEY))
    assert "random_bits" in program
    for slow in ("scan", "while", "cond", "scatter", "gather", "sort", "dynamic_slice", "cumsum"):
        assert slow not in program, slow
    assert program.count("random_bits[") == 1


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("asterix?rules=atari", "the rules are minatar or gymnax"),
        ("breakout?rules=gymnax", "minatar/breakout has no rules=gymnax"),
    ],
)
def test_rules_are_the_references_or_gymnaxs(name, says):
    with pytest.raises(idrl.IdrlError, match=says):
        make_env(f"minatar/{name}")
    assert type(make_env("minatar/asterix?rules=gymnax")) is GymnaxGame


@pytest.mark.parametrize("limit", ["-1", "1.5", "none"])
def test_a_limit_is_a_number_of_frames(limit):
    with pytest.raises(idrl.IdrlError, match="number"):
        make_env(f"minatar/breakout?limit={limit}")


def test_names_in_folders_of_before_say_their_limit_today():
    told = {
        "minatar/breakout": "minatar/breakout?limit=1000",
        "minatar/freeway": "minatar/freeway?limit=2500",
        "minatar/breakout?sticky=0": "minatar/breakout?sticky=0&limit=1000",
        "minatar/breakout?limit=7": "minatar/breakout?limit=7",
        "minatar/asterix?sticky=0": "minatar/asterix?sticky=0&limit=1000&rules=gymnax",
        "minatar/seaquest?limit=7": "minatar/seaquest?limit=7&rules=gymnax",
        "cartpole": "cartpole",
    }
    for before, today in told.items():
        assert in_todays_words({"env": before, "seed": 3}, 1) == {"env": today, "seed": 3}
        assert in_todays_words({"env": before}, FORMAT) == {"env": before}


def test_names_in_folders_of_before_say_whose_rules_they_had():
    told = {
        "minatar/breakout": "minatar/breakout",
        "minatar/asterix": "minatar/asterix?rules=gymnax",
        "minatar/asterix?limit=1000": "minatar/asterix?limit=1000&rules=gymnax",
        "minatar/asterix?rules=gymnax": "minatar/asterix?rules=gymnax",  # resumed since
    }
    for before, today in told.items():
        assert in_todays_words({"env": before}, 2) == {"env": today}
        assert in_todays_words({"env": before}, FORMAT) == {"env": before}


def test_models_studies_and_configs_of_before_keep_their_rules(tmp_path, monkeypatch):
    config, today = resolve("dqn", "minatar/asterix"), "minatar/asterix?rules=gymnax"
    written = to_dict(config)
    agent = make_agent(config.spec, (10, 10, 4), 5)
    weights = jax.tree.map(lambda x: np.zeros(x.shape, np.float32), shapes(agent))
    job = Job("one", "dqn", config.env, 0, 1, config.training.steps, {}, written)
    data = {"agents": ["dqn"], "envs": [config.env]}
    for version, name in ((1, today), (2, config.env)):
        where = tmp_path / str(version)
        where.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(policy, "MODEL_FORMAT", version)
            policy.Policy(config, agent, *weights, 0).save(where / "model.safetensors")
            patch.setattr(studies, "FORMAT", version)
            studies.StudyFolder.create(str(where / "study"), data, "study", [job])
        assert idrl.load(where / "model").config.env == name
        study = studies.StudyFolder.open(str(where / "study"))
        (kept,) = study.jobs.values()
        assert (kept.env, kept.config["env"]) == (name, name)
        assert study.study.groups[0].envs == (name,)  # what a search makes its trials of
        (where / "config.toml").write_text(tomli_w.dumps(written))
        assert resolve(None, None, file=read_config(where / "config.toml")).env == config.env
        (where / "run.json").write_text(f'{{"format": {version + 1}}}')
        (where / "own.toml").write_text(tomli_w.dumps(written))
        assert resolve(None, None, file=read_config(where / "own.toml")).env == config.env
        assert resolve(None, None, file=read_config(where / "config.toml")).env == name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "version", "today"),
    [("breakout", 1, "breakout?limit=5"), ("asterix", 2, "asterix?rules=gymnax")],
)
def test_a_run_of_before_keeps_its_limit_and_its_rules(
    before, version, today, tmp_path, monkeypatch
):
    """Its name does not say it: what is resumed is what it would have been, bit for bit."""
    monkeypatch.setattr("idrl.storage.older._LIMIT", 5)  # no ball is down so soon
    few = {
        "trunk": {"channels": 1}, "heads": {"q": {"hidden": [2]}},
        "learning": {"learning_starts_steps": 20, "update_every_steps": 4, "batch_size": 2,
                     "replay_capacity": 50, "target_every_steps": 20},
        "training": {"distributions_every_steps": 0, "log_every_steps": 20},
        "evaluation": {"every_steps": 40, "steps": 20, "envs": 1},
    }  # fmt: skip
    before, today = f"minatar/{before}", f"minatar/{today}"
    whole = idrl.train("dqn", today, steps=80, settings=few, out=tmp_path / "whole")
    old = idrl.train("dqn", today, steps=40, settings=few, out=tmp_path / "old").path
    about = json.loads((old / "run.json").read_text())
    (old / "run.json").write_text(json.dumps(about | {"format": version}))
    config = (old / "config.toml").read_text()
    (old / "config.toml").write_text(config.replace(today, before))
    for place in checkpoint.listed(old / "checkpoints"):
        path = place / checkpoint.MANIFEST
        manifest = json.loads(path.read_text())
        manifest["meta"]["config"]["env"] = before
        del manifest["check"]  # as the first had none
        path.write_text(json.dumps(manifest))
    played = idrl.evaluate(old, episodes=2)
    again = idrl.train(resume=old, steps=80)
    assert again.config.env == today
    if version == 1:
        assert played.length_mean.tolist() == [5.0]
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


def play_at_random(game, goes_on, episodes, frames=1_000):
    """Sums over each episode: its frames, its rewards, the cells of each channel that were on."""
    env = make_env(f"minatar/{game}")
    task = env.task(KEY)

    def episode(key):
        def frame(carry, t):
            state, playing = carry
            action_key, step_key = jax.random.split(jax.random.fold_in(key, t))
            action = jax.random.randint(action_key, (), 0, env.num_actions)
            state, seen = env.step(task, state, action, step_key)
            cells = seen.obs.sum((0, 1)).astype(jnp.float32)
            counted = jnp.concatenate([jnp.stack([1.0, seen.reward]), cells]) * playing
            return (state, playing & (goes_on | ~seen.terminated)), counted

        start = (env.reset(task, key)[0], jnp.bool_(True))
        return jax.lax.scan(frame, start, jnp.arange(frames))[1].sum(0)

    return np.asarray(jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(1), episodes)))


@pytest.mark.slow
@pytest.mark.parametrize("play", ["ends", "goes_on"])
@pytest.mark.parametrize("game", OURS)
def test_random_play_is_that_of_the_reference(game, play):
    """Which was recorded by `benchmarks/minatar_reference.py`."""
    with open(Path(__file__).parent / "data" / "minatar_reference.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["game"], row["play"]) == (game, play)]
    ours = play_at_random(game, play == "goes_on", 4_000 if play == "ends" else 400)
    assert ours.shape[1] == len(rows)
    errors = ours.std(0, ddof=1) / len(ours) ** 0.5
    for row, mean, error in zip(rows, ours.mean(0), errors, strict=True):
        spread = (error**2 + float(row["error"]) ** 2) ** 0.5
        assert abs(mean - float(row["mean"])) <= 4 * spread, row["counted"]
