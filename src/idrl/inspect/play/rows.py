"""Rows of an episode, packed: an Atari episode of 27,000 steps has gigabytes of pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import zstandard

CHUNK = 256  # rows that are packed together, at most
_CHUNK_BYTES = 2**23  # and of these, before they are packed, unless one row is more


def rows_in_chunk(row_bytes: int) -> int:
    """How many rows of so many bytes are packed together."""
    return max(1, min(CHUNK, _CHUNK_BYTES // max(row_bytes, 1)))


class Rows:
    """`[T, ...]`, appended row by row. It is read like an array, by index, by slice or whole
    (`np.asarray`); one chunk is unpacked at a time."""

    def __init__(self, rows: Iterable[Any] = ()) -> None:
        self._packed: list[bytes] = []
        self._waiting: list[np.ndarray] = []
        self._unpacked: tuple[int, np.ndarray] | None = None  # the chunk that was read last
        self._low, self._high = np.inf, -np.inf
        self._length, self._chunk = 0, CHUNK
        self._row: tuple[int, ...] = ()
        self.dtype = np.dtype(np.uint8)
        for row in rows:
            self.append(row)

    def append(self, row: Any) -> None:
        """A row that nobody writes to again."""
        row = np.asarray(row)
        if not self._length:
            self._row, self.dtype = row.shape, row.dtype
            self._chunk = rows_in_chunk(row.nbytes)
        self._waiting.append(row)
        self._length += 1
        if len(self._waiting) == self._chunk:
            self._pack()

    def _pack(self) -> None:
        rows = np.stack(self._waiting)
        assert rows.dtype == self.dtype, f"{rows.dtype} after {self.dtype}"
        self._low, self._high = min(self._low, rows.min()), max(self._high, rows.max())
        packed = zstandard.ZstdCompressor(level=3).compress(_planes(rows).data)
        # A copy of its own size: what zstandard returns holds on to room for the worst case.
        self._packed.append(bytes(memoryview(packed)))
        self._waiting = []

    def _chunk_at(self, number: int) -> np.ndarray:
        if number == len(self._packed):  # the last rows are not packed yet
            return np.stack(self._waiting)
        if self._unpacked is None or self._unpacked[0] != number:
            data = zstandard.ZstdDecompressor().decompress(self._packed[number])
            flat = np.frombuffer(data, self.dtype)
            self._unpacked = number, _rows(flat, (self._chunk, *self._row))
        return self._unpacked[1]

    def __len__(self) -> int:
        return self._length

    @property
    def shape(self) -> tuple[int, ...]:
        return self._length, *self._row

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def held(self) -> int:
        """Bytes in memory."""
        return sum(map(len, self._packed)) + sum(row.nbytes for row in self._waiting)

    def chunks(self) -> Iterator[np.ndarray]:
        for number in range(-(-self._length // self._chunk)):
            yield self._chunk_at(number)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (row for chunk in self.chunks() for row in chunk)

    def __getitem__(self, key: Any) -> Any:
        first, *rest = key if isinstance(key, tuple) else (key,)
        if isinstance(first, int | np.integer):
            t = range(self._length)[int(first)]  # from the end too, or IndexError
            row = self._chunk_at(t // self._chunk)[t % self._chunk]
            return row[tuple(rest)]
        if isinstance(first, slice):
            steps = range(self._length)[first]
            chosen = np.empty((len(steps), *self._row), self.dtype)
            for i, t in enumerate(steps):
                chosen[i] = self[t]
            return chosen[(slice(None), *rest)]
        return np.asarray(self)[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype)

    def min(self) -> float:
        """Of all numbers."""
        return min([self._low, *(row.min() for row in self._waiting)])

    def max(self) -> float:
        """Of all numbers."""
        return max([self._high, *(row.max() for row in self._waiting)])

    def map(self, make: Callable[[np.ndarray], np.ndarray]) -> Rows:
        """What `make` makes of the rows, chunk by chunk."""
        return Rows(row for chunk in self.chunks() for row in make(chunk))


def _planes(rows: np.ndarray) -> np.ndarray:
    """Pictures channel by channel: of a stack all but the newest are those of the row before."""
    return np.ascontiguousarray(np.moveaxis(rows, -1, 1) if rows.ndim == 4 else rows)


def _rows(flat: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if len(shape) == 4:
        return np.moveaxis(flat.reshape(shape[0], shape[3], *shape[1:3]), 1, -1)
    return flat.reshape(shape)
