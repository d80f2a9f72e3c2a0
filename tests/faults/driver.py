"""Starts runs in processes of their own, ends them, and compares what they leave behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import odd_envs  # noqa: F401  runs of its environments are read here
import zstandard

import idrl
from idrl.storage import checkpoint, segments

RECORDS = ("metrics.csv", "evaluations.csv", "episodes.csv")
MORE = "distributions.csv"  # of agents with an ensemble, or with a head for the return
SMALL = [
    "--set", "trunk.hidden=8", "heads.q.hidden=8", "learning.learning_starts_steps=20",
    "learning.replay_capacity=500", "training.log_every_steps=100", "training.envs=2",
    "learning.update_every_steps=2", "evaluation.every_steps=200", "evaluation.steps=40",
]  # fmt: skip
SETTINGS = {  # of a run of seconds within a test's own process
    "trunk": {"hidden": [8]},
    "heads": {"q": {"hidden": [8]}},
    "learning": {"learning_starts_steps": 20, "replay_capacity": 200},
    "training": {"log_every_steps": 50, "distributions_every_steps": 50},
    "evaluation": {"every_steps": 100, "steps": 20},
}
LOOPS = {  # both loops, and frames in segments; one seed and several
    "compiled-1": ["dqn", "deep_sea/4", "--steps", "4000"],
    "compiled-2": ["dqn", "deep_sea/4", "--steps", "4000", "--seeds", "2"],
    "hosted-1": ["dqn", "odd-plain", "--steps", "2000"],
    "hosted-2": ["dqn", "odd-plain", "--steps", "2000", "--seeds", "2"],
    "frames-1": ["dqn", "odd-film", "--steps", "2000"],
    "frames-2": ["dqn", "odd-film", "--steps", "2000", "--seeds", "2"],
    "atari-2": ["dqn", "odd-pong", "--steps", "600", "--seeds", "2"],
}
AGENTS = {  # whose state holds more: priorities, posteriors, several networks
    "prioritized": ["prioritized", "deep_sea/4", "--steps", "2400", "--seeds", "2"],
    "bdqn": ["bdqn", "deep_sea/4", "--steps", "2400", "--seeds", "2"],
    "iqn-ids": ["iqn-ids", "deep_sea/4", "--steps", "2400", "--seeds", "2"],
    "ddpg-ids": ["ddpg-ids", "noisy_push/3", "--steps", "1600", "--seeds", "2"],
}


class Child:
    """A run in a process of its own, as the nursery forked it."""

    def __init__(self, nursery: subprocess.Popen, folder: Path):
        self.nursery, self.folder = nursery, folder
        self.pid = self._answer()["pid"]
        self.started = time.monotonic()

    def _answer(self) -> dict:
        line = self.nursery.stdout.readline()
        assert line, "the nursery died"
        return json.loads(line)

    def signal(self, number: int = signal.SIGKILL) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self) -> int:
        self.status = self._answer()["status"]
        self.seconds = time.monotonic() - self.started
        return self.status

    @property
    def out(self) -> str:
        return (self.folder / "out").read_text()

    @property
    def said(self) -> str:
        """Sentences, without what JAX says of the machine."""
        lines = (self.folder / "err").read_text().splitlines()
        return "\n".join(line for line in lines if line.startswith("idrl:"))

    @property
    def err(self) -> str:
        """Without what JAX says of the machine."""
        lines = (self.folder / "err").read_text().splitlines(keepends=True)
        return "".join(line for line in lines if line.startswith("idrl:") or "rror" in line)


class Nursery:
    """One for all tests of a process; compiled programs are kept in `cache`."""

    def __init__(self, cache: Path):
        self.cache = cache
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("nursery.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def start(self, *arguments: str, folder: Path, **order) -> Child:
        order = {"arguments": arguments, "cwd": str(folder), "envs": True, **order}
        order["jax"] = {
            "jax_compilation_cache_dir": str(self.cache),
            "jax_persistent_cache_min_compile_time_secs": 0.0,
        }
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return Child(self.process, folder)

    def run(self, *arguments: str, folder: Path, **order) -> Child:
        child = self.start(*arguments, folder=folder, **order)
        child.wait()
        return child

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)


class Reference(NamedTuple):
    """A run that nothing happened to."""

    path: Path
    arguments: list[str]
    seconds: float
    writes: int  # moments at which something was being written


class Difference(NamedTuple):
    lost: int  # rows that are not there, or there again, or elsewhere
    bits: int  # of the newest checkpoint's arrays


def make_reference(nursery: Nursery, folder: Path, loop: str) -> Reference:
    arguments = ["train", *(LOOPS | AGENTS)[loop], *SMALL]
    if loop.startswith(("frames", "atari")):  # convolutions
        arguments.remove("trunk.hidden=8")
        arguments.append("learning.batch_size=4")
    for name in ("first", "whole"):  # the first one compiles
        child = nursery.run(*arguments, "--out", name, folder=folder, log=str(folder / "writes"))
        assert child.status == 0, child.err
    return Reference(
        folder / "whole", arguments, child.seconds, int((folder / "writes").read_text())
    )


def difference(run: Path, whole: Path) -> Difference:
    lost = 0
    for name in (*RECORDS, *([MORE] if (whole / MORE).exists() else [])):
        ours, theirs = ((p / name).read_text().splitlines() for p in (run, whole))
        same = sum(a == b for a, b in zip(ours, theirs, strict=False))
        lost += max(len(ours), len(theirs)) - same
    ours, theirs = (
        np.frombuffer((newest(p) / checkpoint.ARRAYS).read_bytes(), np.uint8) for p in (run, whole)
    )
    if newest(run).name != newest(whole).name or len(ours) != len(theirs):
        return Difference(lost, 8 * max(len(ours), len(theirs)))
    bits = int(np.bitwise_count(ours ^ theirs).sum())
    a, b = (frames(newest(p)) for p in (run, whole))
    length = min(len(a), len(b))  # a segment may begin before the replay does
    return Difference(lost, bits + int(np.bitwise_count(a[-length:] ^ b[-length:]).sum()))


def frames(place: Path) -> np.ndarray:
    """All rows of a checkpoint's segments, `[rows, bytes]`; none where its frames are in it."""
    folder, config = place.parents[1] / "replay", idrl.open_run(place.parents[1]).config
    rows = [np.zeros((0, 0), np.uint8)]
    for s in segments.parse(checkpoint.read_meta(place).get("segments", [])):
        data = np.frombuffer(zstandard.decompress((folder / s.name).read_bytes()), np.uint8)
        by_env = data.reshape(config.seeds * config.training.envs, s.end - s.first, -1)
        rows.append(by_env.swapaxes(0, 1).reshape(s.end - s.first, -1))
    return np.concatenate(rows[1:] or rows)


def newest(run: Path) -> Path:
    place, damaged = checkpoint.newest(run / "checkpoints")
    assert place is not None, damaged
    return place


def check_valid(run: Path) -> None:
    """Whatever happened, the folder can be opened and holds no half of a checkpoint."""

    def whole(meta):
        segments.check(run / "replay", segments.parse(meta.get("segments", [])))

    if run.exists():
        idrl.open_run(run)
        assert checkpoint.newest(run / "checkpoints", whole)[1] == {}
