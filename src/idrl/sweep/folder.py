"""A study's folder: its file, its runs, and what became of each. All that a study knows is in
here, each fact in a file of its own, so whoever dies leaves nothing behind that needs mending."""

from __future__ import annotations

import fcntl
import json
import secrets
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from idrl.errors import IdrlError
from idrl.sweep.job import Job
from idrl.sweep.store import Remote, Store, open_store
from idrl.sweep.study import Study, parse

FAILURES = 3  # of its own accord; then a run is set aside
LOSSES = 10  # with its worker or node: no fault of the run's, unless it goes on for ever
FORMAT = 1


class Outcome(NamedTuple):
    """What became of a run so far."""

    status: str = "queued"  # running, done, pruned, failed, lost, memory, stopped, aside
    attempts: int = 0
    failures: int = 0
    losses: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0  # of its processes
    error: str = ""
    node: str = ""

    @property
    def over(self) -> bool:
        return self.status in ("done", "pruned", "aside")


class StudyFolder:
    def __init__(self, store: Store, about: dict[str, Any], name: str):
        self.store, self.about, self.name = store, about, name
        self.study: Study = parse(about["study"], name)
        self.jobs: dict[str, Job] = {}
        self.session = secrets.token_hex(6)  # of this driver; the orders of an earlier one lapse
        self._lock: Any = None
        self._done: dict[str, Outcome] = {}  # what cannot change is read once

    @classmethod
    def create(cls, where: str, data: dict[str, Any], name: str, jobs: list[Job]) -> StudyFolder:
        store = open_store(where)
        if store.exists():
            raise IdrlError(
                f"{where!r} exists already; go on with idrl sweep --resume {where}, or choose "
                "another --out."
            )
        folder = cls(store, {"format": FORMAT, "name": name, "study": data}, name)
        store.write("study.toml", tomli_w.dumps(data))
        folder.save_jobs(jobs)
        store.write("sweep.json", json.dumps(folder.about, indent=1) + "\n")  # last: it is whole
        return folder

    @classmethod
    def open(cls, where: str) -> StudyFolder:
        store = open_store(where) if "://" in where or Path(where).is_dir() else None
        text = store.read("sweep.json") if store else None
        if store is None or text is None:
            raise IdrlError(f"{where!r} is no study's folder: it has no sweep.json.")
        try:
            about = json.loads(text)
            if about["format"] != FORMAT:
                raise ValueError(f"format {about['format']!r}, and this idrl reads {FORMAT}")
            folder = cls(store, about, str(about["name"]))
            listed = [Job.read(job) for job in json.loads(store.read("jobs.json") or "[]")]
        except (ValueError, KeyError, TypeError) as error:
            raise IdrlError(f"the study in {where!r} cannot be read: {error}.") from None
        folder.jobs = {job.name: job for job in listed}
        return folder

    def save_jobs(self, jobs: list[Job]) -> None:
        self.jobs = {job.name: job for job in jobs}
        text = json.dumps([job.to_dict() for job in jobs])
        self.store.write("jobs.json", text + "\n")

    def lock(self) -> None:
        """One driver at a time, of one machine at least."""
        self._lock = open(self.store.local / ".lock", "w")  # noqa: SIM115 - held until the end
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise IdrlError(f"the study {self.store.where!r} is being run already.") from None

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def outcome(self, name: str) -> Outcome:
        return read_outcome(self.store, name)

    def outcomes(self) -> dict[str, Outcome]:
        found = {name: self._done.get(name) or self.outcome(name) for name in self.jobs}
        self._done = {name: o for name, o in found.items() if o.status in ("done", "pruned")}
        return found

    def progress(self, name: str) -> dict[str, Any]:
        return _table(self.store.read(f"progress/{name}.json"))

    def counts(self) -> Counter[str]:
        return Counter(outcome.status for outcome in self.outcomes().values())

    @property
    def remote(self) -> bool:
        return isinstance(self.store, Remote)

    def runs(self) -> Path:
        """The run folders, brought here where they are kept elsewhere."""
        if self.remote:
            for name, outcome in self.outcomes().items():
                if outcome.over:
                    self.store.fetch(name)
        return self.store.local / "runs"


def read_outcome(store: Store, name: str) -> Outcome:
    found = _table(store.read(f"outcomes/{name}.json"))
    return Outcome(**{k: v for k, v in found.items() if k in Outcome._fields})


def write_outcome(store: Store, name: str, outcome: Outcome) -> None:
    store.write(f"outcomes/{name}.json", json.dumps(outcome._asdict(), indent=1) + "\n")


def _table(text: str | None) -> dict[str, Any]:
    """Of a file that may be missing, or half there at an address that cannot write whole files."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
