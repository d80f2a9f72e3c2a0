"""examples/plugin as its reader would use it: parts of every kind from a package of one's own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from idrl.storage import checkpoint

HOUSE = Path(__file__).parents[2]
PLUGIN = HOUSE / "examples" / "plugin"
SHORT = ["--steps", "1200", "--seeds", "2"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A copy of the package, in a folder where one works, and a user of its own."""
    place = tmp_path_factory.mktemp("work")
    shutil.copytree(PLUGIN, place, dirs_exist_ok=True)
    return place


def start(place, *command, **how):
    env = os.environ | {"XDG_CONFIG_HOME": str(place / "config")}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "idrl.cli", *command], cwd=place, env=env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how,
    )  # fmt: skip


def idrl(place, *command):
    process = start(place, *command)
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    return out + error


@pytest.fixture(scope="module")
def run(place):
    command = ("train", "hopeful-boltzmann", "corridor/6?slip=0.1", "--plugin", "idrl_corridor")
    idrl(place, *command, *SHORT, "--out", "run")
    return place / "run"


def test_it_trains_with_what_it_declares_and_is_known_afterwards(place, run):
    config = (run / "config.toml").read_text()
    for line in ('kind = "fourier"', 'kind = "expectile"', 'kind = "boltzmann"', 'kind = "sgd"'):
        assert line in config
    assert "batch_size = 32" in config
    assert "entropy" in (run / "metrics.csv").read_text().splitlines()[0].split(",")
    about = json.loads((run / "run.json").read_text())
    assert "idrl_corridor" in [plugin["name"] for plugin in about["plugins"]]
    assert "loading the plugin 'idrl_corridor'" in idrl(place, "evaluate", "run")
    idrl(place, "explain", "run")
    idrl(place, "play", "run")
    assert "corridor/N" in idrl(place, "list", "--plugin", "idrl_corridor")


def test_it_goes_on_after_kill_9_to_the_bit(place, run):
    process = start(
        place, "train", "hopeful-boltzmann", "corridor/6?slip=0.1", "--plugin", "idrl_corridor",
        *SHORT, "--out", "killed",
    )  # fmt: skip
    end = time.monotonic() + 120
    while not checkpoint.listed(place / "killed" / "checkpoints"):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    idrl(place, "train", "--resume", "killed")
    for name in ("metrics.csv", "evaluations.csv", "episodes.csv"):
        assert (place / "killed" / name).read_bytes() == (run / name).read_bytes(), name
    ours, theirs = (checkpoint.newest(p / "checkpoints")[0] for p in (place / "killed", run))
    assert (ours / checkpoint.ARRAYS).read_bytes() == (theirs / checkpoint.ARRAYS).read_bytes()


def test_a_study_of_two_processes_knows_it(place):
    study = (place / "study.toml").read_text() + "steps = 400\n"
    (place / "short.toml").write_text(study)
    told = idrl(
        place, "sweep", "short.toml", "--plugin", "idrl_corridor", "--engine", "processes",
        "--out", "study",
    )  # fmt: skip
    assert "runs done, 0 ended early, 0 set aside" in told
    for path in (place / "study" / "runs").iterdir():
        names = [
            plugin["name"] for plugin in json.loads((path / "run.json").read_text())["plugins"]
        ]
        assert "idrl_corridor" in names
    idrl(place, "sweep", "--resume", "study")  # remembered


def test_from_python_with_a_callback(place, monkeypatch):
    code = """
import idrl, idrl_corridor
run = idrl.train("hopeful-boltzmann", "corridor/4", seeds=1, out="python",
                 callbacks=[idrl_corridor.StopWhenSolved(0.9)])
agent = idrl.load(run)
print("score", idrl.evaluate(agent, "corridor/4", episodes=5).return_mean)
print("steps", run.steps, run.config.training.steps, len(run.evaluations))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=place, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    steps, total, _ = map(int, told["steps"].split())
    assert steps < total
    assert float(told["score"]) > 0.9
