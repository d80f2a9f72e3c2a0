"""The command line as a user meets it: real processes, real folders, odd input."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from run_folders import made_up_run

import idrl
from idrl import cli
from idrl.cli.app import main
from idrl.errors import IdrlError, Interrupted
from idrl.runs import loading
from idrl.sweep.table import check_target
from idrl.system import devices

SMALL = [
    "--set", "trunk.hidden=16", "heads.q.hidden=16", "heads.q.k=3", "training.log_every_steps=50",
    "evaluation.every_steps=100", "evaluation.steps=40", "learning.learning_starts_steps=20",
]  # fmt: skip


MODEL = str(Path(__file__).parents[1] / "results/models/minatar-breakout-dqn.safetensors")


def idrl_process(*arguments, cwd, **kwargs):
    environment = os.environ | {"XDG_CACHE_HOME": str(cwd / "cache"), "COLUMNS": "200"}
    return subprocess.Popen(
        [sys.executable, "-m", "idrl.cli", *arguments],
        cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        **kwargs,
    )  # fmt: skip


def run_idrl(*arguments, cwd):
    process = idrl_process(*arguments, cwd=cwd)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def test_the_package_is_the_command():
    for name in ("idrl", "idrl.cli"):
        told = subprocess.run([sys.executable, "-m", name, "--version"], capture_output=True)
        assert told.stdout.decode().strip() == f"idrl {idrl.__version__}"


def test_a_name_that_no_folder_can_have_is_a_sentence(tmp_path):
    with pytest.raises(IdrlError, match="cannot be made"):
        idrl.train("dqn", "deep_sea/4", out=f"{tmp_path}/a\0b")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    status, out, err = run_idrl(
        "train", "dqn-ids", "deep_sea/4", "--steps", "400", "--seeds", "2", "--out", "run",
        "--tensorboard", *SMALL, cwd=folder,
    )  # fmt: skip
    assert status == 0, err
    return folder / "run", out


def rows(path: Path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_leaves_its_records(trained):
    run, out = trained
    assert "solved at episode" in out
    assert str(run.name) in out
    evaluations = rows(run / "evaluations.csv")
    wanted = {"seed", "steps", "episodes", "return_mean", "best"}
    assert wanted <= set(evaluations[0])
    assert [r["steps"] for r in evaluations if r["seed"] == "1"] == ["100", "200", "300", "400"]
    metrics = rows(run / "metrics.csv")
    assert {"loss_q", "sigma_max", "rho2_min"} <= set(metrics[0])
    episodes = rows(run / "episodes.csv")
    for seed in ("0", "1"):  # 4 steps an episode, each counted once and in order
        mine = [r for r in episodes if r["seed"] == seed]
        assert [int(r["episode"]) for r in mine] == list(range(1, 101))
        assert [int(r["steps"]) for r in mine] == list(range(4, 401, 4))
    about = json.loads((run / "run.json").read_text())
    assert about["versions"]["jax"]
    assert about["command"].startswith("python -m idrl.cli train ")
    assert "deep_sea/4" in about["command"]
    assert (run / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert list((run / "tensorboard").glob("seed-*/events*"))
    assert not list(run.rglob(".draft*"))


@pytest.mark.slow
def test_the_config_of_a_run_repeats_it(trained, tmp_path):
    run, _ = trained
    status, _, err = run_idrl(
        "train", "--config", str(run / "config.toml"), "--out", "again", cwd=tmp_path
    )
    assert status == 0, err
    for name in ("evaluations.csv", "episodes.csv", "metrics.csv", "distributions.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (run / name).read_bytes()


def test_killed_and_resumed_equals_uninterrupted(trained, tmp_path):
    """kill -9 between checkpoints; the resumed run ends with the same bits everywhere."""
    run, _ = trained
    arguments = ["train", "--config", str(run / "config.toml"), "--out", "victim"]
    process = idrl_process(*arguments, cwd=tmp_path)
    checkpoints = tmp_path / "victim" / "checkpoints"
    deadline = time.monotonic() + 200
    while len(list(checkpoints.glob("step-*"))) < 1 and time.monotonic() < deadline:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    # what a dying process may leave behind: half a row, half a checkpoint
    victim = tmp_path / "victim"
    with open(victim / "metrics.csv", "a") as file:
        file.write("1,9999,0.")
    (checkpoints / ".draft-1").mkdir()
    (checkpoints / ".draft-1" / "state.safetensors").write_bytes(b"half")
    status, _, err = run_idrl("train", "--resume", "victim", cwd=tmp_path)
    assert status == 0, err
    for name in ("evaluations.csv", "episodes.csv", "metrics.csv", "distributions.csv"):
        assert (victim / name).read_bytes() == (run / name).read_bytes(), name
    newest = "step-000000000400/state.safetensors"
    assert (checkpoints / newest).read_bytes() == (run / "checkpoints" / newest).read_bytes()


@pytest.mark.slow
def test_killed_before_the_first_checkpoint_starts_again(trained, tmp_path):
    run, _ = trained
    process = idrl_process(
        "train", "--config", str(run / "config.toml"), "--out", "victim", cwd=tmp_path
    )
    while not (tmp_path / "victim" / "config.toml").exists():
        time.sleep(0.002)
    process.kill()
    process.communicate()
    status, _, err = run_idrl("train", "--resume", "victim", cwd=tmp_path)
    assert status == 0, err
    again = tmp_path / "victim" / "evaluations.csv"
    assert again.read_bytes() == (run / "evaluations.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_first_and_says_how_to_go_on(tmp_path, number):
    process = idrl_process(
        "train", "dqn-ids", "deep_sea/4", "--steps", "2M", "--out", "run", *SMALL, cwd=tmp_path
    )
    while not (tmp_path / "run" / "metrics.csv").exists():
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "idrl train --resume run" in out
    assert list((tmp_path / "run" / "checkpoints").glob("step-*"))


WAYS = {  # to be interrupted, in the place of a command
    "where exceptions are lost": "gc.callbacks.append(lambda *_: interrupt()); gc.collect()",
    "in an import": "import tried",
    "in text that is executed": "exec('interrupt()')",
}


def interrupted(way, cwd, before="default_int_handler"):
    """How a process ends whose command is `way`, and then sleeps."""
    (cwd / "tried.py").write_text(
        "import __main__\ntry:\n    __main__.interrupt()\nexcept KeyboardInterrupt:\n    pass\n"
    )
    (cwd / "process.py").write_text(
        "import gc, signal, sys, time\nimport idrl.cli, idrl.cli.app\n"
        f"signal.signal(signal.SIGINT, signal.{before})\n"
        "def interrupt():\n    signal.raise_signal(signal.SIGINT)\n"
        f"def command(arguments, console):\n    {way}\n    time.sleep(2)\n    return 0\n"
        "idrl.cli.app._run = command\nsys.exit(idrl.cli.main())\n"
    )
    line = [sys.executable, "-m", "process"]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True)


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_ends_a_command_without_a_word(way, tmp_path):
    ended = interrupted(WAYS[way], tmp_path)
    assert (ended.returncode, ended.stderr) == (130, "")


def test_a_process_that_was_started_to_ignore_ctrl_c_ignores_it(tmp_path):
    ended = interrupted("interrupt()", tmp_path, before="SIG_IGN")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("steps", "told"), [(None, "it begins again when resumed."), (5, "nothing is lost.")]
)
def test_what_ctrl_c_loses_is_told(steps, told):
    assert str(Interrupted(Path("run"), steps)).endswith(told)


def test_windows_is_told_what_to_use(monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "win32")
    assert cli.main(["list"]) == 2
    assert capsys.readouterr().err == ("idrl: training needs Linux or macOS; on Windows use WSL.\n")


def test_the_command_to_go_on_with_is_quoted_and_on_one_line(monkeypatch, capsys):
    def interrupted(**how):
        raise Interrupted(Path("a folder" * 20), 5)

    monkeypatch.setattr("idrl.runs.api.train", interrupted)
    assert main(["train", "dqn", "deep_sea/4"]) == 130
    assert f"idrl train --resume '{'a folder' * 20}'\n" in capsys.readouterr().out


def test_evaluate_and_explain(trained, capsys):
    run, _ = trained
    assert main(["evaluate", str(run), "--episodes", "5"]) == 0
    assert "95% bootstrap interval over seeds" in capsys.readouterr().out
    assert main(["explain", str(run), "--step", "1"]) == 0
    out = capsys.readouterr().out
    assert all(symbol in out for symbol in ("μ", "σ", "ρ²", "→"))
    assert (run / "explain.png").read_bytes().startswith(b"\x89PNG")


def test_evaluate_is_made_deterministic_before_a_model_is_loaded(monkeypatch):
    """Loading one uses JAX, and then it is too late."""
    called = []

    def note(name):
        called.append(name)
        raise IdrlError("enough")

    monkeypatch.setattr(devices, "prepare", lambda **how: called.append(how))
    monkeypatch.setattr(loading, "open_agent", note)
    assert main(["evaluate", "model", "--deterministic"]) == 2
    assert called == [{"deterministic": True}, "model"]


def test_list_names_everything(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    for name in ("c51-ids", "bootstrapped-dqn", "deep_sea", "cartpole", "thompson"):
        assert name in out
    assert main(["list", "rules"]) == 0
    assert "cartpole" not in capsys.readouterr().out


def test_load_predicts_and_explains(trained):
    run, _ = trained
    agent = idrl.load(run)
    obs = np.eye(4, dtype=np.float32)[0][:, None] * np.eye(4)[0]
    action = agent.predict(obs)
    assert isinstance(action, np.integer)
    assert action.shape == ()
    batch = agent.predict(np.stack([obs] * 3))
    assert batch.tolist() == [int(action)] * 3
    decision = agent.explain(obs)
    assert decision.mu.shape == (2,)
    assert int(decision.action) == int(np.argmin(decision.ratio))
    assert idrl.load(run, seed=1, weights="latest").seed == 1
    with pytest.raises(idrl.IdrlError, match="shape"):
        agent.predict(np.zeros(7))
    with pytest.raises(idrl.IdrlError, match="seeds 0 to 1"):
        idrl.load(run, seed=9)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "c51-id", "deep_sea/4"], "did you mean 'c51-ids'"),
        (["train", "dqn", "deep_se/4"], "did you mean 'deep_sea/N'"),
        (["train", "dqn", "deep_sea/x"], "not a whole number"),
        (["train", "dqn", "deep_sea/4?slop=1"], "did you mean 'slip'"),
        (["train", "dqn", "deep_sea/4?slip=0.9"], "below 0.5"),
        (["train", "dqn", "gymnax/CartPol-v1"], "did you mean 'CartPole-v1'"),
        (["train", "dqn", "gymnax/Pendulum-v1"], "continuous actions"),
        (["train", "dqn", "deep_sea/4", "--stepz", "3"], "did you mean '--steps'"),
        (["train", "dqn", "deep_sea/4", "--steps", "0"], "not a positive number"),
        (["train", "dqn", "deep_sea/4", "--steps", "-5"], "not a positive number"),
        (["train", "dqn", "deep_sea/4", "--steps", "many"], "not a whole number"),
        (["train", "dqn", "deep_sea/4", "--seeds", "0"], "not a positive number"),
        (["train", "dqn", "deep_sea/4", "--seed", "-1"], "seed is -1"),
        (["train", "dqn", "deep_sea/4", "--seed", "2147483647"], "from 0 to 2147483646"),
        (["train", "dqn", "deep_sea/4", "--envs", "1e9"], "2,147,483,647: use fewer of either"),
        (["train", "dqn", "deep_sea/0"], "the size is a whole number from 2 to 200"),
        (["train", "dqn", ""], "unknown environment ''"),
        (["train", "", "deep_sea/4"], "unknown agent ''"),
        (["train", "deep_sea/4"], "'deep_sea/4' is an environment; an agent comes before it"),
        (["train", "cartpole", "dqn"], "'cartpole' is an environment; an agent comes before it"),
        (["train", "dqn-ids", "deep_sea/4", "--set", "heads.q.k=1"], "at least 2"),
        (["train", "c51-ids", "deep_sea/4", "--set", "heads.z.v_min=5"], "v_min must be"),
        (["train", "dqn", "deep_sea/4", "--set", "heads.q.kk=1"], "did you mean 'k'"),
        (["train", "dqn", "deep_sea/4", "--set", "heads.q.prior_scale=1"], "spread over heads"),
        (["train", "dqn", "deep_sea/4", "--set", "learning.replay_capacity=2"], "at least 3."),
        (["train", "dqn", "deep_sea/4", "--set", "nonsense"], "name.of.setting=value"),
        (["train", "dqn", "deep_sea/4", "--set", "trunk.kind=nature_cnn"], "needs images"),
        (["train", "dqn", "deep_sea/4", "--set", "explore.kind=idz"], "did you mean 'ids'"),
        (["train", "dqn", "deep_sea/4", "--set", "explore.kind=thompson"], "at least 2"),
        (["train", "dqn", "deep_sea/4", "--config", "nowhere.toml"], "no config file"),
        (["train", "dqn", "deep_sea/4", "--config", "broken.toml"], "not valid TOML"),
        (["train", "dqn", "deep_sea/4", "--config", "other.toml"], "is for agent 'ddqn'"),
        (["train", "dqn", "cartpole", "--steps", "9", "--set", "training.steps=5"], "omit one"),
        (["train", "dqn", "deep_sea/4", "--out", ""], "has an empty name"),
        (["train", "dqn", "deep_sea/4", "--out", "taken"], "exists already"),
        (["train", "dqn", "deep_sea/4", "--out", "leads-nowhere"], "exists already"),
        (["train", "--resume", "nowhere"], "no run folder"),
        (["train", "--resume", "taken"], "not a run folder"),
        (["train", "--resume", "taken", "--steps", "5"], "not a run folder"),
        (["train", "--resume", "taken", "--out", "x"], "stays in its folder"),
        (["evaluate", "nowhere"], "no run folder or model file 'nowhere'"),
        (["evaluate", "n" * 250], "no run folder or model file"),
        (["train", "--resume", "n" * 300], "no run folder"),
        (["evaluate", "taken"], "not a run folder"),
        (["explain", "taken"], "not a run folder"),
        (["evaluate", MODEL, "--episodes", "1e12"], "a whole number from 1 to 1000000"),
        (["explain", MODEL, "--png", "e.xyz"], "must end in .png, .svg or .pdf"),
        (["explain", MODEL, "--png", "e"], "must end in .png"),
        (["explain", MODEL, "--png", "taken"], "is a folder; name a file in it"),
        (["explain", MODEL, "--png", "none/e.png"], "no folder 'none'"),
        (["play", MODEL, "--fps", "30"], "add --video FILE"),
        (["play", MODEL, "--fps", "1000", "--video", "e.gif"], "from 1 to 100"),
        (["list", "agentz"], "invalid choice"),
        (["trian"], "invalid choice"),
        (["train", "dqn", "cartpole", "extra"], "does not know what to do with 'extra'"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(arguments, says, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "leads-nowhere").symlink_to(tmp_path / "nowhere")
    (tmp_path / "broken.toml").write_text("agent = ")
    (tmp_path / "other.toml").write_text("agent = 'ddqn'")
    before = sorted(tmp_path.rglob("*"))
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert "Traceback" not in error
    assert sorted(tmp_path.rglob("*")) == before, "nothing may be written"


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", MODEL, "--png", "e.png"], ["play", MODEL], ["play", MODEL, "--video", "e.gif"],
        ["bandit"], ["bandit", "regret"], ["report", "run"], ["export", MODEL, "e.stablehlo"],
    ],
)  # fmt: skip
def test_a_folder_that_cannot_be_written_is_refused(arguments, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_up_run(tmp_path / "run")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert main(arguments) == 2
    assert re.fullmatch(
        r"idrl: '[^']+' cannot be written: .* is not writable\.\n", capsys.readouterr().err
    )
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


def test_a_file_that_is_read_only_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("old.html").write_text("")
    Path("folder.csv").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: path != Path("old.html"))
    assert main(["play", MODEL, "--page", "old.html"]) == 2
    assert capsys.readouterr().err == "idrl: 'old.html' is read-only; name another file.\n"
    with pytest.raises(IdrlError, match="'folder.csv' is a folder"):
        check_target(Path("folder.csv"))


def test_explain_refuses_a_step_past_the_end(trained, capsys):
    run, _ = trained
    assert main(["explain", str(run), "--step", "99"]) == 2
    assert "ended after 4 steps" in capsys.readouterr().err


def test_foreign_code_cannot_end_a_command_as_if_it_were_done(monkeypatch, capsys):
    def leave(run):
        raise SystemExit(0)

    monkeypatch.setattr("idrl.runs.loading.open_agent", leave)
    assert main(["evaluate", "run"]) == 1
    assert "`idrl evaluate` is not finished: code that it called raised" in capsys.readouterr().err


def test_every_agent_and_family_resolves():
    from idrl.agents import agent_names
    from idrl.config import resolve
    from idrl.schema import build, to_dict

    for agent in agent_names():
        for env in ("deep_sea/30", "cartpole", "acrobot", "gymnax/Catch-bsuite"):
            config = resolve(agent, env)
            assert build(type(config), tomllib.loads(_toml(to_dict(config)))) == config


def _toml(data):
    import tomli_w

    return tomli_w.dumps(data)
