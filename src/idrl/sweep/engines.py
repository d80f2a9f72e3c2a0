"""Who runs the attempts: Ray, or without it threads that each watch a process of this machine."""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

from idrl.devices import cores
from idrl.errors import IdrlError, RunFailed
from idrl.sweep.attempt import attempt
from idrl.sweep.folder import Outcome
from idrl.sweep.job import Capacity, Job, Node
from idrl.sweep.machine import gpus

ANSWER_S, JOIN_S = 10.0, 120.0
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

    def begin(self, where: str, session: str) -> None: ...

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
        raise IdrlError("--address is Ray's: leave it or --engine processes away.")
    if name == "ray" or address is not None or (name == "auto" and has_ray()):
        if not has_ray():
            raise IdrlError(f"Ray is not installed: {INSTALL}.")
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

    def begin(self, where: str, session: str) -> None:
        self.where, self.session = where, session

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
            ended = Ended(job, attempt(job, self.where, self.session, gpu))
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


class RayEngine:
    """A Ray cluster: the one at `address`, or one of this machine, started and stopped here. Each
    attempt is a task; retries are ours, since a run's checkpoint and its failures are."""

    name = "ray"

    def __init__(self, address: str | None):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Processes of ours find the devices that Ray gives them; a CPU run is to see none.
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
        import ray

        self.ray: Any = ray
        self.refs: dict[Any, Job] = {}
        common = {"log_to_driver": False, "logging_level": "error", "configure_logging": True}
        if address is None:
            self._begin(common)
        else:
            self._connect(address, common)
        self.task = ray.remote(attempt)

    def _begin(self, common: dict[str, Any]) -> None:
        """A cluster of this machine. Ray waits for half a minute, which a busy machine may need
        to load it; the second time it is loaded."""
        for last in (False, True):
            try:
                self.ray.init(
                    "local", num_cpus=cores(), include_dashboard=False,
                    object_store_memory=100 * 2**20, **common,
                )  # fmt: skip
                return
            except Exception as error:  # Ray raises no other kind where it cannot start
                self.ray.shutdown()
                if last:
                    raise RunFailed(
                        f"Ray could not be started here: {_first(error)} Try again when the "
                        "machine is less busy, or use --engine processes."
                    ) from None

    def _connect(self, address: str, common: dict[str, Any]) -> None:
        """Ray itself would try for minutes. An answer must come within seconds; once there is one,
        joining the cluster may take longer, on a busy machine."""
        host, _, port = address.rpartition("://")[2].rpartition(":")
        silent = f"no Ray cluster answered at {address!r} within {{:.0f}} s; is it running?"
        if port.isdecimal():
            try:
                socket.create_connection((host, int(port)), ANSWER_S).close()
            except OSError as error:
                told = error.strerror or error
                raise IdrlError(f"no Ray cluster answers at {address!r}: {told}.") from None
            if "://" not in address:
                asked = functools.partial(self._ask, address)
                _within(ANSWER_S, asked, silent.format(ANSWER_S))
        try:
            join = functools.partial(self.ray.init, address, **common)
            _within(JOIN_S, join, silent.format(JOIN_S))
        except (RuntimeError, ConnectionError, ValueError) as error:
            if isinstance(error, IdrlError):
                raise
            line = " ".join(str(error).split())[:200].rstrip(".")
            raise IdrlError(f"the Ray cluster at {address!r} cannot be used: {line}.") from None

    def _ask(self, address: str) -> None:
        """Anything, as `ray health-check` does."""
        with contextlib.suppress(self.ray.exceptions.RayError):  # it is there, and joining will say
            self.ray._raylet.GcsClient(address=address).internal_kv_get(b"idrl", None)

    def capacity(self) -> Capacity:
        nodes = tuple(
            Node(int(have.get("CPU", 0)), float(have.get("GPU", 0)), float(have.get("memory", 0)))
            for have in (n["Resources"] for n in self.ray.nodes() if n["Alive"])
        )
        least = min((size for _, size in gpus()), default=0.0)
        return Capacity(nodes, least)

    def begin(self, where: str, session: str) -> None:
        self.where, self.session = where, session

    def submit(self, job: Job) -> None:
        how: dict[str, Any] = {"num_cpus": job.cpus, "max_retries": 0, "name": job.name}
        if job.gpus:
            how["num_gpus"] = job.gpus
        if job.memory_gb:
            how["memory"] = int(job.memory_gb * 1e9)
        ref = self.task.options(**how).remote(job, self.where, self.session)
        self.refs[ref] = job

    def wait(self, seconds: float) -> list[Ended]:
        if not self.refs:
            return []
        ready, _ = self.ray.wait(list(self.refs), num_returns=1, timeout=seconds)
        more, _ = self.ray.wait(list(self.refs), num_returns=len(self.refs), timeout=0)
        return [self._ended(ref) for ref in _once([*ready, *more])]

    def _ended(self, ref: Any) -> Ended:
        job = self.refs.pop(ref)
        errors = self.ray.exceptions
        try:
            return Ended(job, self.ray.get(ref))
        except errors.OutOfMemoryError as error:
            return Ended(job, None, "memory", _first(error))
        except errors.RayTaskError as error:
            return Ended(job, None, "failed", _first(error.cause or error))
        except errors.RayError as error:
            return Ended(job, None, "lost", _first(error))

    def running(self) -> int:
        return len(self.refs)

    def close(self) -> None:
        self.ray.shutdown()


def _within(seconds: float, call: Callable[[], Any], late: str) -> None:
    """Call it, but wait no longer than that: foreign code cannot be interrupted."""
    failed: list[Exception] = []

    def run() -> None:
        try:
            call()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise IdrlError(late)
    if failed:
        raise failed[0]


def _once(refs: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(refs))


def _first(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:300]
