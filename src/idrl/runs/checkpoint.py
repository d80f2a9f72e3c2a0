"""Saves and restores a pytree of arrays: which arrays they are is nobody's business here.

A checkpoint is a folder `step-000012000` with one safetensors file and a manifest that holds its
checksum. It is written beside its place and renamed into it, so it is there whole or not at all.
safetensors holds numbers and nothing else: a file of unknown origin cannot run code.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from idrl.errors import IdrlError

ARRAYS, MANIFEST = "state.safetensors", "manifest.json"


def save(folder: Path, steps: int, tree: Any, meta: dict[str, Any], keep: int = 2) -> Path:
    """Write `tree` and `meta` as `folder/step-…`; then only the newest `keep` stay."""
    place = folder / f"step-{steps:012d}"
    draft = folder / f".draft-{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    arrays = {name: np.ascontiguousarray(leaf) for name, leaf in _named(jax.device_get(tree))}
    save_file(arrays, draft / ARRAYS)
    manifest = {"sha256": _digest(draft / ARRAYS), "steps": steps, "meta": meta}
    (draft / MANIFEST).write_text(json.dumps(manifest, indent=1))
    for path in (draft / ARRAYS, draft / MANIFEST, draft):
        _sync(path)
    if place.exists():  # the same step again, after a resume
        shutil.rmtree(place)
    draft.rename(place)
    _sync(folder)
    for old in listed(folder)[:-keep]:
        shutil.rmtree(old)
    return place


def listed(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(p.parent for p in folder.glob(f"step-*/{MANIFEST}"))


def newest(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest intact checkpoint, and a sentence on each damaged one that was passed over."""
    damaged: list[str] = []
    for place in reversed(listed(folder)):
        try:
            manifest = json.loads((place / MANIFEST).read_text())
            if _digest(place / ARRAYS) == manifest["sha256"]:
                return place, damaged
            damaged.append(f"{place.name} is damaged: {ARRAYS} does not match its checksum.")
        except (OSError, ValueError, KeyError) as error:
            damaged.append(f"{place.name} is damaged: {error}.")
    return None, damaged


def read_meta(place: Path) -> dict[str, Any]:
    return json.loads((place / MANIFEST).read_text())["meta"]


def restore(place: Path, like: Any, prefix: str = "") -> Any:
    """The saved pytree in the structure of `like` (arrays or shapes), whose sizes are checked
    before anything is read; None in a shape is any length, which the file's own size bounds.
    `prefix` names the part of the saved tree that `like` is."""
    treedef = jax.tree.structure(like)
    leaves = []
    try:
        with safe_open(place / ARRAYS, framework="numpy") as saved:
            known = set(saved.keys())
            for name, leaf in _named(like):
                name = prefix + name
                if name not in known:
                    raise IdrlError(f"{place.name} holds no {name!r}: it is of another config.")
                shape = tuple(saved.get_slice(name).get_shape())
                if not _fits(shape, tuple(leaf.shape)):
                    raise IdrlError(
                        f"{place.name} holds {name!r} as {shape}, but its config says {leaf.shape}."
                    )
                array = saved.get_tensor(name)
                if array.dtype != leaf.dtype:
                    raise IdrlError(
                        f"{place.name} holds {name!r} as {array.dtype}, not {leaf.dtype}."
                    )
                leaves.append(array)
    except (SafetensorError, OSError) as error:
        raise IdrlError(f"{place} cannot be read: {error}.") from None
    return jax.tree.unflatten(treedef, leaves)


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        w in (None, n) for n, w in zip(shape, wanted, strict=True)
    )


def _named(tree: Any) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in leaves]


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
