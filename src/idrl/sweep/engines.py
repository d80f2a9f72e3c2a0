"""Who runs the attempts: Ray (ray_engine.py), or threads, each watching a process of its own."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

from idrl.errors import IdrlError
from idrl.sweep.attempt import attempt
from idrl.sweep.folder import Outcome
from idrl.sweep.job import Capacity, Job, Node, Plugins
from idrl.sweep.machine import gpus
from idrl.system.devices import cores

INSTALL = "pip install 'idrl[sweep]'"


class Ended(NamedTuple):
    """An attempt that is over. Where nobody could write its outcome down, what is known of it:
    `how` is lost, failed or memory."""

    job: Job
    outcome: Outcome | None
    how: str = ""
    why: str = ""


class Engine(Protocol):
    name: str

    def capacity(self) -> Capacity: ...

    def begin(self, where: str, session: str, plugins: Plugins) -> None: ...

    def submit(self, job: Job) -> None: ...

    def wait(self, seconds: float) -> list[Ended]: ...

    def running(self) -> int: ...

    def close(self) -> None: ...


def has_ray() -> bool:
    from importlib.util import find_spec

    return find_spec("ray") is not None


def open_engine(name: str, address: str | None) -> Engine:
    """`name`: ray, processes, or auto for Ray where it is installed."""
    if name == "processes" and address is not None:
        raise IdrlError("--address is Ray's: omit it, or --engine processes.")
    if name == "ray" or address is not None or (name == "auto" and has_ray()):
        if not has_ray():
            raise IdrlError(f"Ray is not installed: {INSTALL}.")
        from idrl.sweep.ray_engine import RayEngine

        return RayEngine(address)
    return ProcessEngine()


class ProcessEngine:
    """This machine alone. A run waits until the cores and the share of a GPU are free."""

    name = "processes"

    def __init__(self) -> None:
        self.found = gpus()
        self.free_cores = cores()
        self.free_gpus = [1.0] * len(self.found)
        self.changed = threading.Condition()
        self.ended: queue.Queue[Ended] = queue.Queue()
        self.waiting: list[Job] = []
        self.count = 0
        self.pool = ThreadPoolExecutor(max(self.free_cores, 1))

    def capacity(self) -> Capacity:
        memory = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        least = min((size for _, size in self.found), default=0.0)
        return Capacity((Node(cores(), float(len(self.found)), memory),), least)

    def begin(self, where: str, session: str, plugins: Plugins) -> None:
        self.where, self.session, self.plugins = where, session, plugins

    def submit(self, job: Job) -> None:
        self.count += 1
        self.waiting.append(job)
        self._start()

    def _start(self) -> None:
        for job in list(self.waiting):
            taken = self._take(job)
            if taken is not None:
                self.waiting.remove(job)
                self.pool.submit(self._run, job, taken)

    def _take(self, job: Job) -> list[int] | None:
        """The GPUs for it; None where there is no room now."""
        with self.changed:
            share = min(job.gpus, 1.0)
            free = [i for i, left in enumerate(self.free_gpus) if left >= share - 1e-9]
            places = free[: max(int(job.gpus), 1)] if job.gpus else []
            if job.cpus > self.free_cores or (job.gpus and len(places) < max(int(job.gpus), 1)):
                return None
            self.free_cores -= job.cpus
            for place in places:
                self.free_gpus[place] -= share
            return places

    def _run(self, job: Job, places: list[int]) -> None:
        gpu = ",".join(map(str, places)) if self.found else None
        try:
            ended = Ended(job, attempt(job, self.where, self.session, gpu, self.plugins))
        except Exception as error:  # whatever it is, the study goes on
            ended = Ended(job, None, "failed", str(error))
        with self.changed:
            self.free_cores += job.cpus
            for place in places:
                self.free_gpus[place] += min(job.gpus, 1.0)
        self.ended.put(ended)

    def wait(self, seconds: float) -> list[Ended]:
        found = []
        with contextlib.suppress(queue.Empty):
            found.append(self.ended.get(timeout=seconds))
            while True:
                found.append(self.ended.get_nowait())
        self.count -= len(found)
        self._start()
        return found

    def running(self) -> int:
        return self.count

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
