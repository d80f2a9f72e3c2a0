"""A plain install, tried as a new user would: python tests/smoke.py

Installs the package without extras into an empty environment in a temporary folder, then, with
nothing of this checkout on its path, trains an agent on one task of every family that
`idrl.envs.families` names, uses every command once, and asks for what needs an extra, which has to
be refused in a sentence. Prints a table; fails where anything fails, and where a family is not in
the lists below. Development tools bring packages that a plain install does not have, so no other
test sees what is missing. Needs the standard library alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ("src", "pyproject.toml", "README.md", "LICENSE")  # all that a wheel is made of

TASKS = {  # of each family: an agent and a task
    "deep_sea": ("c51-ids", "deep_sea/5"),
    "maze": ("dqn", "maze/3"),
    "grid": ("dqn-ids", "grid/traps"),
    "noisy_push": ("td3", "noisy_push/5"),
    "noisy_chain": ("dqn", "noisy_chain/4"),
    "hetero": ("qr-dqn", "hetero/rewards"),
    "minatar": ("dqn", "minatar/breakout"),
    "cartpole": ("dqn", "cartpole"),
    "acrobot": ("dqn", "acrobot"),
    "mountain_car": ("dqn", "mountain_car"),
    "pendulum": ("ddpg", "pendulum"),
    "mountain_car_continuous": ("ddpg", "mountain_car_continuous"),
    "reacher": ("ddpg", "reacher"),
    "bsuite": ("dqn", "bsuite/catch"),
    "gymnax": ("dqn", "gymnax/Catch-bsuite"),
    "gym": ("dqn", "gym/CartPole-v1"),
}
MORE = {"gym, continuous": ("ddpg", "gym/Pendulum-v1")}
EXTRAS = {  # what a plain install has not: a command, and the extra that its refusal names
    "atari": ("train dqn atari/pong", "idrl[atari]"),
    "brax": ("train td3 brax/ant", "idrl[brax]"),
    "box2d": ("train dqn gym/LunarLander-v3", "idrl[box2d]"),
    "mujoco": ("train td3 gym/HalfCheetah-v5", "idrl[mujoco]"),
    "tensorboard": ("train dqn cartpole --tensorboard", "idrl[tensorboard]"),
    "wandb": ("train dqn cartpole --wandb", "idrl[wandb]"),
    "video": ("play deep_sea --video film.mp4", "idrl[video]"),
    "ray": ("sweep study.toml --engine ray", "idrl[sweep]"),
    "onnx": ("export deep_sea policy.onnx", "idrl[onnx]"),
    "stablehlo": ("export deep_sea policy.stablehlo", "idrl[stablehlo]"),
}
COMMANDS = {  # on the run that `deep_sea` left
    "evaluate": "evaluate deep_sea --episodes 10",
    "explain": "explain deep_sea --step 2",
    "play": "play deep_sea",
    "demo": "demo --out demo",
    "report": "report deep_sea pendulum -o report",
    "compare": "compare deep_sea deep_sea",
    "list": "list",
    "paper": "paper",
    "bandit": "bandit",
    "sweep": "sweep study.toml --out study",
}
LONG = ("demo",)  # trains for as long as it takes: worth compiling well
STUDY = """
agents = ["dqn"]
envs = ["deep_sea/4"]
seeds = 1
[settings]
training.steps = 200
"""
STEPS = 300
SMALL = (
    "learning.learning_starts_steps=100", f"evaluation.every_steps={STEPS}", "evaluation.steps=100",
    "training.distributions_every_steps=0",
)  # fmt: skip


class Done(NamedTuple):
    what: str
    command: str
    seconds: float
    trouble: str  # empty where all is well


class Place:
    """An empty environment with the package in it, and a folder to work in."""

    def __init__(self, folder: Path):
        self.bin, self.work = folder / "env" / "bin", folder / "work"
        self.work.mkdir()
        (self.work / "study.toml").write_text(STUDY)
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("PYTHON", "VIRTUAL_ENV"))}
        self.environ = kept | {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XLA_FLAGS": "--xla_backend_optimization_level=0",  # most of the time is compiling
        }
        source = folder / "source"  # pip builds in the source: a copy, without what lies around
        source.mkdir()
        for name in PACKAGE:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, source / name)
        venv.create(folder / "env", with_pip=True)
        pip = [
            self.bin / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        subprocess.run(
            [*pip, "-c", ROOT / "constraints.txt", source], cwd=self.work, check=True,
            env=kept,
        )  # fmt: skip

    def families(self) -> set[str]:
        code = "from idrl.envs import families, family_of; print(*map(family_of, families()))"
        done = subprocess.run(
            [self.bin / "python", "-c", code], cwd=self.work, env=self.environ, check=True,
            text=True, capture_output=True,
        )  # fmt: skip
        return set(done.stdout.split())

    def idrl(self, what: str, command: str, refusal: str = "") -> Done:
        """Run a command; `refusal` is a word of the sentence that it has to be refused with."""
        began, environ = time.monotonic(), dict(self.environ)
        if what in LONG:
            del environ["XLA_FLAGS"]
        done = subprocess.run(
            [self.bin / "idrl", *command.split()], cwd=self.work, env=environ, text=True,
            capture_output=True,
        )  # fmt: skip
        seconds = time.monotonic() - began
        said = done.stderr.strip() or done.stdout.strip()
        trouble = ""
        if done.returncode != (2 if refusal else 0):
            trouble = f"exit status {done.returncode}: {said[-600:]}"
        elif refusal and (refusal not in said or len(said.splitlines()) > 1):
            trouble = f"not one sentence that names {refusal}: {said[-600:]}"
        return Done(what, command, seconds, trouble)

    def train(self, what: str, agent: str, task: str) -> Done:
        out = what.replace(", ", "-")
        small = " ".join(SMALL)
        return self.idrl(what, f"train {agent} {task} --steps {STEPS} --out {out} --set {small}")


def missing(families: set[str]) -> list[Done]:
    unknown = families - set(TASKS) - set(EXTRAS)
    return [Done(name, "", 0.0, "no task of this family is tried") for name in sorted(unknown)]


def main() -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="idrl-smoke-") as folder:
        place = Place(Path(folder))
        installed = time.monotonic() - began
        rows = missing(place.families())
        with ThreadPoolExecutor(os.cpu_count()) as several:
            trained = several.map(lambda job: place.train(job[0], *job[1]), (TASKS | MORE).items())
            rows += list(trained)
            used = several.map(lambda job: place.idrl(*job), COMMANDS.items())
            refused = several.map(lambda job: place.idrl(job[0], *job[1]), EXTRAS.items())
            rows += [*used, *refused]
    for row in rows:
        print(f"{row.what:24s} {row.seconds:5.1f} s  {row.trouble or 'ok'}")
    failed = [row for row in rows if row.trouble]
    for row in failed:
        print(f"failed: idrl {row.command}")
    print(
        f"{len(rows) - len(failed)} of {len(rows)} work after a plain install "
        f"({installed:.0f} s to install, {time.monotonic() - began:.0f} s in all)"
    )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
