"""How far a run is, from the tables that it writes."""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from idrl.errors import IdrlError
from idrl.storage.files import open_plain
from idrl.storage.records import numbers, read_table
from idrl.sweep.job import Job


class Tail:
    """Steps so far, how many a second, and the evaluations of a run that goes on elsewhere."""

    def __init__(self, job: Job, path: Path):
        self.job, self.path = job, path
        self.before: tuple[int, float] | None = None
        self.rate = 0.0

    def read(self) -> dict[str, Any]:
        steps, now = last_step(self.path / "metrics.csv"), time.monotonic()
        if self.before is None:
            self.before = steps, now
        elif steps > self.before[0]:
            made = (steps - self.before[0]) * self.job.seeds
            self.rate = made / max(now - self.before[1], 1e-9)
            self.before = steps, now
        return {
            "steps": steps, "of": self.job.steps, "rate": self.rate, "at": time.time(),
            "evaluations": evaluations(self.path),
        }  # fmt: skip


def last_step(path: Path) -> int:
    """Of the last whole row."""
    try:
        with open_plain(path) as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 4096))
            lines = file.read().split(b"\n")[:-1]
        return int(float(lines[-1].split(b",")[1])) if lines else 0
    except (OSError, ValueError, IndexError, OverflowError):
        return 0  # nothing yet, or the names of the columns alone


def evaluations(path: Path) -> list[tuple[int, float]]:
    """Steps with the mean over seeds, where all of them were evaluated."""
    try:
        rows = read_table(path / "evaluations.csv", ("steps",), ("return_mean",))
    except IdrlError:
        return []  # a row is being written
    steps, returns = numbers(rows, "steps"), numbers(rows, "return_mean")
    found: dict[int, list[float]] = defaultdict(list)
    for step, value in zip(steps, returns, strict=True):
        if math.isfinite(step) and math.isfinite(value):
            found[int(step)].append(value)
    whole = max(map(len, found.values()), default=0)
    return [(s, sum(v) / len(v)) for s, v in sorted(found.items()) if len(v) == whole]
