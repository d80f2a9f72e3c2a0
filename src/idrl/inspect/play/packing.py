"""Arrays small enough for a page: what changes little from step to step packs well.

Steps are cut into chunks that a browser unpacks when it gets there, with what every browser has
(DecompressionStream). Within a chunk each step is the difference to the one before.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

CHUNK = 256  # steps


def pack_bytes(frames: np.ndarray, chunk: int = CHUNK) -> dict[str, Any]:
    """`[T, ...]` of uint8."""
    flat = frames.reshape(len(frames), -1)
    chunks = []
    for start in range(0, len(flat), chunk):
        part = flat[start : start + chunk]
        change = np.concatenate([part[:1], part[1:] ^ part[:-1]])
        chunks.append(_text(change.tobytes()))
    return {"chunk": chunk, "shape": list(frames.shape[1:]), "chunks": chunks}


def pack_floats(values: np.ndarray, bits: int) -> dict[str, Any]:
    """`[T, ...]` of float32 with `bits` of the mantissa's 23 kept (16: 5 digits; 8: 2 to 3)."""
    drop = 23 - bits
    words = np.ascontiguousarray(values, np.float32).view(np.uint32)
    finite = np.isfinite(values)
    rounded = np.where(finite, words.astype(np.uint64) + (1 << (drop - 1)), words)
    kept = (rounded >> drop << drop).astype(np.uint32)
    # Bytes of one weight together: the high ones hardly change, the low ones are zero.
    high_first = kept.reshape(len(values), -1).astype(">u4").view(np.uint8)
    planes = high_first.reshape(len(values), -1, 4).swapaxes(1, 2)
    packed = pack_bytes(np.ascontiguousarray(planes))
    return packed | {"shape": list(values.shape[1:])}


def _text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")
