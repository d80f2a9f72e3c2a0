"""Attempts as tasks of a Ray cluster."""

from __future__ import annotations

import functools
import os
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

from idrl.errors import IdrlError, RunFailed
from idrl.sweep.attempt import attempt
from idrl.sweep.engines import Ended
from idrl.sweep.job import Capacity, Job, Node, Plugins
from idrl.sweep.machine import gpus
from idrl.system.devices import cores

ANSWER_S, JOIN_S = 10.0, 120.0


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
        if port.isdecimal():
            _check_answers(address, host, int(port))
        late = f"the Ray cluster at {address!r} answers, but could not be joined in {JOIN_S:.0f} s."
        try:
            _within(JOIN_S, functools.partial(self.ray.init, address, **common), late)
        except (RuntimeError, ConnectionError, ValueError) as error:
            if isinstance(error, IdrlError):
                raise
            line = " ".join(str(error).split())[:200].rstrip(".")
            hint = ""
            if address != "auto" and not os.environ.get("RAY_AUTH_MODE"):
                # Ray shows its token to a cluster it found itself, not to any address.
                hint = " If it is guarded by Ray's token, set RAY_AUTH_MODE=token."
            raise IdrlError(
                f"the Ray cluster at {address!r} cannot be used: {line}.{hint}"
            ) from None

    def capacity(self) -> Capacity:
        nodes = tuple(
            Node(int(have.get("CPU", 0)), float(have.get("GPU", 0)), float(have.get("memory", 0)))
            for have in (n["Resources"] for n in self.ray.nodes() if n["Alive"])
        )
        least = min((size for _, size in gpus()), default=0.0)
        return Capacity(nodes, least)

    def begin(self, where: str, session: str, plugins: Plugins) -> None:
        self.where, self.session, self.plugins = where, session, plugins

    def submit(self, job: Job) -> None:
        how: dict[str, Any] = {"num_cpus": job.cpus, "max_retries": 0, "name": job.name}
        if job.gpus:
            how["num_gpus"] = job.gpus
        if job.memory_gb:
            how["memory"] = int(job.memory_gb * 1e9)
        ref = self.task.options(**how).remote(job, self.where, self.session, None, self.plugins)
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


def _check_answers(address: str, host: str, port: int) -> None:
    """Whether something speaks gRPC there, as Ray's head does: it greets who greets."""
    try:
        with socket.create_connection((host, port), ANSWER_S) as line:
            if os.environ.get("RAY_USE_TLS"):
                return
            line.settimeout(ANSWER_S)
            line.sendall(_GREETING)
            answer = line.recv(9)
    except TimeoutError:
        raise IdrlError(
            f"no Ray cluster answered at {address!r} within {ANSWER_S:.0f} s; is it running?"
        ) from None
    except OSError as error:
        told = error.strerror or error
        raise IdrlError(f"no Ray cluster answers at {address!r}: {told}.") from None
    if answer[3:4] != _SETTINGS:
        raise IdrlError(f"what answers at {address!r} is not a Ray cluster.")


_SETTINGS = b"\x04"  # the kind of frame that opens HTTP/2, in both directions
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0" + _SETTINGS + b"\0\0\0\0\0"


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
