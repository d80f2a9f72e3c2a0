"""Small files of a run folder: read with a limit, written whole or not at all."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

from idrl.actions import Actions, from_table
from idrl.errors import IdrlError
from idrl.runs.arrays import sync

_LARGEST = 2**20  # bytes; a config of ours has about a thousand


def write_whole(path: Path, text: str) -> None:
    """The new text, or after whatever happens the old one."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    sync(draft)
    os.replace(draft, path)
    sync(path.parent)


def read_toml(path: Path, what: str = "") -> dict[str, Any]:
    """The tables in a TOML file, which is called `what` in errors."""
    what = what or repr(str(path))
    try:
        return tomllib.loads(_text(path, what))
    except FileNotFoundError:
        raise IdrlError(f"there is no {what}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise IdrlError(f"{what} cannot be read: {error}.") from None
    except RecursionError:
        raise IdrlError(f"{what} is not valid TOML: it is nested too deeply.") from None
    except ValueError as error:
        raise IdrlError(f"{what} is not valid TOML: {_line(error)}.") from None


def read_json(path: Path) -> dict[str, Any]:
    """The table in a JSON file."""
    what = repr(str(path))
    try:
        table = json.loads(_text(path, what))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, IdrlError):
            raise
        raise IdrlError(f"{what} cannot be read: {_line(error)}.") from None
    if not isinstance(table, dict):
        raise IdrlError(f"{what} holds no table.")
    return table


def shapes_of(about: dict[str, Any], what: str) -> tuple[tuple[int, ...], Actions]:
    """The shape of observations and the actions out of a table from a file, which may say
    anything."""
    shape, actions = about.get("obs_shape"), from_table(about)
    numbers: list[Any] = shape if isinstance(shape, list) else [None]
    if actions is None or not all(type(n) is int and 0 < n < 2**31 for n in numbers):
        raise IdrlError(f"{what} has no obs_shape and num_actions that can be.")
    return tuple(numbers), actions


def check_no_links(folder: Path) -> None:
    """Refuse a folder in which a link could lead a write out of it."""
    for inside in folder.rglob("*"):
        if inside.is_symlink():
            name = inside.relative_to(folder)
            raise IdrlError(
                f"'{name}' in {str(folder)!r} is a link; a run folder holds its files itself."
            )


def _text(path: Path, what: str) -> str:
    if path.is_file() and path.stat().st_size > _LARGEST:
        raise IdrlError(f"{what} has {path.stat().st_size:,} bytes; at most {_LARGEST:,} are read.")
    return path.read_text(encoding="utf-8")


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
