"""Who is compared: where each library lives, what runs it, and what it can do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".peers"  # ignored by git
PINS = Path(__file__).with_name("pins")
ALL = ("dqn", "c51", "qr-dqn", "iqn")


class Library(NamedTuple):
    environment: str  # a folder of `.peers`, with a file of pins of the same name
    worker: str
    packages: tuple[str, ...]  # whose versions are told
    algos: dict[str, tuple[str, ...]]  # by task
    own_seeds: bool = False  # many seeds in one program


LIBRARIES = {
    "rejax": Library(
        "rejax", "run_rejax", ("rejax", "gymnax", "jax"),
        {"cartpole": ("dqn", "iqn"), "cartpole-2000": ("dqn",), "breakout": ("dqn",),
         "screens": ("dqn",)}, own_seeds=True,
    ),
    "sb3": Library(
        "sb3", "run_sb3", ("stable-baselines3", "torch"), dict.fromkeys(
            ("cartpole", "breakout", "screens"), ("dqn",)
        ),
    ),
    "sb3-contrib": Library(
        "sb3", "run_sb3", ("sb3-contrib", "torch"), dict.fromkeys(
            ("cartpole", "breakout", "screens"), ("qr-dqn",)
        ),
    ),
    "sbx": Library(
        "sb3", "run_sb3", ("sbx-rl", "jax"), {"cartpole": ("dqn",), "screens": ("dqn",)}
    ),
    "tianshou": Library(
        "tianshou", "run_tianshou", ("tianshou", "torch"),
        {"cartpole": ALL, "breakout": ("dqn", "qr-dqn"), "screens": ("dqn",)},
    ),
}  # fmt: skip

# What is a dash in the tables, and why.
CANNOT = {
    "sbx": "MinAtar: its DQN has dense networks and Nature's convolutions, no smaller ones.",
    "rejax": "C51 and QR-DQN: it has DQN and IQN. IQN with convolutions: its network is an MLP.",
    "dopamine-rl 4.1.2": (
        "installs, but does not import: it wants `baselines`, which it does not ask for, and its "
        "TensorFlow Probability a JAX older than the one that its own requirements bring."
    ),
    "cleanrl 0.4.8": (
        "the newest on the package index; its scripts import `gym.wrappers.Monitor`, which the gym "
        "that installs on Python 3.11 no longer has. The scripts of its repository are no package."
    ),
}


class Missing(Exception):
    """A library that is not there, with the reason."""


def python_of(environment: str) -> Path:
    return HOME / environment / "bin" / "python"


def ask(library: str, request: dict[str, Any], **environ: str) -> list[dict[str, Any]]:
    """What a worker tells of a request."""
    return finish(start(library, request, **environ))


def start(library: str, request: dict[str, Any], **environ: str) -> subprocess.Popen:
    request = {"began": time.time(), "library": library, "threads": 1, **request}
    worker = "run_idrl"
    python, env = Path(sys.executable), os.environ | environ
    if library != "idrl":
        found = LIBRARIES[library]
        worker, python = found.worker, python_of(found.environment)
        env = {name: value for name, value in env.items() if name != "PYTHONPATH"}
        if not python.exists():
            raise Missing(f"no environment {found.environment}: make bench-setup")
    command = [str(python), "-m", f"benchmarks.peers.{worker}", json.dumps(request)]
    return subprocess.Popen(
        command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(process: subprocess.Popen) -> list[dict[str, Any]]:
    out, err = process.communicate()
    if process.returncode:
        last = (err.strip().splitlines() or ["ended without a word"])[-1]
        raise Missing(last[:200])
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def versions(library: str) -> str:
    if library == "idrl":
        names, python = ("idrl", "gymnax", "jax"), Path(sys.executable)
    else:
        names, python = LIBRARIES[library].packages, python_of(LIBRARIES[library].environment)
    code = (
        "from importlib.metadata import version as v; "
        f"print(', '.join(n + ' ' + v(n) for n in {names!r}))"
    )
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()
