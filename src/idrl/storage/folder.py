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
from importlib import metadata
from pathlib import Path
from typing import Any

import tomli_w

from idrl.actions import Actions
from idrl.errors import IdrlError
from idrl.storage.files import (
    check_entries,
    check_plain,
    count,
    flag,
    open_lock,
    read_json,
    read_toml,
    shapes_of,
    sync,
    text,
    write_whole,
)
from idrl.storage.older import in_todays_words
from idrl.storage.records import Table
from idrl.system import words
from idrl.system.plugins import are_plugins
from idrl.system.version import VERSION

FORMAT = 3
_READ = (1, 2, FORMAT)
TABLES = (
    "metrics", "evaluations", "episodes", "distributions", "timings", "sigma_map", "frozen",
)  # fmt: skip
_LIBRARIES = (
    "jax", "jaxlib", "flax", "optax", "gymnax", "gymnasium", "numpy", "safetensors",
)  # fmt: skip


class RunFolder:
    """Paths and small files of one run."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.config = self.path / "config.toml"
        self.about = self.path / "run.json"
        self.checkpoints = self.path / "checkpoints"
        self.replay = self.path / "replay"  # frames, where they are too many for a checkpoint
        self.weights = self.path / "weights"  # of early steps, where they are kept
        self.tables = {name: Table(self.path / f"{name}.csv") for name in TABLES}
        self._lock: Any = None

    @classmethod
    def create(cls, path: Path, config: dict[str, Any], about: dict[str, Any]) -> RunFolder:
        """A new folder. It carries its config from the first instant that it can be found."""
        if os.path.lexists(path):  # a link that leads nowhere is in the way, too
            raise IdrlError(f"{str(path)!r} exists already; choose another --out, or --resume it.")
        draft = path.with_name(f".{path.name}.draft-{os.getpid()}")
        try:
            draft.mkdir(parents=True)
            folder = cls(draft)
            folder.config.write_text(tomli_w.dumps(config), encoding="utf-8")
            folder._write_about(describe() | {"id": secrets.token_hex(6)} | about)
            for written in (folder.config, draft):
                sync(written)
            draft.rename(path)
            sync(path.parent)
        except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
            if os.path.isdir(draft):  # rmtree ignores no zero byte
                shutil.rmtree(draft, ignore_errors=True)
            raise IdrlError(f"the run folder {str(path)!r} cannot be made: {error}.") from None
        return cls(path)

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        folder = cls(path)
        if not os.path.isdir(folder.path):  # also of a name that is too long for one
            raise IdrlError(f"there is no run folder {str(path)!r}.")
        if not folder.config.is_file() or not folder.about.is_file():
            raise IdrlError(
                f"{str(path)!r} is not a run folder: it has no config.toml and run.json."
            )
        check_plain(folder.path)
        for table in folder.tables.values():
            if table.path.is_dir():
                raise IdrlError(f"{table.path.name!r} in {str(path)!r} is a folder, not a table.")
        for inside in (folder.checkpoints, folder.replay, folder.weights):
            if inside.is_file():
                raise IdrlError(f"{inside.name!r} in {str(path)!r} is a file, not a folder.")
        folder._check_format()
        return folder

    def _check_format(self) -> None:
        about = self.read_about()
        version, versions = about.get("format"), about.get("versions")
        if type(version) is int and version in _READ:
            return
        by = versions.get("idrl") if isinstance(versions, dict) else None
        commit = about.get("commit")
        wrote = f"idrl {by}" if _is_plain(by) else "the idrl that wrote it"
        if _is_plain(commit):
            wrote += f" (commit {str(commit)[:12]})"
        raise IdrlError(
            f"{str(self.path)!r} has run format {words.value(version)}; this idrl "
            f"{VERSION} reads formats up to {FORMAT}. Use {wrote}, which can read "
            "it."
        )

    def read_config(self) -> dict[str, Any]:
        return self.today(read_toml(self.config))

    def today(self, config: dict[str, Any]) -> dict[str, Any]:
        """A config that was written to this folder, by whichever version."""
        return in_todays_words(config, self.read_about().get("format"))

    def write_config(self, config: dict[str, Any]) -> None:
        write_whole(self.config, tomli_w.dumps(config))

    def read_about(self) -> dict[str, Any]:
        about = read_json(self.about)
        check_entries(about, _ABOUT, repr(str(self.about)))
        return about

    def read_shapes(self) -> tuple[tuple[int, ...], Actions]:
        """Of observations, and how many actions there are."""
        return shapes_of(self.read_about(), repr(str(self.about)))

    def _write_about(self, about: dict[str, Any]) -> None:
        write_whole(self.about, json.dumps(about, indent=1) + "\n")

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
        try:
            self._lock = open_lock(self.path / ".lock")
        except OSError as error:
            raise IdrlError(f"{str(self.path)!r} cannot be written to: {error}.") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.unlock()
            raise IdrlError(f"{str(self.path)!r} is in use by another process.") from None

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _is_plain(word: Any) -> bool:
    """Whether a text from a file may be shown: a version or a commit, nothing else."""
    return isinstance(word, str) and bool(re.fullmatch(r"[A-Za-z0-9.+-]{1,64}", word))


def _are_sinks(told: Any) -> bool:
    """Names of sinks with what each was told, such as a project of W&B."""
    return isinstance(told, dict) and all(map(text(200), [*told, *told.values()]))


# What others rely on in run.json; all else in it is for people.
_ABOUT = {
    "id": _is_plain, "sinks": _are_sinks, "env_object": flag, "deterministic": flag,
    "baseline": flag,
    "unit": _is_plain, "unit_per_step": lambda x: count(10_000)(x) and x > 0,
    "plugins": are_plugins,
}  # fmt: skip


def free_name(root: Path, stem: str) -> Path:
    """`root/stem-001`, or the first number that is free."""
    stem = words.file_name(stem, 120)
    number = 1
    while (root / f"{stem}-{number:03d}").exists():
        number += 1
    return root / f"{stem}-{number:03d}"


def describe() -> dict[str, Any]:
    """What a reader needs to repeat a run: versions, commit, command, machine."""
    return {
        "format": FORMAT,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": shlex.join([*_program(), *sys.argv[1:]]),
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": versions(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _program() -> list[str]:
    """What was called; of `python -m idrl` the file alone would be `__main__.py`."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is None:
        return [Path(sys.argv[0]).name]
    return ["python", "-m", spec.name.removesuffix(".__main__")]


def versions() -> dict[str, str]:
    found = {"idrl": VERSION}  # from a source tree it may run without being installed
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "unknown"
    return found


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
