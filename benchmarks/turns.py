"""Workers that get ready side by side and measure one at a time.

Most of a GPU benchmark's time goes to starting and compiling, which needs no GPU for itself;
measuring does. A worker calls `serve`; who started it waits until all of a group are ready, and
then asks one after the other, in turns if it likes. Needs the standard library alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

Row = dict[str, Any]
_READY, _DONE = "ready", "done"


def serve(measure: Callable[[], Iterable[Row]]) -> None:
    """Say that all is compiled; then measure for every line that comes in."""
    print(_READY, flush=True)
    for _ in sys.stdin:
        for row in measure():
            print(json.dumps(row), flush=True)
        print(_DONE, flush=True)


class Worker:
    """`python -m MODULE worker JOB`, in a process of its own; `python` may be another
    environment's, and the folder `path` comes first of those that it imports from."""

    def __init__(self, module: str, job: Row, python: str = sys.executable, path: str = ""):
        self.module, self.job = module, job
        known = os.environ.get("PYTHONPATH", "")
        self.process = subprocess.Popen(
            [python, "-m", module, "worker", json.dumps(job)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {
                "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # they share a GPU
                "PYTHONPATH": os.pathsep.join(filter(None, (path, known))),
            },
        )  # fmt: skip

    def ready(self) -> bool:
        """Waits for it; False where it died instead."""
        return _READY in self._until(_READY)

    def measure(self) -> list[Row]:
        """Of one turn; nothing where it died."""
        assert self.process.stdin is not None
        try:
            print("go", file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return []
        return [json.loads(line) for line in self._until(_DONE) if line.startswith("{")]

    def _until(self, last: str) -> list[str]:
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            if lines[-1] == last:
                return lines
        print(f"{self.job}: no answer", file=sys.stderr, flush=True)
        return lines

    def close(self) -> None:
        """What it measures with is given back."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Group:
    """Workers that have been waited for, closed at the end."""

    def __init__(self, workers: list[Worker]):
        self.started = workers
        self.workers = [worker for worker in workers if worker.ready()]

    def __enter__(self) -> list[Worker]:
        return self.workers

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        where: TracebackType | None,
    ) -> None:  # fmt: skip
        for worker in self.started:
            worker.close()
