"""Files of unknown origin: the one place that opens them, and what their tables may say.

A file in a folder of ours is a plain file with one name: no link leads out of the folder, and no
pipe or device holds up who reads it. It is read up to a limit and no further; what is in it is
compared with what can be there before it is used. Files are written whole or not at all.
"""

from __future__ import annotations

import errno
import json
import math
import os
import select
import stat
import tomllib
from collections.abc import Callable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from idrl.actions import Actions, from_table
from idrl.errors import IdrlError
from idrl.system import words

LARGEST = 2**20  # bytes; a config of ours has about a thousand
PIPE_S = 10.0  # that whoever writes to a pipe may take to begin
_DEEPEST = 24  # tables within tables

_KINDS = (
    (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip


def _odd(status: os.stat_result) -> str:
    """Why something is no file of a folder of ours; empty where it is one."""
    if stat.S_ISLNK(status.st_mode):
        return "a link"
    if stat.S_ISREG(status.st_mode):
        return "a link: it has another name elsewhere" if status.st_nlink > 1 else ""
    return next((kind for fits, kind in _KINDS if fits(status.st_mode)), "no file")


def open_plain(path: Path, named: bool = False) -> BufferedReader:
    """For reading; OSError where it is no plain file. `named`: by whoever gave the command, and may
    be a link to one."""
    try:
        wanted = 0 if named else os.O_NOFOLLOW
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | wanted)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise OSError("it is a link") from None
        raise
    except ValueError as error:  # a zero byte in its name
        raise OSError(str(error)) from None
    status = os.fstat(number)
    odd = "" if named and stat.S_ISREG(status.st_mode) else _odd(status)
    if odd:
        os.close(number)
        raise OSError(f"it is {odd}, not a file")
    return os.fdopen(number, "rb")


def open_lock(path: Path) -> Any:
    """For `flock`; made where it is not there, and never written to."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "w")


def check_plain(folder: Path) -> None:
    """Refuse a folder in which a link could lead a write out of it, or a pipe hold it up."""
    left = [folder]
    while left:
        try:
            with os.scandir(left.pop()) as inside:
                found = [(Path(e.path), e.stat(follow_symlinks=False)) for e in inside]
        except FileNotFoundError:  # a run that goes on renames and deletes
            continue
        except OSError as error:
            raise IdrlError(f"{str(folder)!r} cannot be read: {error}.") from None
        for path, status in found:
            if stat.S_ISDIR(status.st_mode):
                left.append(path)
            elif odd := _odd(status):
                raise IdrlError(
                    f"'{words.name(path.relative_to(folder))}' in {str(folder)!r} is {odd}; such a "
                    "folder holds its files itself (cp -rL makes one that does)."
                )


def sync(path: Path) -> None:
    """On the disk, not only on its way there. Of a folder: the names in it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_writable(path: Path) -> None:
    """Refuse a place that no file can be written to, before any work is done for it. A file may be
    there: it is written over."""
    name, folder = repr(str(path)), path.parent
    if os.path.isdir(path):  # False also where a name is too long for one
        raise IdrlError(f"{name} is a folder; name a file in it.")
    if os.path.exists(path):
        if not os.access(path, os.W_OK):
            raise IdrlError(f"{name} is read-only; name another file.")
        return  # whatever its folder allows: it may be a pipe
    if not os.path.isdir(folder):
        raise IdrlError(f"there is no folder {str(folder)!r} to write {path.name!r} to.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise IdrlError(f"{name} cannot be written: {str(folder)!r} is not writable.")


def write_whole(path: Path, text: str) -> None:
    """The new text, or after whatever happens the old one."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    sync(draft)
    os.replace(draft, path)
    sync(path.parent)


def read_text(path: Path, what: str = "", most: int = LARGEST, named: bool = False) -> str:
    """At most `most` bytes of UTF-8; FileNotFoundError where there is none, IdrlError where it is
    something else. `what` is its name in errors."""
    what = what or repr(str(path))
    try:
        with _open_named(path) if named else open_plain(path) as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise IdrlError(f"{what} is larger than the {most:,} bytes that are read.")
        return data.decode("utf-8")
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, IdrlError):
            raise
        raise IdrlError(f"{what} cannot be read: {_line(error)}.") from None


def _open_named(path: Path) -> BufferedReader:
    """What a command names may be a pipe too, as in --config <(…), but not one without an end."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    mode = os.fstat(number).st_mode
    waited = stat.S_ISFIFO(mode) and not select.select([number], [], [], PIPE_S)[0]
    if waited or stat.S_ISDIR(mode):
        os.close(number)
        told = f"a pipe that nothing wrote to for {PIPE_S:.0f} s" if waited else "a folder"
        raise OSError(f"it is {told}, not a file")
    os.set_blocking(number, True)
    return os.fdopen(number, "rb")


def read_toml(path: Path, what: str = "", named: bool = False) -> dict[str, Any]:
    """The tables in a TOML file, which is called `what` in errors."""
    what = what or repr(str(path))
    try:
        table = tomllib.loads(read_text(path, what, named=named))
    except FileNotFoundError:
        raise IdrlError(f"there is no {what}.") from None
    except RecursionError:
        raise IdrlError(f"{what} is not valid TOML: it is nested too deeply.") from None
    except ValueError as error:
        if isinstance(error, IdrlError):
            raise
        raise IdrlError(f"{what} is not valid TOML: {_line(error)}.") from None
    check_shape(table, what)
    return table


def read_json(path: Path, what: str = "", most: int = LARGEST) -> dict[str, Any]:
    """The table in a JSON file."""
    what = what or repr(str(path))
    try:
        text = read_text(path, what, most)
    except FileNotFoundError:
        raise IdrlError(f"there is no {what}.") from None
    return parse_json(text, what)


def parse_json(text: str, what: str, wanted: type = dict) -> Any:
    """A table, or what else is `wanted`, out of a text that may be anything."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise IdrlError(f"{what} cannot be read: {_line(error)}.") from None
    if not isinstance(found, wanted):
        raise IdrlError(f"{what} holds no {'table' if wanted is dict else 'list'}.")
    check_shape(found, what)
    return found


def check_shape(data: Any, what: str) -> None:
    """Refuse what is nested beyond reason, and texts that are none (half of a pair of surrogates),
    which nothing could print or write again."""
    left = [(data, 0)]
    while left:
        inner, depth = left.pop()
        if depth > _DEEPEST:
            raise IdrlError(f"{what} is nested too deeply: more than {_DEEPEST} tables.")
        if isinstance(inner, dict):
            left += [(x, depth + 1) for pair in inner.items() for x in pair]
        elif isinstance(inner, list):
            left += [(x, depth + 1) for x in inner]
        elif isinstance(inner, str) and not inner.isascii():
            try:
                inner.encode("utf-8")
            except UnicodeEncodeError:
                raise IdrlError(f"{what} holds a text that is not Unicode.") from None


# What an entry of a table may be.
Fits = Callable[[Any], bool]


def count(below: int = 2**53) -> Fits:
    return lambda x: type(x) is int and 0 <= x < below


def number(x: Any) -> bool:
    return type(x) in (int, float) and abs(x) <= 1e300 and math.isfinite(x)


def text(longest: int = 10_000) -> Fits:
    return lambda x: isinstance(x, str) and len(x) <= longest


def flag(x: Any) -> bool:
    return isinstance(x, bool)


def check_entries(table: Mapping[str, Any], wanted: Mapping[str, Fits], what: str) -> None:
    """Refuse a table in which one of the `wanted` entries is something else. Missing ones pass."""
    for key, fits in wanted.items():
        if key in table and not fits(table[key]):
            raise IdrlError(f"{what} says {key} = {words.value(table[key])}, which is not valid.")


def shapes_of(about: dict[str, Any], what: str) -> tuple[tuple[int, ...], Actions]:
    """The shape of observations and the actions out of a table from a file, which may say
    anything."""
    shape, actions = about.get("obs_shape"), from_table(about)
    numbers: list[Any] = shape if isinstance(shape, list) and len(shape) <= 32 else [None]
    if actions is None or not all(type(n) is int and 0 < n < 2**31 for n in numbers):
        raise IdrlError(f"{what} has no valid obs_shape and num_actions.")
    return tuple(numbers), actions


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
