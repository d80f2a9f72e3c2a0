"""Arrays small enough for a page: what changes little from step to step packs well.

Steps are cut into chunks that a browser unpacks when it gets there, with what every browser has
(DecompressionStream). Within a chunk each step is the difference to the one before.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from idrl.inspect.play.rows import rows_in_chunk


class TooLarge(Exception):
    """More text than a page may have."""


def pack_bytes(
    rows: Any, make: Callable[[np.ndarray], np.ndarray] = np.asarray, *, chunk: int = 0,
    every: int = 1, most: float = math.inf,
) -> dict[str, Any]:  # fmt: skip
    """Rows `[T, ...]`, an array or packed ones, as what `make` makes of a chunk of them: uint8.
    Of `every` so many steps one is packed. TooLarge, and no more work, beyond `most` bytes."""
    chunk = chunk or rows_in_chunk(rows[:1].nbytes)
    chunks: list[str] = []
    size, shape = 0, make(rows[:1]).shape[1:]
    for start in range(0, len(rows), chunk * every):
        part = make(rows[start : start + chunk * every : every])
        part = part.reshape(len(part), -1)
        change = np.concatenate([part[:1], part[1:] ^ part[:-1]])
        chunks.append(_text(change.tobytes()))
        size += len(chunks[-1])
        if size > most:
            raise TooLarge
    return {"chunk": chunk, "every": every, "shape": list(shape), "chunks": chunks}


def pack_floats(rows: Any, bits: int, **how: Any) -> dict[str, Any]:
    """`[T, ...]` of float32 with `bits` of the mantissa's 23 kept (16: 5 digits; 8: 2 to 3)."""
    packed = pack_bytes(rows, lambda values: _planes(values, bits), **how)
    return packed | {"shape": list(rows.shape[1:])}


def _planes(values: np.ndarray, bits: int) -> np.ndarray:
    drop = 23 - bits
    words = np.ascontiguousarray(values, np.float32).view(np.uint32)
    finite = np.isfinite(values)
    rounded = np.where(finite, words.astype(np.uint64) + (1 << (drop - 1)), words)
    kept = (rounded >> drop << drop).astype(np.uint32)
    # Bytes of one weight together: the high ones hardly change, the low ones are zero.
    high_first = kept.reshape(len(values), -1).astype(">u4").view(np.uint8)
    planes = high_first.reshape(len(values), -1, 4).swapaxes(1, 2)
    return np.ascontiguousarray(planes)


def _text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")
