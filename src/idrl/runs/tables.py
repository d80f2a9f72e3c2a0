"""A run's records as columns of numbers."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from idrl.errors import IdrlError, unknown
from idrl.system import words

_SHOWN = 5  # rows at either end, where there are more than twice as many


class RecordTable:
    """A table of records with columns by name.

    `table["steps"]` is a NumPy array, `table[-1]` a row as a dictionary, `table[10:]` a table, and
    `table.where(seed=0)` the rows of one seed. Integers are int64, other numbers float64 (NaN where
    a cell is empty), everything else text.
    """

    def __init__(self, columns: dict[str, np.ndarray], name: str = "table"):
        self._columns, self.name = columns, name

    @classmethod
    def of_rows(cls, rows: Sequence[dict[str, Any]], name: str = "table") -> RecordTable:
        """A table from dictionaries with the same keys, of numbers or of the texts of a CSV file.

        Args:
            rows: the dictionaries.
            name: what error messages call it.
        """
        names = list(rows[0]) if rows else []
        return cls({n: _column([row.get(n) for row in rows]) for n in names}, name)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def keys(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __contains__(self, column: object) -> bool:
        return column in self._columns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, what: str) -> np.ndarray: ...
    @overload
    def __getitem__(self, what: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, what: slice | np.ndarray) -> RecordTable: ...
    def __getitem__(self, what):
        if isinstance(what, str):
            if what not in self._columns:
                raise _no_column(what, self)
            return self._columns[what]
        if isinstance(what, int | np.integer):
            if not -len(self) <= what < len(self):
                raise IndexError(f"{self.name} has {len(self)} rows, none of which is {what}")
            return {name: values[what].item() for name, values in self._columns.items()}
        return RecordTable({name: x[what] for name, x in self._columns.items()}, self.name)

    def where(self, **values: Any) -> RecordTable:
        """The rows whose columns have these values."""
        if not len(self):
            return self
        chosen = np.ones(len(self), bool)
        for name, value in values.items():
            chosen &= self[name] == value
        return self[chosen]

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise IdrlError(
                "to_pandas() needs pandas, which is not installed: pip install pandas."
            ) from None
        return pandas.DataFrame(self._columns)

    def __repr__(self) -> str:
        if not len(self):
            return self._title
        lines = self._lines()
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        rows = ("  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in lines)
        return "\n".join([self._title, *rows])

    def _repr_html_(self) -> str:
        from idrl.system.tables import TextTable  # rich takes a while to import

        heads, *rows = self._lines()
        return TextTable(heads, rows, self._title).html()

    @property
    def _title(self) -> str:
        return f"{self.name}: {len(self):,} rows"

    def _lines(self) -> list[list[str]]:
        """The names of the columns, and the rows at either end."""
        ends = len(self) > 2 * _SHOWN
        numbers = (
            [*range(_SHOWN), *range(len(self) - _SHOWN, len(self))] if ends else range(len(self))
        )
        lines = [
            [*map(_cell, self.columns)],
            *([_cell(x[i]) for x in self._columns.values()] for i in numbers),
        ]
        if ends:
            lines.insert(1 + _SHOWN, ["…"] * len(self.columns))
        return lines


def _no_column(name: str, table: RecordTable) -> IdrlError:
    if not table.columns:
        return IdrlError(f"{table.name} has no rows yet, and so no column {name!r}.")
    return unknown(f"column of {table.name}", name, table.columns)


def _cell(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, np.floating) else words.visible(str(value))
    return text if len(text) <= 20 else text[:19] + "…"


def _column(values: list[Any]) -> np.ndarray:
    """Of one kind, the first that fits all."""
    filled = [value for value in values if value is not None and value != ""]
    for kind in (int, float):
        try:
            if all(kind is float or _is_whole(value) for value in filled):
                parsed = iter([kind(value) for value in filled])
                break
        except (TypeError, ValueError, OverflowError):
            continue
    else:
        return np.array(["" if value is None else str(value) for value in values], dtype=str)
    if kind is int and len(filled) == len(values):
        return np.array(list(parsed), np.int64)
    missing = (value is None or value == "" for value in values)
    return np.array([np.nan if gap else next(parsed) for gap in missing], np.float64)


def _is_whole(value: Any) -> bool:
    """Not a float that happens to be: a column of returns is one of floats throughout."""
    if isinstance(value, str):
        return value.removeprefix("-").isdecimal() and len(value) < 19
    return isinstance(value, int | np.integer)
