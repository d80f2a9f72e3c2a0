"""One attempt at a run: a process of `idrl train`, watched to its end, and what became of it.

The same function runs in a task of Ray and in a thread of the local fallback. It loads no JAX: a
run that takes all memory, or crashes, takes nobody along.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import tomli_w

from idrl.errors import IdrlError
from idrl.storage import checkpoint
from idrl.storage.files import open_plain
from idrl.storage.folder import RunFolder
from idrl.sweep.folder import Outcome, read_outcome, write_outcome
from idrl.sweep.job import NONE, Job, Plugins
from idrl.sweep.machine import some_cores
from idrl.sweep.store import Remote, Store, open_store
from idrl.sweep.watching import Tail

RUN = [sys.executable, "-m", "idrl.sweep.child"]
_PATIENCE_S = 30.0  # for the lock of a process that is just being killed
_OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "MemoryError", "of memory and there are")


def attempt(
    job: Job, where: str, session: str, gpu: str | None = None, plugins: Plugins = NONE
) -> Outcome:
    """Train the run, from its checkpoint where it has one, and write down what became of it."""
    store = open_store(where)
    before = read_outcome(store, job.name)
    if before.over:
        return before
    if _order(store, job.name, session) == "stopped":
        return before._replace(status="stopped")
    started = before._replace(
        status="running", attempts=before.attempts + 1, error="", node=os.uname().nodename
    )
    write_outcome(store, job.name, started)
    clock = time.monotonic()
    with some_cores(job.cpus) as cores:
        status, error, cpu_s = _run(job, store, session, cores, gpu, plugins)
    after = started._replace(
        status=status, error=error, failures=started.failures + (status == "failed"),
        wall_s=started.wall_s + time.monotonic() - clock, cpu_s=started.cpu_s + cpu_s,
    )  # fmt: skip
    write_outcome(store, job.name, after)
    return after


def _run(
    job: Job, store: Store, session: str, cores: str, gpu, plugins: Plugins
) -> tuple[str, str, float]:
    path = store.run(job.name)
    store.fetch(job.name)
    if is_finished(path):
        _tell(store, job, Tail(job, path))  # its last evaluations, which a search scores it by
        return "done", "", 0.0
    _wait_for_lock(path)
    logs = store.local / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{job.name}.log"
    with tempfile.TemporaryDirectory(prefix="idrl-") as scratch, open(log, "ab") as out:
        begin = out.tell()
        if (path / "run.json").exists():
            command = ["train", "--resume", str(path)]
        else:
            config = Path(scratch) / "config.toml"
            config.write_text(tomli_w.dumps(job.config), encoding="utf-8")
            path.parent.mkdir(parents=True, exist_ok=True)
            command = ["train", "--config", str(config), "--out", str(path)]
        process = subprocess.Popen(
            [*RUN, str(os.getpid()), cores, *command, *plugins.options],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            env=_environment(job, gpu, plugins),
        )  # fmt: skip
        try:
            asked, cpu_s = _watch(process, job, store, session)
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()
    if isinstance(store, Remote) and path.exists():
        store.push(job.name)
        with contextlib.suppress(OSError):
            store.write(f"logs/{job.name}.log", _tail(log, 0)[-100_000:])
    if process.returncode == 0 and is_finished(path):
        return "done", "", cpu_s
    if asked:
        return asked, "", cpu_s
    if process.returncode == 130:
        return "stopped", "", cpu_s
    text = _tail(log, begin)
    memory = any(sign in text for sign in _OUT_OF_MEMORY)
    return ("memory" if memory else "failed"), _error(text, process.returncode), cpu_s


def _watch(process: subprocess.Popen, job: Job, store: Store, session: str) -> tuple[str, float]:
    """To the process's end: what it was asked to end for, and the time of processors it took."""
    tail, asked, saved = Tail(job, store.run(job.name)), "", None
    slow = 5.0 if isinstance(store, Remote) else 1.0
    due = told = time.monotonic() + slow
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            _tell(store, job, tail)
            return asked, used.ru_utime + used.ru_stime
        now = time.monotonic()
        if now >= due:
            due = now + slow
            if not asked:
                asked = _order(store, job.name, session)
                if asked:
                    process.send_signal(signal.SIGTERM)  # it leaves a checkpoint
            if now >= told:
                told = now + 2 * slow
                _tell(store, job, tail)
            places = checkpoint.listed(tail.path / "checkpoints")
            if isinstance(store, Remote) and places and places[-1] != saved:
                saved = places[-1]
                store.push(job.name)
        time.sleep(0.05)


def _order(store: Store, name: str, session: str) -> str:
    """Whether this driver wants all runs to stop, or this one to end early."""
    if store.read("stop/all") == session:
        return "stopped"
    return "pruned" if store.read(f"stop/run-{name}") == session else ""


def _tell(store: Store, job: Job, tail: Tail) -> None:
    with contextlib.suppress(IdrlError):  # a full disk is the run's to tell
        found: dict[str, Any] = tail.read()
        store.write(f"progress/{job.name}.json", json.dumps(found) + "\n")


def is_finished(path: Path) -> bool:
    """By the folder alone: whoever wrote it may have died before it could say so, and a process
    that ends with status 0 may have been ended by its environment."""
    try:
        folder = RunFolder.open(path)
        steps = int(folder.read_config()["training"]["steps"])
        last = checkpoint.read_manifest(checkpoint.listed(folder.checkpoints)[-1])
        meta = last["meta"]
        told = all(folder.tables[name].length() >= n for name, n in meta["sizes"].items())
        return last["steps"] >= steps and told and not meta.get("pending", False)
    except (ValueError, OSError, LookupError, TypeError, AttributeError):  # forged, or none yet
        return False


def _wait_for_lock(path: Path) -> None:
    if not (path / ".lock").exists():
        return
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        with open_plain(path / ".lock") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return
            except OSError:
                time.sleep(0.1)


def _environment(job: Job, gpu: str | None, plugins: Plugins) -> dict[str, str]:
    env = plugins.environment()
    if gpu is not None:  # Ray says so itself
        env["CUDA_VISIBLE_DEVICES"] = gpu
    if 0 < job.gpus < 1:
        # JAX takes three quarters of a GPU at once unless told otherwise. Telling each run its
        # share by XLA_PYTHON_CLIENT_MEM_FRACTION did not help: four runs filled an H200 (JAX 0.11).
        env["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    return env


def _tail(path: Path, begin: int) -> str:
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(begin, file.tell() - 100_000))
        return file.read().decode(errors="replace")


def _error(text: str, status: int) -> str:
    """The sentence that the run ended with, or how it was ended."""
    if status < 0:
        name = signal.Signals(-status).name
        return f"its process was ended by {name}"
    if status == 0:
        return "its process ended with status 0 before the run was finished"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("idrl: ")] or lines
    return (told[-1] if told else f"exit status {status}").removeprefix("idrl: ")[:500]
