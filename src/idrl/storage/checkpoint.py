"""Saves and restores a pytree of arrays: which arrays they are is nobody's business here.

A checkpoint is a folder `step-000012000` with one safetensors file and a manifest that holds its
checksum and one of its own. It is written beside its place and renamed into it, so it is there
whole or not at all, whenever the process dies; old ones leave their place before they are deleted.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from idrl.errors import IdrlError
from idrl.storage.arrays import array_shape, read_arrays, write_arrays
from idrl.storage.files import check_shape, open_plain, read_text, sync

ARRAYS, MANIFEST = "state.safetensors", "manifest.json"
_LARGEST_MANIFEST = 16 * 2**20  # bytes; ours are a few thousand


def save(folder: Path, steps: int, tree: Any, meta: dict[str, Any], keep: int = 2) -> Path:
    """Write `tree` and `meta` as `folder/step-…`; then only the newest `keep` stay."""
    place = folder / f"step-{steps:012d}"
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(".*-*"):  # of a process that died; this one holds the run's lock
        shutil.rmtree(left, ignore_errors=True)
    draft = folder / f".draft-{os.getpid()}"
    try:
        draft.mkdir()
        write_arrays(draft / ARRAYS, tree)
        manifest = {"sha256": _digest(draft / ARRAYS), "steps": steps, "meta": meta}
        text = json.dumps(manifest | {"check": _checksum(manifest)}, indent=1)
        (draft / MANIFEST).write_text(text, encoding="utf-8")
        for path in (draft / ARRAYS, draft / MANIFEST, draft):
            sync(path)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)  # it may be what fills the disk
        raise
    if place.exists():  # the same step again, after a resume
        discard(place)
    draft.rename(place)
    sync(folder)
    for old in listed(folder)[:-keep]:
        discard(old)
    return place


def discard(place: Path) -> None:
    """Delete a checkpoint so that no half of it is ever found in its place."""
    away = place.with_name(f".old-{place.name}")
    shutil.rmtree(away, ignore_errors=True)
    place.rename(away)
    shutil.rmtree(away)


def set_aside(folder: Path, names: list[str]) -> None:
    """Rename checkpoints that are damaged, so that they neither count nor are written over."""
    for name in names:
        number = 1
        while (folder / f"damaged-{name}-{number}").exists():
            number += 1
        (folder / name).rename(folder / f"damaged-{name}-{number}")


def listed(folder: Path) -> list[Path]:
    """Checkpoints, oldest first. Folders of other names are not ours."""
    found = (p for p in folder.glob("step-*") if re.fullmatch(r"step-[0-9]{12,18}", p.name))
    return sorted((p for p in found if p.is_dir()), key=steps_of)


def steps_of(place: Path) -> int:
    """After how many steps a checkpoint was made."""
    return int(place.name.removeprefix("step-"))


def newest(
    folder: Path, check: Callable[[dict[str, Any]], None] = lambda meta: None,
    before: Path | None = None,
) -> tuple[Path | None, dict[str, str]]:  # fmt: skip
    """The newest intact checkpoint, and what is wrong with each that was passed over, by name.

    `check` looks at a checkpoint's meta and raises ValueError where it cannot be used; `before`:
    only those older than this one.
    """
    damaged: dict[str, str] = {}
    for place in reversed(listed(folder)):
        if before is not None and place.name >= before.name:
            continue
        try:
            check(read_manifest(place)["meta"])
            return place, damaged
        except (ValueError, OSError) as error:
            damaged[place.name] = str(error).rstrip(".")
    return None, damaged


def read_manifest(place: Path) -> dict[str, Any]:
    """What a checkpoint says of itself; ValueError where it or its arrays are damaged."""
    manifest = read_manifest_alone(place)
    _check_there(place, ARRAYS)
    if _digest(place / ARRAYS) != manifest["sha256"]:
        raise ValueError(f"{ARRAYS} does not match its checksum")
    return manifest


def read_manifest_alone(place: Path) -> dict[str, Any]:
    """The same without a look at the arrays, which may be gigabytes."""
    _check_there(place, MANIFEST)
    text = read_text(place / MANIFEST, MANIFEST, _LARGEST_MANIFEST)
    try:
        manifest = json.loads(text)
        check_shape(manifest, MANIFEST)
        said = manifest.pop("check", None)
        # Without a checksum of its own it is one of the first, which had these entries alone.
        own = said == _checksum(manifest) if said else set(manifest) == {"sha256", "steps", "meta"}
        whole = own and isinstance(manifest["meta"], dict) and isinstance(manifest["sha256"], str)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise ValueError(f"{MANIFEST} does not match its checksum")
    if manifest["steps"] != steps_of(place):
        raise ValueError(f"{MANIFEST} is of another step")
    return manifest


def _check_there(place: Path, name: str) -> None:
    if not (place / name).is_file():
        raise ValueError(f"{name} is missing")


def read_meta(place: Path) -> dict[str, Any]:
    try:
        return read_manifest(place)["meta"]
    except (ValueError, OSError) as error:
        raise IdrlError(f"{place.name} is damaged: {error}.") from None


def restore(
    place: Path, like: Any, prefix: str = "", absent: Mapping[str, np.ndarray] | None = None
) -> Any:
    """The saved pytree; see `arrays.read_arrays`."""
    return read_arrays(place / ARRAYS, like, prefix, absent)


def shape(place: Path, name: str) -> tuple[int, ...] | None:
    """Of one array in it, or None where there is no such array."""
    return array_shape(place / ARRAYS, name)


def _checksum(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
