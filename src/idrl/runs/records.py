"""Records of a run: CSV files that only grow.

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
from typing import Any

import numpy as np

from idrl.runs.arrays import sync

PERCENTILES = (0, 5, 25, 50, 75, 95, 100)


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


def spread(values: np.ndarray) -> dict[str, float]:
    """Mean and percentiles; each percentile is one of the values, so that infinities stay in."""
    values = values.astype(np.float64).reshape(-1)
    found = np.percentile(values, PERCENTILES, method="inverted_cdf").tolist()
    named = {f"p{p}": value for p, value in zip(PERCENTILES, found, strict=True)}
    return {"mean": float(values.mean()), **named}


def numbers(rows: Sequence[dict[str, str]], column: str) -> list[float]:
    return [float(row[column]) if row[column] else math.nan for row in rows]


def _text(value: Any) -> str:
    """Shortest text that reads back as the same number; a missing value is empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(value) if isinstance(value, float) else str(value)
