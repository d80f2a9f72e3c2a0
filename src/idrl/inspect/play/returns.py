"""The distributions of the return through an episode, as histograms.

All steps have the same bins, which are known at the end. Until then each chunk of steps has bins
of its own: as wide as a power of two and at its multiples, so that narrow ones add up to wide ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from idrl.inspect.play.rows import CHUNK, Rows

_BINS = 48  # at most, or one more
_FINEST = 2.0**-16  # what is less of a distribution is not kept: a page has bytes


class Returns(NamedTuple):
    """The distributions of the return as histograms: `probs` `[T, A, B]` on equal bins. Of an
    agent with an actor, A are the action taken and the actor's."""

    low: float
    high: float
    probs: Any  # an array, or packed rows that are read like one


class _Chunk(NamedTuple):
    low: float  # of the values that have a thousandth of the mass of their distribution
    high: float
    atoms: np.ndarray | None  # [N] where all distributions are on the same values
    power: int  # else bins are 2**power wide,
    first: int  # and the first begins at so many times that
    probs: Rows  # [T, A, N or bins]


class ReturnsRecorder:
    """Of an episode, step by step."""

    def __init__(self) -> None:
        self.chunks: list[_Chunk] = []
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []

    def append(self, values: np.ndarray, weights: np.ndarray) -> None:
        """Of one step, `[A, N]`."""
        self._waiting.append((values, weights))
        if len(self._waiting) == CHUNK:
            self._pack()

    def _pack(self) -> None:
        values, weights = (np.stack(one) for one in zip(*self._waiting, strict=True))
        self._waiting = []
        heavy = values[(weights > 1e-3) & np.isfinite(values)]
        low, high = (float(heavy.min()), float(heavy.max())) if heavy.size else (0.0, 0.0)
        atoms = values[0, 0].copy()  # not a view, which would hold all of them
        if (values == atoms).all() and (np.diff(atoms) > 0).all():
            self.chunks.append(_Chunk(low, high, atoms, 0, 0, _rounded(weights)))
            return
        power = _power(low, high)
        first, count = _span(low, high, power)
        probs = _rounded(_binned(values, weights, power, first, count))
        self.chunks.append(_Chunk(low, high, None, power, first, probs))

    def finish(self) -> Returns | None:
        """All steps on the same bins, over the range where any of them has a thousandth of its
        mass."""
        if self._waiting:
            self._pack()
        if not self.chunks:
            return None
        low, high = min(c.low for c in self.chunks), max(c.high for c in self.chunks)
        if (atoms := self._fixed()) is not None:
            return self._on_atoms(atoms, low, high)
        if not low < high:
            low, high = low - 0.5, low + 0.5
        power = max([_power(low, high), *(c.power for c in self.chunks if c.atoms is None)])
        first, count = _span(low, high, power)
        probs = Rows(p for c in self.chunks for p in _wider(c, power, first, count))
        return Returns(math.ldexp(first, power), math.ldexp(first + count, power), probs)

    def _fixed(self) -> np.ndarray | None:
        """The values of all distributions, where they are the same through the episode."""
        atoms = self.chunks[0].atoms
        same = atoms is not None and all(
            c.atoms is not None and np.array_equal(c.atoms, atoms) for c in self.chunks
        )
        return atoms if same else None

    def _on_atoms(self, atoms: np.ndarray, low: float, high: float) -> Returns:
        """Each in the middle of its own bin; what is beyond the range is in the outermost."""
        inside = np.flatnonzero((atoms >= low) & (atoms <= high))
        start, end = (int(inside[0]), int(inside[-1])) if len(inside) else (0, len(atoms) - 1)
        place = np.clip(np.arange(len(atoms)), start, end) - start
        probs = Rows(p for c in self.chunks for p in _moved(c.probs, place, end - start + 1))
        half = (atoms[end] - atoms[start]) / max(end - start, 1) / 2 or 0.5
        return Returns(float(atoms[start] - half), float(atoms[end] + half), probs)


def _rounded(probs: np.ndarray) -> Rows:
    """Few digits pack well."""
    return Rows((np.rint(probs / _FINEST) * _FINEST).astype(np.float32))


def _power(low: float, high: float) -> int:
    """Bins of 2**power are few enough between these. Where there is but one value they are narrow
    beside it: whatever comes later can be added up."""
    wide = (high - low) / _BINS or max(abs(low), 1e-6) * 2.0**-20
    return math.ceil(math.log2(wide))


def _span(low: float, high: float, power: int) -> tuple[int, int]:
    """The first bin, and how many there are."""
    first, last = (math.floor(math.ldexp(x, -power)) for x in (low, high))
    return first, last - first + 1


def _binned(values: Any, weights: Any, power: int, first: int, count: int) -> np.ndarray:
    """`[T, A, N]` → `[T, A, count]`; what is beyond is in the outermost bins."""
    place = np.floor(np.ldexp(values.astype(np.float64), -power)) - first
    place = np.nan_to_num(place).clip(0, count - 1).astype(int)
    rows = np.arange(place[..., 0].size).reshape(*place.shape[:-1], 1)
    flat = np.bincount((rows * count + place).ravel(), weights.ravel(), rows.size * count)
    return flat.reshape(*place.shape[:-1], count)


def _wider(chunk: _Chunk, power: int, first: int, count: int) -> Iterator[np.ndarray]:
    if chunk.atoms is not None:
        bins = [math.floor(math.ldexp(float(x), -power)) for x in chunk.atoms]
    else:
        bins = [(chunk.first + i) >> (power - chunk.power) for i in range(chunk.probs.shape[-1])]
    return _moved(chunk.probs, np.clip(np.array(bins) - first, 0, count - 1), count)


def _moved(probs: Rows, place: np.ndarray, count: int) -> Iterator[np.ndarray]:
    """Each bin's share at its place among `count` others."""
    to = np.zeros((len(place), count), np.float32)
    to[np.arange(len(place)), place] = 1
    return (row @ to for row in probs)
