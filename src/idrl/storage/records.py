"""Records of a run: CSV files that only grow.

A checkpoint remembers how long each file was. A resumed run cuts them back to that length, so
that every row is there once, whatever was half-written when the process died.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from idrl.errors import IdrlError
from idrl.storage.files import open_plain, sync
from idrl.system import words

LARGEST = 2**30  # bytes of a table that is read
_LONGEST = 2**20  # bytes of one of its lines
PERCENTILES = (0, 5, 25, 50, 75, 95, 100)


class Table:
    """One CSV file. Its columns are those of its first row."""

    def __init__(self, path: Path):
        self.path = path
        self.columns: list[str] | None = None  # once a row was written
        self.told = False  # that it has no column for something

    def append(self, rows: Iterable[dict[str, Any]]) -> None:
        rows = list(rows)
        if not rows:
            return
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if self.columns is None and self.length():
            with opened(self.path) as lines:
                self.columns = next(csv.reader(lines), None)
        if self.columns is None:
            self.columns = list(rows[0])
            writer.writerow(self.columns)
        new = [name for name in rows[0] if name not in self.columns]
        if new and not self.told:
            self.told = True
            warnings.warn(
                f"{self.path.name} was begun without {' and '.join(map(repr, new))}, which it will "
                "not have; a new run has.",
                stacklevel=2,
            )
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
        self.columns = None


@contextlib.contextmanager
def opened(path: Path, named: bool = False) -> Iterator[Iterator[str]]:
    """The lines of a table, which may be anything: IdrlError where it is none. `named`: see
    `files.open_plain`."""
    try:
        with open_plain(path, named) as file:
            size = os.fstat(file.fileno()).st_size
            if size > LARGEST:
                raise ValueError(f"it has {size:,} bytes, and at most {LARGEST:,} are read")
            yield _lines(file)
    except (FileNotFoundError, IdrlError):
        raise
    except (OSError, ValueError, csv.Error) as error:
        what = f"the file {str(path)!r}" if named else f"its {path.name}"
        raise IdrlError(f"{what} is damaged: {_said(error)}.") from None


def _lines(file) -> Iterator[str]:
    while line := file.readline(_LONGEST):
        if len(line) == _LONGEST and not line.endswith(b"\n"):
            raise ValueError(f"a line has more than {_LONGEST:,} bytes")
        yield line.decode("utf-8")


def _said(error: Exception) -> str:
    return words.sentence(" ".join(str(error).split()), 200).rstrip(".")


def read_table(
    path: Path, whole: Sequence[str] = (), numeric: Sequence[str] = (), maybe: Sequence[str] = ()
) -> list[dict[str, str]]:
    """Its rows as texts; none where there is no such file. The columns `whole` hold whole numbers
    from 0 on, and `numeric` numbers or nothing, as `maybe` do where they are there. Where nothing
    is asked of them a last row that is still being written is left out."""
    try:
        with opened(path) as lines:
            rows = _rows(lines, growing=not whole)
            more = [name for name in maybe if rows and name in rows[0]]
            for row in rows:
                _check_row(row, whole, (*numeric, *more))
            return rows
    except FileNotFoundError:
        return []


def _rows(lines: Iterator[str], growing: bool) -> list[dict[str, str]]:
    last = ""

    def noted() -> Iterator[str]:
        nonlocal last
        for line in lines:
            last = line
            yield line

    reader = csv.reader(noted())
    names = next(reader, [])
    if len(set(names)) < len(names):
        raise ValueError("two of its columns have the same name")
    rows = []
    for cells in reader:
        if len(cells) != len(names) and cells:
            if growing and len(cells) < len(names) and not last.endswith("\n"):
                break
            raise ValueError(f"line {reader.line_num} has {len(cells)} cells, not {len(names)}")
        if cells:
            rows.append(dict(zip(names, cells, strict=True)))
    return rows


def _check_row(row: dict[str, str], whole: Sequence[str], numeric: Sequence[str]) -> None:
    for column in (*whole, *numeric):
        if column not in row:
            raise ValueError(f"it has no column {column!r}")
    for column in whole:
        if not 0 <= int(row[column]) < 2**53:
            raise ValueError(f"{column} is {words.value(row[column])}")
    for column in numeric:
        if row[column]:
            float(row[column])


def read_evaluations(run: Path) -> list[dict[str, str]]:
    """Of a run folder; `regret`, `episodes` and `truncated` are numbers where they are there."""
    maybe = ("regret", "episodes", "truncated")
    return _of_seeds(run / "evaluations.csv", ("return_mean", "best"), maybe)


def read_episodes(run: Path) -> list[dict[str, str]]:
    return _of_seeds(run / "episodes.csv", ("return",), ("bad", "regret"))


def read_distributions(run: Path) -> list[dict[str, str]]:
    rows = _of_seeds(run / "distributions.csv", ("mean", *(f"p{p}" for p in PERCENTILES)))
    if rows and "quantity" not in rows[0]:
        raise IdrlError("its distributions.csv is damaged: it has no column 'quantity'.")
    return rows


def _of_seeds(path: Path, numeric: Sequence[str], maybe: Sequence[str] = ()):
    return read_table(path, ("seed", "steps"), numeric, maybe)


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
