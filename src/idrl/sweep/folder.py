"""A study's folder: its file, its runs, and what became of each. All that a study knows is in
here, each fact in a file of its own, so whoever dies leaves nothing behind that needs mending."""

from __future__ import annotations

import fcntl
import json
import secrets
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from idrl.errors import IdrlError
from idrl.storage import folder as runs
from idrl.storage.files import (
    Fits,
    check_entries,
    check_plain,
    count,
    number,
    open_lock,
    open_plain,
    parse_json,
    text,
)
from idrl.sweep.job import Job, Plugins, is_name
from idrl.sweep.store import Remote, Store, open_store
from idrl.sweep.study import MOST_SEEDS, Study, parse
from idrl.system import plugins as modules
from idrl.system import words

FAILURES = 3  # of its own accord; then a run is set aside
LOSSES = 10  # with its worker or node: no fault of the run's, unless it goes on for ever
FORMAT = 2
_RUN_FORMAT = {1: 2, FORMAT: runs.FORMAT}  # whose words each has; 1 does not tell 1 from 2
_LARGEST_JOBS = 2**27  # bytes; a run takes about two thousand


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
    def create(
        cls,
        where: str,
        data: dict[str, Any],
        name: str,
        jobs: list[Job],
        plugins: Sequence[dict[str, str]] = (),
    ) -> StudyFolder:
        """`plugins`: as `system.plugins.record` has them."""
        store = open_store(where)
        if store.exists():
            raise IdrlError(
                f"{where!r} exists already; continue with idrl sweep --resume "
                f"{shlex.quote(where)}, or choose another --out."
            )
        about = {"format": FORMAT, "name": name, "study": data, "plugins": list(plugins)}
        folder = cls(store, about, name)
        store.write("study.toml", tomli_w.dumps(data))
        folder.save_jobs(jobs)
        store.write("sweep.json", json.dumps(folder.about, indent=1) + "\n")  # last: it is whole
        return folder

    @classmethod
    def open(cls, where: str, *, writing: bool = False) -> StudyFolder:
        """`writing`: the study goes on, so nothing in its folder may lead out of it."""
        store = open_store(where) if "://" in where or Path(where).is_dir() else None
        said = store.read("sweep.json") if store else None
        if store is None or said is None:
            raise IdrlError(f"{where!r} is not the folder of a study: it has no sweep.json.")
        try:
            about = parse_json(said, "sweep.json")
            version = about.get("format")
            if type(version) is not int or version not in _RUN_FORMAT:
                told = words.value(version)
                raise IdrlError(
                    f"sweep.json has format {told}, and this idrl reads formats up to {FORMAT}."
                )
            if not is_name(about.get("name")) or not isinstance(about.get("study"), dict):
                raise IdrlError("sweep.json has no valid name and study.")
            named = about.setdefault("plugins", [])
            wanted = None
            if isinstance(named, list):  # of names alone in older studies
                wanted = [{"name": one} if isinstance(one, str) else one for one in named]
            if not modules.are_plugins(wanted):
                raise IdrlError(
                    f"sweep.json says plugins = {words.value(named)}, which is not valid."
                )
            folder = cls(store, about, about["name"])
            folder.study = folder.study.today(_RUN_FORMAT[version])
            listed = parse_json(store.read("jobs.json", _LARGEST_JOBS) or "[]", "jobs.json", list)
            jobs = [Job.read(job).today(_RUN_FORMAT[version]) for job in listed]
        except IdrlError as error:
            raise IdrlError(f"the study in {where!r} cannot be read: {error}") from None
        if not jobs and not folder.study.search:  # a search adds its runs as it goes
            raise IdrlError(
                f"the study in {where!r} cannot be read: jobs.json is missing, or names no run."
            )
        folder.jobs = {job.name: job for job in jobs}
        if len(folder.jobs) < len(jobs) or sum(job.seeds for job in jobs) > MOST_SEEDS:
            raise IdrlError(
                f"the study in {where!r} cannot be read: jobs.json names a run twice, or more than "
                f"{MOST_SEEDS:,} seeds."
            )
        if writing:
            check_plain(store.local)
            modules.need(wanted or [], f"the study {where!r}")
        return folder

    @property
    def plugins(self) -> Plugins:
        """What its runs import, as it is loaded in this process."""
        return Plugins(modules.loaded(), tuple(modules.places()))

    def save_jobs(self, jobs: list[Job]) -> None:
        self.jobs = {job.name: job for job in jobs}
        listed = json.dumps([job.to_dict() for job in jobs])
        self.store.write("jobs.json", listed + "\n")

    def lock(self) -> None:
        """One driver at a time, of one machine at least. Who has it keeps it."""
        if self._lock is not None:
            return
        try:
            lock = open_lock(self.store.local / ".lock")  # held until the end
        except OSError as error:
            raise IdrlError(f"{self.store.where!r} cannot be written to: {error}.") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise IdrlError(f"the study {self.store.where!r} is being run already.") from None
        self._lock = lock

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def is_left(self) -> bool:
        """Whether its driver is gone, as far as can be seen from here: its lock is free."""
        try:
            with open_plain(self.store.local / ".lock") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        return not self.remote  # whose lock is on the driver's machine

    def outcome(self, name: str) -> Outcome:
        return read_outcome(self.store, name)

    def outcomes(self) -> dict[str, Outcome]:
        found = {name: self._done.get(name) or self.outcome(name) for name in self.jobs}
        self._done = {name: o for name, o in found.items() if o.status in ("done", "pruned")}
        return found

    def progress(self, name: str) -> dict[str, Any]:
        file = f"progress/{name}.json"
        return _table(self.store.read(file), _PROGRESS, file)

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
    file = f"outcomes/{name}.json"
    found = _table(store.read(file), _OUTCOME, file)
    return Outcome(**{k: v for k, v in found.items() if k in Outcome._fields})


def write_outcome(store: Store, name: str, outcome: Outcome) -> None:
    store.write(f"outcomes/{name}.json", json.dumps(outcome._asdict(), indent=1) + "\n")


_STATUSES = (
    "queued", "running", "done", "pruned", "failed", "lost", "memory", "stopped", "aside",
)  # fmt: skip
_OUTCOME: dict[str, Fits] = {
    "status": lambda x: x in _STATUSES, "error": text(), "node": text(1_000),
    **{name: count(2**31) for name in ("attempts", "failures", "losses")},
    **{name: lambda x: number(x) and x >= 0 for name in ("wall_s", "cpu_s")},
}  # fmt: skip
_PROGRESS: dict[str, Fits] = {
    "steps": count(), "of": count(), "rate": number, "at": number,
    "evaluations": lambda x: isinstance(x, list) and all(map(_is_score, x)),
}  # fmt: skip


def _is_score(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and count()(pair[0]) and number(pair[1])


def _table(said: str | None, wanted: dict[str, Fits], what: str) -> dict[str, Any]:
    """Of a file that may be missing, or half there at an address that cannot write whole files."""
    try:
        json.loads(said or "{}")
    except (ValueError, RecursionError):
        return {}
    found = parse_json(said or "{}", what)
    check_entries(found, wanted, what)
    return found
