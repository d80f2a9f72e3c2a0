"""What a vector step hands to the device, as one array of bytes.

Handing an array to a GPU takes the host about 0.1 ms, whatever is in it. So frames, what goes with
them and the number of the step travel together, and the program that gets them takes them apart.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

_NUMBER = np.dtype(np.int32)


class Parcel:
    """How arrays `[S, E, ...]` and a number lie side by side in bytes `[S, E, N]`.

    `parts` are the shapes behind `[S, E]` and the types of the arrays; None is one that is not
    there.
    """

    def __init__(self, *parts: tuple[tuple[int, ...], Any] | None):
        # As JAX would take them: 64 bits become 32.
        self.parts = [
            part and (tuple(part[0]), np.dtype(jax.dtypes.canonicalize_dtype(part[1])))
            for part in parts
        ]

    def pack(self, number: int, *arrays: np.ndarray | None) -> np.ndarray:
        """Where the number is the same for all of them, every environment has it."""
        whole = next(x for x in arrays if x is not None)
        lead = whole.shape[:2]
        columns = [np.broadcast_to(_NUMBER.type(number), lead)[..., None]]
        for part, array in zip(self.parts, arrays, strict=True):
            if part is not None:
                assert array is not None
                columns.append(np.ascontiguousarray(array, part[1]).reshape(*lead, -1))
        return np.concatenate([np.ascontiguousarray(x).view(np.uint8) for x in columns], -1)

    def unpack(self, parcel: jax.Array) -> tuple[jax.Array, list[Any]]:
        """The number, one for all seeds, and the arrays."""
        number = jax.lax.bitcast_convert_type(parcel[0, 0, : _NUMBER.itemsize], _NUMBER)
        arrays: list[Any] = []
        begin = _NUMBER.itemsize
        for part in self.parts:
            if part is None:
                arrays.append(None)
                continue
            shape, dtype = part
            end = begin + math.prod(shape) * dtype.itemsize
            arrays.append(_read(parcel[..., begin:end], shape, dtype))
            begin = end
        return number, arrays


def _read(data: jax.Array, shape: tuple[int, ...], dtype: np.dtype) -> jax.Array:
    """`[S, E, bytes]` as `[S, E, *shape]` of `dtype`."""
    lead = data.shape[:2]
    if dtype.kind == "b":
        return data.reshape(*lead, *shape) != 0
    if dtype.itemsize > 1:
        data = data.reshape(*lead, *shape, dtype.itemsize)
        return jax.lax.bitcast_convert_type(data, dtype)
    return jax.lax.bitcast_convert_type(data.reshape(*lead, *shape), dtype)
