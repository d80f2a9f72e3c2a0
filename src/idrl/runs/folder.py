"""A run's folder: what is in it, how it is made, how it is found again."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import tomli_w

from idrl.errors import IdrlError
from idrl.runs.records import Table

FORMAT = 1
TABLES = ("metrics", "evaluations", "episodes", "distributions", "timings", "sigma_map")
_LIBRARIES = (
    "idrl", "jax", "jaxlib", "flax", "optax", "gymnax", "gymnasium", "numpy", "safetensors",
)  # fmt: skip


class RunFolder:
    """Paths and small files of one run."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.config = self.path / "config.toml"
        self.about = self.path / "run.json"
        self.checkpoints = self.path / "checkpoints"
        self.tables = {name: Table(self.path / f"{name}.csv") for name in TABLES}
        self._lock: Any = None

    @classmethod
    def create(cls, path: Path, config: dict[str, Any], about: dict[str, Any]) -> RunFolder:
        """A new folder. It carries its config from the first instant that it can be found."""
        if path.exists():
            raise IdrlError(f"{str(path)!r} exists already; choose another --out, or --resume it.")
        draft = path.with_name(f".{path.name}.draft-{os.getpid()}")
        try:
            draft.mkdir(parents=True)
            folder = cls(draft)
            folder.config.write_text(tomli_w.dumps(config), encoding="utf-8")
            folder._write_about(describe() | {"id": secrets.token_hex(6)} | about)
            draft.rename(path)
        except OSError as error:
            raise IdrlError(f"the run folder {str(path)!r} cannot be made: {error}.") from None
        return cls(path)

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        folder = cls(path)
        if not folder.path.is_dir():
            raise IdrlError(f"there is no run folder {str(path)!r}.")
        if not folder.config.is_file() or not folder.about.is_file():
            raise IdrlError(
                f"{str(path)!r} is not a run folder: it has no config.toml and run.json."
            )
        version = folder.read_about().get("format")
        if version != FORMAT:
            raise IdrlError(
                f"{str(path)!r} has run format {version}; this idrl reads format {FORMAT}."
            )
        return folder

    def read_config(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.config.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise IdrlError(f"{str(self.config)!r} cannot be read: {error}.") from None

    def read_about(self) -> dict[str, Any]:
        try:
            about = json.loads(self.about.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise IdrlError(f"{str(self.about)!r} cannot be read: {error}.") from None
        if not isinstance(about, dict):
            raise IdrlError(f"{str(self.about)!r} holds no table.")
        return about

    def _write_about(self, about: dict[str, Any]) -> None:
        draft = self.about.with_suffix(".draft")
        draft.write_text(json.dumps(about, indent=1) + "\n")
        draft.replace(self.about)

    def remember_sinks(self, sinks: dict[str, str]) -> str:
        """Keep what a run tells its numbers to; returns its identity, which no other run has."""
        about = self.read_about()
        identity = str(about.get("id") or secrets.token_hex(6))
        now = about | {"id": identity, "sinks": sinks}
        if now != about:
            self._write_about(now)
        return identity

    def discard(self) -> None:
        """Take back a folder that was made for nothing."""
        shutil.rmtree(self.path)

    def lock(self) -> None:
        """Refuse a second process; the lock goes with this one, however it ends."""
        self._lock = open(self.path / ".lock", "w")  # noqa: SIM115 (held until unlock)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise IdrlError(f"{str(self.path)!r} is in use by another process.") from None

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def free_name(root: Path, stem: str) -> Path:
    """`root/stem-001`, or the first number that is free."""
    stem = re.sub(r"[^A-Za-z0-9_.=-]+", "-", stem)
    number = 1
    while (root / f"{stem}-{number:03d}").exists():
        number += 1
    return root / f"{stem}-{number:03d}"


def describe() -> dict[str, Any]:
    """What a reader needs to repeat a run: versions, commit, command, machine."""
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "unknown"
    return {
        "format": FORMAT,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": versions,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _commit() -> str:
    """The commit of idrl's own checkout, with `+` where it has changes; empty when installed."""
    here = Path(__file__)

    def git(*args: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(here.parent), *args], capture_output=True, text=True, timeout=5
        )
        done.check_returncode()
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", here.name)  # not a copy inside somebody's repository
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return ""
