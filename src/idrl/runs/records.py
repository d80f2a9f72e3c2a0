"""Records of a run: CSV files that only grow, and whatever else wants to hear of the numbers.

A checkpoint remembers how long each file was. A resumed run cuts them back to that length, so
that every row is there once, whatever was half-written when the process died.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from idrl.runs.arrays import sync


class Sink(Protocol):
    """Somewhere scalars go besides the CSV files."""

    def scalars(self, seed: int, steps: int, values: dict[str, float]) -> None: ...

    def close(self) -> None: ...


class Table:
    """One CSV file. Its columns are those of its first row."""

    def __init__(self, path: Path):
        self.path = path
        self.columns: list[str] | None = None
        if path.exists():
            with open(path, encoding="utf-8", newline="") as file:
                self.columns = next(csv.reader(file), None)

    def append(self, rows: Iterable[dict[str, Any]]) -> None:
        rows = list(rows)
        if not rows:
            return
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if self.columns is None:
            self.columns = list(rows[0])
            writer.writerow(self.columns)
        writer.writerows([_text(row.get(name)) for name in self.columns] for row in rows)
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            file.write(text.getvalue())

    def size(self) -> int:
        """Bytes that are safely on the disk."""
        if not self.path.exists():
            return 0
        sync(self.path)
        sync(self.path.parent)  # its name, where it is new
        return self.path.stat().st_size

    def length(self) -> int:
        """Bytes in it now."""
        return self.path.stat().st_size if self.path.exists() else 0

    def cut(self, size: int) -> None:
        """Forget everything after the first `size` bytes."""
        if self.path.exists():
            os.truncate(self.path, size)
        self.__init__(self.path)  # type: ignore[misc]


def read_table(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def numbers(rows: Sequence[dict[str, str]], column: str) -> list[float]:
    return [float(row[column]) if row[column] else math.nan for row in rows]


def _text(value: Any) -> str:
    """Shortest text that reads back as the same number; a missing value is empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(value) if isinstance(value, float) else str(value)


class TensorBoard:
    """Events per seed, written with the `tensorboard` package (an optional extra)."""

    def __init__(self, folder: Path):
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary, self._writer = Event, Summary, EventFileWriter
        self._folder = folder
        self._files: dict[int, Any] = {}

    def scalars(self, seed: int, steps: int, values: dict[str, float]) -> None:
        import time

        if seed not in self._files:
            self._files[seed] = self._writer(str(self._folder / f"seed-{seed}"))
        entries = [
            self._summary.Value(tag=name, simple_value=value)
            for name, value in values.items()
            if not math.isnan(value)
        ]
        summary = self._summary(value=entries)
        self._files[seed].add_event(self._event(wall_time=time.time(), step=steps, summary=summary))

    def close(self) -> None:
        for file in self._files.values():
            file.close()
