"""Pytrees of arrays in safetensors files: numbers and nothing else, so a file of unknown origin
cannot run code. What is in one is compared with what is wanted before a single number is read."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from idrl.errors import IdrlError
from idrl.storage.files import open_plain

_LARGEST_HEADER = 16 * 2**20  # bytes of names and shapes; ours have some ten thousand
_BFLOAT16 = jnp.dtype(jnp.bfloat16)
# As safetensors calls them. A dtype that is not here is in no state of ours.
_DTYPES = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16,
    "U32": np.uint32, "I32": np.int32, "U64": np.uint64, "I64": np.int64,
    "F16": np.float16, "F32": np.float32, "F64": np.float64,
}  # fmt: skip


def write_arrays(path: Path, tree: Any, metadata: dict[str, str] | None = None) -> None:
    """Every leaf under the name of its path in `tree`."""
    arrays = {
        name: _bits(np.asarray(leaf, order="C")) for name, leaf in _named(jax.device_get(tree))
    }
    try:
        save_file(arrays, path, metadata)
    except SafetensorError as error:  # its wrapping of what the disk said
        raise OSError(str(error)) from None


def read_arrays(
    path: Path, like: Any, prefix: str = "", absent: Mapping[str, np.ndarray] | None = None
) -> Any:
    """The pytree in the structure of `like` (arrays or shapes); None in a shape is any length,
    which the file's own size bounds. `prefix` names the part of the saved tree that `like` is;
    `absent` holds what an array is that an older file does not have."""
    label = path if path.parent.name == "" else f"{path.parent.name}/{path.name}"
    leaves = []
    try:
        _check_header(path)
        with safe_open(path, framework="numpy") as saved:
            known = set(saved.keys())
            for name, leaf in _named(like):
                name = prefix + name
                if name not in known and absent is not None and name in absent:
                    leaves.append(absent[name])
                    continue
                if name not in known:
                    raise IdrlError(f"{label} holds no {name!r}: it is of another config.")
                part = saved.get_slice(name)
                _check(f"{label} holds {name!r}", part.get_shape(), part.get_dtype(), leaf)
                tensor = saved.get_tensor(name)
                leaves.append(tensor.view(leaf.dtype) if leaf.dtype == _BFLOAT16 else tensor)
    except (SafetensorError, OSError) as error:
        raise IdrlError(f"{label} cannot be read: {error}.") from None
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def array_shape(path: Path, name: str) -> tuple[int, ...] | None:
    """None where the file has no array of that name."""
    try:
        with safe_open(path, framework="numpy") as saved:
            return tuple(saved.get_slice(name).get_shape()) if name in saved.keys() else None  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise IdrlError(f"{path.name} cannot be read: {error}.") from None


def check_finite(tree: Any, what: str) -> None:
    """Refuse weights with a NaN or an infinity, which would make any action as good as another."""
    wrong = next((n for n, x in _named(jax.device_get(tree)) if not np.isfinite(x).all()), None)
    if wrong is not None:
        raise IdrlError(
            f"{what} cannot be used: {wrong!r} in them holds numbers that are not finite."
        )


def read_metadata(path: Path) -> dict[str, str]:
    try:
        _check_header(path)
        with safe_open(path, framework="numpy") as saved:
            return saved.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise IdrlError(f"{str(path)!r} is not a safetensors file: {error}.") from None


def _check_header(path: Path) -> None:
    """OSError where what is said of the arrays is too large to be looked at."""
    with open_plain(path, named=True) as file:
        (size,) = struct.unpack("<Q", file.read(8).ljust(8, b"\xff"))
    if size > _LARGEST_HEADER:
        raise OSError("it is not a safetensors file, or its header is too large")


def _check(what: str, shape: list[int], dtype: str, leaf: Any) -> None:
    fits = len(shape) == len(leaf.shape) and all(
        wanted in (None, n) for n, wanted in zip(shape, leaf.shape, strict=True)
    )
    if not fits:
        raise IdrlError(f"{what} as {tuple(shape)}, but its config says {tuple(leaf.shape)}.")
    if _DTYPES.get(dtype) != (np.uint16 if leaf.dtype == _BFLOAT16 else leaf.dtype):
        raise IdrlError(f"{what} as {dtype}, not {leaf.dtype}.")


def _bits(array: np.ndarray) -> np.ndarray:
    """NumPy has no bfloat16 of its own: such numbers are kept as what they are made of."""
    return array.view(np.uint16) if array.dtype == _BFLOAT16 else array


def _named(tree: Any) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in leaves]
