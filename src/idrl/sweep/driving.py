"""Drives a study: hands its runs to an engine, and decides what happens after each attempt."""

from __future__ import annotations

import contextlib
import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from idrl.errors import IdrlError
from idrl.sweep.engines import Ended, Engine
from idrl.sweep.folder import FAILURES, LOSSES, Outcome, StudyFolder, write_outcome
from idrl.sweep.job import Job, lowered
from idrl.system.signals import PATIENCE_S, signals


class Source(Protocol):
    """What is to be run: a grid, or a search that learns from what was run."""

    def begin(self) -> list[Job]: ...

    def watch(self) -> None:
        """Look at what is running."""

    def instead(self, job: Job) -> list[Job]:
        """What to run where memory was too small for a run; nothing where it cannot be less."""

    def after(self, job: Job, outcome: Outcome) -> list[Job]:
        """What to run next, now that a run is over."""


@dataclass
class Grid:
    """Everything that is not over, in the study's order."""

    folder: StudyFolder

    def begin(self) -> list[Job]:
        known = self.folder.outcomes()
        jobs = [job for name, job in self.folder.jobs.items() if not known[name].over]
        if self.folder.study.order == "longest":
            return sorted(jobs, key=lambda job: -job.cost_s)
        listed = list(dict.fromkeys(job.env for job in self.folder.jobs.values()))
        return sorted(jobs, key=lambda job: (listed.index(job.env), -job.cost_s))

    def watch(self) -> None:
        pass

    def instead(self, job: Job) -> list[Job]:
        return lowered(job)

    def after(self, job: Job, outcome: Outcome) -> list[Job]:
        return []


class SweepStopped(Exception):
    """Ctrl-C or SIGTERM; every run that was going has left a checkpoint."""


def drive(
    folder: StudyFolder, engine: Engine, source: Source,
    tell: Callable[[str], None], show: Callable[[], None],
) -> None:  # fmt: skip
    """To the end of the study, or until it is asked to stop. `tell` gets sentences, `show` is
    called about once a second."""
    folder.lock()
    try:
        engine.begin(folder.store.where, folder.session, folder.plugins)
        with signals() as stop, _own_patience():
            for job in source.begin():
                engine.submit(job)
            while engine.running():
                for ended in engine.wait(1.0):
                    for job in _next(folder, source, ended, tell):
                        engine.submit(job)
                source.watch()
                show()
                if stop.is_set():
                    _halt(folder, engine, tell)
                    raise SweepStopped
    except BaseException:  # whatever ends the driver ends its runs, with a checkpoint
        with contextlib.suppress(IdrlError):
            folder.store.write("stop/all", folder.session)
        raise
    finally:
        folder.unlock()


@contextlib.contextmanager
def _own_patience() -> Iterator[None]:
    """The command line gives up on a process that does not end within seconds of a signal; here
    it is the runs that take their seconds. A second signal ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)


def _halt(folder: StudyFolder, engine: Engine, tell: Callable[[str], None]) -> None:
    """Every attempt sees the order within a second and lets its run leave a checkpoint."""
    tell("stopping: runs are leaving a checkpoint …")
    folder.store.write("stop/all", folder.session)
    end = time.monotonic() + PATIENCE_S + 4
    while engine.running() and time.monotonic() < end:
        for ended in engine.wait(0.5):
            if ended.outcome is None:
                _noted(folder, ended)
            elif ended.outcome.over:
                tell(_finished(ended.job, ended.outcome))


def _next(folder: StudyFolder, source: Source, ended: Ended, tell) -> list[Job]:
    """What to run now: this again, something less, or whatever the source has."""
    job, outcome = ended.job, ended.outcome or _noted(folder, ended)
    if outcome.status == "memory":
        less = source.instead(job)
        if less:
            tell(_lower(folder, job, less))
            return less
        outcome = outcome._replace(status="failed", failures=FAILURES)
    if outcome.status == "failed" and outcome.failures < FAILURES:
        tell(f"{job.name} failed ({outcome.error}); trying again, {outcome.failures} of {FAILURES}")
        return [job]
    if outcome.status == "lost" and outcome.losses < LOSSES:
        tell(f"{job.name} lost its worker ({outcome.error}); it continues from its checkpoint")
        return [job]
    if outcome.status == "stopped":  # by somebody else's signal to its process
        return [job]
    if not outcome.over:
        outcome = outcome._replace(status="aside")
        write_outcome(folder.store, job.name, outcome)
    tell(_finished(job, outcome))
    return source.after(job, outcome)


def _noted(folder: StudyFolder, ended: Ended) -> Outcome:
    """Write down an attempt whose own process could not."""
    known = folder.outcome(ended.job.name)
    if known.over:
        return known
    known = known._replace(
        status=ended.how, error=ended.why, losses=known.losses + (ended.how == "lost"),
        failures=known.failures + (ended.how == "failed"),
    )  # fmt: skip
    write_outcome(folder.store, ended.job.name, known)
    return known


def _lower(folder: StudyFolder, job: Job, less: list[Job]) -> str:
    """Smaller runs take the place of one that memory was too small for."""
    places = [less if other.name == job.name else [other] for other in folder.jobs.values()]
    folder.save_jobs(list(itertools.chain(*places)))
    if less[0].seeds < job.seeds:
        folder.store.discard(job.name)
        folder.store.remove(f"outcomes/{job.name}.json")
        into = " and ".join(str(part.seeds) for part in less)
        return f"{job.name}: memory was too small for {job.seeds} seeds in one run; now {into}"
    return (
        f"{job.name}: memory was too small for {job.gpus:g} of a GPU; now it gets {less[0].gpus:g}"
    )


def _finished(job: Job, outcome: Outcome) -> str:
    if outcome.status == "aside":
        return f"{job.name} is set aside after {outcome.attempts} attempts: {outcome.error}"
    how = "ended early" if outcome.status == "pruned" else "done"
    return f"{job.name}: {how} ({outcome.wall_s:.0f} s)"
