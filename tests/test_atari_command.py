"""What `idrl train … atari/GAME` refuses, estimates and shows; no emulator is needed for it."""

import io
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tomli_w
from rich.console import Console
from run_folders import made_up_run

import idrl
from idrl.agents import Agent
from idrl.cli.app import main, parser
from idrl.config import RunConfig, resolve
from idrl.envs import HostEnv
from idrl.envs.families.atari.env import AtariEnv
from idrl.runs import api, evaluating, loading, sizing
from idrl.runs.display import LiveDisplay
from idrl.runs.session import prepare_memory
from idrl.schema import build, flat
from idrl.system import devices
from idrl.training.evaluation import Score
from idrl.training.hosted.program import Hosted


class Stacked(HostEnv):
    """What the estimates ask of a game."""

    name, num_actions, obs_shape, obs_dtype, masked, stack = (
        "atari/pong", 18, (84, 84, 4), np.uint8, False, 4,
    )  # fmt: skip


def sized(agent="c51-ids", preset="paper", **training):
    config = resolve(agent, "atari/pong", named=preset, changes=[{"training": training}])
    return Agent(config.spec, (84, 84, 4), 18), config


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "dqn", "deep_sea/4", "--preset", "sticky"], "others are for atari/"),
        (["train", "dqn", "atari/pong", "--preset", "papers"], "did you mean 'paper'?"),
        (["train", "dqn", "deep_sea/4", "--frames", "1M"], "use --steps"),
        (["train", "dqn", "atari/pong", "--frames", "1M", "--steps", "5"], "omit one"),
        (["train", "dqn", "atari/pong", "--frames", "0"], "not a positive number"),
        (["train", "dqn", "atari/pong?"], "options are written ?option=value"),
        (["train", "dqn", "atari/pong?sticky=0&sticky=1"], "has an option twice"),
        (["train", "dqn", "atari/pong?life_loss=0&life_loss=0", "--preset", "sticky"], "twice"),
        (["train", "dqn", "--steps", "5", "atari/pong", "x"], "what to do with 'x'"),
        (["train", "dqn", "deep_sea/4", "--envs", "0"], "not a positive number"),
        (["train", "--resume", "x", "--preset", "paper"], "keeps its settings"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    arguments, says, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_options_may_stand_between_agent_and_environment():
    for words in (
        ["c51-ids", "--preset", "sticky", "atari/pong"],
        ["--preset", "sticky", "c51-ids", "atari/pong"],
        ["c51-ids", "atari/pong", "--preset", "sticky"],
    ):
        told = parser().parse_args(["train", *words])
        assert (told.agent, told.env, told.preset) == ("c51-ids", "atari/pong", "sticky")


def test_flags_reach_the_config(monkeypatch):
    told = {}

    class Enough(Exception):
        pass

    def stop(config_of_agent, config, world):
        told.update(flat(api.to_dict(config)))
        raise Enough

    monkeypatch.setattr(api, "_check_here", stop)
    with pytest.raises(Enough):
        idrl.train("dqn", "deep_sea/4", envs=3, steps=100)
    assert (told["training.envs"], told["training.steps"]) == (3, 100)


def test_a_score_is_over_frames_or_episodes(tmp_path):
    with pytest.raises(idrl.IdrlError, match="omit one"):
        idrl.evaluate("x", frames=500_000, episodes=5)
    run = made_up_run(tmp_path / "run", env="deep_sea/10")
    config = api.to_dict(resolve("dqn", "deep_sea/10"))
    (run / "config.toml").write_text(tomli_w.dumps(config))
    with pytest.raises(idrl.IdrlError, match="use --steps"):
        idrl.evaluate(run, frames=500_000)
    with pytest.raises(idrl.IdrlError, match="begun without --deterministic"):
        idrl.train(resume=run, deterministic=True)


def test_a_score_over_frames_in_which_nothing_ends_is_none(monkeypatch, capsys):
    run = SimpleNamespace(config=resolve("dqn", "atari/pong"), seeds=range(2), deterministic=False)
    nan = float("nan")
    score = Score(*(np.array(x) for x in ([3.0, nan], [1.0, nan], [4, 0], [7.0, nan], [3, 0])), {})
    monkeypatch.setattr(loading, "open_agent", lambda path: run)
    monkeypatch.setattr(api, "evaluate", lambda run, **how: score)
    assert main(["evaluate", "x", "--frames", "100"]) == 0
    told = capsys.readouterr().out
    assert "no episode ended" in told
    assert "3 of 4" in told
    assert "nan" not in told


def test_a_preset_needs_a_name():
    with pytest.raises(idrl.IdrlError, match="give env as a name"):
        idrl.train("dqn", Stacked(), preset="sticky")


def test_the_replay_of_a_stack_counts_single_frames():
    agent, config = sized()
    needs = sizing.needs(agent, config, Stacked())
    assert needs["learning.replay_capacity"] == 1_000_000 * (84 * 84 + 16)
    assert sum(needs.values()) < 12 * 2**30


def test_too_little_memory_says_what_would_fit(monkeypatch):
    agent, config = sized()
    monkeypatch.setattr(sizing, "memory", lambda: 4_000_000_000)
    with pytest.raises(idrl.IdrlError, match=r"--set learning.replay_capacity=\d+ would fit") as e:
        sizing.check_memory(agent, config, Stacked())
    capacity = int(str(e.value).split("replay_capacity=")[1].split()[0])
    smaller = resolve(
        "c51-ids", "atari/pong", changes=[{"learning": {"replay_capacity": capacity}}]
    )
    assert 300_000 < capacity < 570_000
    sizing.check_memory(agent, smaller, Stacked())
    sizing.check_memory(agent, config, Stacked(), playing=True)  # scores need no frames


def test_without_a_gpu_one_line_says_how_long(monkeypatch):
    monkeypatch.setattr(sizing, "cores", lambda: 2)
    told = sizing.without_gpu(*sized())
    assert told.startswith("no GPU was found: 200M frames take roughly 1")
    assert "days on 2 CPU cores; --frames 1M takes 2 hours" in told
    assert sizing.without_gpu(*sized(steps=1_000)) is None
    longer, shorter = (sizing.step_seconds(*sized(name)) for name in ("iqn-ids", "dqn"))
    assert longer > sizing.step_seconds(*sized()) > shorter
    monkeypatch.setattr(sizing.jax, "default_backend", lambda: "gpu")
    assert sizing.without_gpu(*sized()) is None


def test_a_run_that_ends_before_it_learns_is_told_so():
    said = sizing.too_short(sized(steps=250)[1])
    assert said.startswith("learning starts after 200,192 random frames, and --frames is 1,000")
    assert "makes 200,448 frames and 16 updates" in said  # a whole vector step, and one more
    assert "--frames of more than 200,192" in said
    assert sizing.too_short(sized(steps=50_048)[1]) is not None
    assert sizing.too_short(sized(steps=50_049)[1]) is None
    said = sizing.too_short(
        resolve("dqn", "minatar/breakout", changes=[{"training": {"steps": 100}}])
    )
    assert said.startswith("learning starts after 5,000 random steps, and --steps is 100: the run")
    assert "makes 5,001 steps and 1 update, " in said


@pytest.mark.parametrize("length", [["--steps", "15"], ["--set", "training.steps=15"]])
def test_a_short_run_says_so_before_it_trains(length, tmp_path, capsys, monkeypatch):
    def begin(*_, **__):
        raise idrl.IdrlError("begun.")

    monkeypatch.setattr(api, "_go", begin)
    arguments = ["train", "dqn", "deep_sea/4", "--out", str(tmp_path / "run"), *length]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("idrl: learning starts after 40 random steps")
    assert "begun" in error
    assert main([*arguments[:-2], "--steps", "41"]) == 2
    assert "learning starts" not in capsys.readouterr().err


def test_deterministic_is_said_before_jax_starts():
    script = (
        "import os; from idrl.system import devices; devices.prepare(True); import jax; "
        "jax.devices(); print(os.environ['XLA_FLAGS'], devices._started(), len(jax.devices()))"
    )
    env = {**os.environ, "XLA_FLAGS": "--xla_cpu_enable_fast_math=false", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    flags = "--xla_cpu_enable_fast_math=false --xla_gpu_deterministic_ops=true"
    assert done.stdout.strip() == f"{flags} True {devices.cores()}", done.stderr


@pytest.mark.parametrize(
    ("trained", "flags", "asked"),
    [(False, [], False), (False, ["--deterministic"], True), (True, [], True)],
)
def test_an_evaluation_is_deterministic_where_it_is_asked_or_the_run_was(
    trained, flags, asked, tmp_path, capsys, monkeypatch
):
    told = []
    monkeypatch.setattr(
        evaluating, "prepare", lambda deterministic=False: told.append(deterministic)
    )
    run = made_up_run(tmp_path / "run", env="deep_sea/10")
    (run / "config.toml").write_text(tomli_w.dumps(api.to_dict(resolve("dqn", "deep_sea/10"))))
    about = json.loads((run / "run.json").read_text()) | {"deterministic": trained}
    (run / "run.json").write_text(json.dumps(about))
    assert main(["evaluate", str(run), *flags]) == 2
    assert "no weights to load" in capsys.readouterr().err
    assert told == [True] * asked, "before anything is computed"


def test_compiled_programs_are_kept_only_where_they_can_be(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert devices._cache() == tmp_path / "cache/idrl/xla"
    with monkeypatch.context() as read_only:
        read_only.setattr(os, "access", lambda path, mode: False)
        assert devices._cache() is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert devices._cache() is None

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(devices.Path, "home", homeless)
    assert devices._cache() is None


def test_deterministic_too_late_is_refused_on_a_gpu(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(devices, "_started", lambda: True)
    monkeypatch.setattr(devices.jax, "default_backend", lambda: "gpu")
    with pytest.raises(idrl.IdrlError, match="before JAX is first used"):
        devices.prepare(deterministic=True)
    assert os.environ["XLA_FLAGS"] == ""


@pytest.mark.parametrize(
    ("env", "own", "asked"),
    [("atari/pong", {}, 2), ("atari/pong", {"MALLOC_ARENA_MAX": "2"}, 0), ("cartpole", {}, 0)],
)
def test_freed_memory_is_kept_where_programs_are_large(monkeypatch, env, own, asked):
    calls, told = [], []
    malloc = SimpleNamespace(mallopt=lambda *given: calls.append(given))
    monkeypatch.setattr(devices.ctypes, "CDLL", lambda name: malloc)
    monkeypatch.setattr(devices.sys, "platform", "linux")
    monkeypatch.setattr(devices.os, "environ", own)
    monkeypatch.setattr(devices.jax.config, "update", lambda *given: told.append(given))
    prepare_memory(resolve("dqn", env))
    assert len(calls) == asked
    assert told == [("jax_cpu_enable_async_dispatch", False)] * bool(asked)


def test_games_get_new_seeds_at_every_sixth_evaluation_or_as_their_run_began():
    def every(config):
        program = SimpleNamespace(training=config.training, env=AtariEnv)
        return Hosted.reseed_every.fget(program)

    now = resolve("dqn", "atari/pong")
    assert every(now) == 6
    before = api.to_dict(now)
    del before["training"]["reseed_every"]  # as run folders have it that were made before
    assert every(build(RunConfig, before)) == 10
    with pytest.raises(idrl.IdrlError, match="a number of evaluations, or 0"):
        resolve("dqn", "atari/pong", changes=[{"training": {"reseed_every": -1}}])


def test_atari_is_shown_in_frames():
    console = Console(file=io.StringIO(), width=200)
    display = LiveDisplay(console)
    score = SimpleNamespace(
        return_mean=np.array([1.0]), episodes=np.array([3]), truncated=np.array([2])
    )
    progress = SimpleNamespace(
        steps=250_000, episodes=SimpleNamespace(returns=np.array([2.0])), metrics=None, score=score,
        alive=np.array([True]), scored=SimpleNamespace(steps=250_000, alive=[True]),
    )  # fmt: skip
    display.update(progress, sized()[1])
    assert "1,000,000 frames" in console.file.getvalue()
    assert "evaluation 1, 2 of 3 episodes at the time limit" in console.file.getvalue()
    assert "frames/s" in console.file.getvalue()
