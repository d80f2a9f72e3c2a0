"""Python's development mode, with every warning an error: we make none, and leave nothing open."""

import subprocess
import sys

from driver import SMALL

STRICT = [sys.executable, "-X", "dev", "-W", "error"]


def run(folder, *arguments):
    done = subprocess.run(
        [*STRICT, *arguments], cwd=folder, capture_output=True, text=True, timeout=600
    )
    told = [line for line in done.stderr.splitlines() if not line.startswith(("W0", "I0", "E0"))]
    return done.returncode, told


def test_the_command_line(tmp_path, tally):
    commands = [
        ["train", "dqn", "deep_sea/4", "--steps", "300", "--out", "compiled", *SMALL],
        ["train", "dqn", "gym/CartPole-v1", "--steps", "300", "--out", "hosted", *SMALL],
        ["train", "--resume", "compiled", "--steps", "350"],
        ["train", "--resume", "hosted", "--steps", "350"],
        ["evaluate", "compiled", "--episodes", "3"],
        ["evaluate", "hosted", "--episodes", "3"],
        ["report", "compiled", "hosted", "-o", "report"],
        ["play", "compiled"],
    ]
    for command in commands:
        assert run(tmp_path, "-m", "idrl.cli", *command) == (0, []), command
    tally("warnings made errors", len(commands), len(commands))


LEAVES = """
import gc, os, threading
import jax.numpy as jnp
import idrl
from idrl.report.writing import make_report

def held():
    gc.collect()
    return len(os.listdir("/proc/self/fd")), sorted(t.name for t in threading.enumerate())

settings = [s for s in {settings!r} if s != "--set"]
found = []
for turn in range(3):
    for env in ("deep_sea/4", "gym/CartPole-v1"):
        run = idrl.train("dqn", env, steps=250, settings=settings, out=f"run-{{turn}}-{{env[:3]}}")
        idrl.evaluate(run, episodes=2)
        idrl.load(run).save("model.safetensors")
        make_report([run.path], f"report-{{turn}}-{{env[:3]}}")
    found.append(held())
assert found[1] == found[2], found
assert "MainThread" in found[2][1]
"""


def test_no_file_and_no_thread_is_left_behind(tmp_path, tally):
    assert run(tmp_path, "-c", LEAVES.format(settings=SMALL)) == (0, [])
    tally("files and threads left open", 1, 1)
