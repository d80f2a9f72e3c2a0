"""Modules of one's own that register parts, agents or families of environments when imported.

Importing runs code, so only the user says what is imported: by `--plugin`, by installing a package
with an entry point of the group `idrl.plugins`, or by importing it in Python. What a run was made
with is written into its folder by name; a folder alone never makes anything be imported. A name
that the user gave once with `--plugin` is remembered with the file that it stood for, and a run
that names it may have that file again. Trust is in a place, not in what a file holds: who may
write to the places one named may have code run, as with any module.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from idrl.errors import IdrlError, in_a_line
from idrl.system.allowed import allowed, digest, real_path, remember

GROUP = "idrl.plugins"
MOST = 32
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)

_loaded: list[str] = []  # as the user named them, in this order
_installed: list[str] | None = None  # entry points, once they are loaded
_importing = ""  # which one is at it


def is_name(name: Any) -> bool:
    """Whether it may name a module."""
    return isinstance(name, str) and len(name) <= 200 and _NAME.fullmatch(name) is not None


def load(names: Iterable[str]) -> None:
    """Import what the user names: modules, or files that hold one."""
    for given in names:
        name = _module(given)
        if name in _loaded:
            continue
        _import(name)
        file = _origin(sys.modules[name])
        if file is None or (given.endswith(".py") and file != real_path(Path(given))):
            raise IdrlError(f"--plugin {given!r}: {name!r} is another module, or none: rename it.")
        _loaded.append(name)
        remember(name, file)


def named_object(given: str) -> Any:
    """What the user names as FILE.py:NAME or module:NAME. It is imported for this once."""
    place, _, name = given.rpartition(":")
    if not place or not name.isidentifier():
        raise IdrlError(
            f"{given!r} does not name an object: write it like baseline.py:model or "
            "package.module:model."
        )
    try:
        with _at_it(place):
            module = _of_file(Path(place)) if place.endswith(".py") else _of_name(place)
    except IdrlError:
        raise
    except Exception as error:
        raise IdrlError(f"{place!r} cannot be imported: {in_a_line(error)}.") from None
    if not hasattr(module, name):
        raise IdrlError(f"{place!r} has no {name!r}.")
    return getattr(module, name)


def _of_file(file: Path) -> Any:
    if not file.is_file():
        raise IdrlError(f"there is no file {str(file)!r}.")
    # Known to Python while it runs, as dataclasses and pickle expect, by a name of its own.
    name = f"_idrl_object_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    _add(str(file.absolute().parent))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _of_name(name: str) -> Any:
    _add(os.getcwd())  # an installed command does not look there by itself
    return importlib.import_module(name)


def are_installed() -> bool:
    return bool(metadata.entry_points(group=GROUP))


def load_installed() -> None:
    """Import the entry points of installed packages, once. One that fails is a warning: whoever
    needs nothing of it is not kept from working."""
    global _installed
    if _installed is not None:
        return
    _installed = []
    for point in metadata.entry_points(group=GROUP):
        try:
            with _at_it(point.module):
                point.load()
        except Exception as error:
            warnings.warn(
                f"the plugin {point.name!r} cannot be loaded: {in_a_line(error)}.", stacklevel=2
            )
            continue
        _installed.append(point.module)


def loaded() -> tuple[str, ...]:
    """What the user named, now or before; entry points are found by every process itself."""
    return tuple(_loaded)


def importing() -> str:
    """The plugin that is just being imported."""
    return _importing


def places() -> list[str]:
    """Folders that another process needs on its path to import the same."""
    tops = [sys.modules.get(name.partition(".")[0]) for name in _loaded]
    found = [_origin(module) for module in tops if module is not None]
    return list(dict.fromkeys(str(_folder(Path(file))) for file in found if file))


def files() -> list[tuple[str, str]]:
    """What the user named, each with its file, for a process that needs the same: `bring`."""
    found = ((name, _origin(sys.modules.get(name))) for name in _loaded)
    return [(name, file) for name, file in found if file is not None]


def bring(modules: Iterable[tuple[str, str]]) -> None:
    """Import what another process of the same user has, from the same files."""
    for name, file in modules:
        if name not in sys.modules:
            _import_from(name, Path(file))
            _loaded.append(name)


def record(modules: Iterable[str] = ()) -> list[dict[str, str]]:
    """For a run's folder: what the user named, and the `modules` of parts that the run uses, each
    with its version and what its file held."""
    used = [m for m in dict.fromkeys([*_loaded, *modules]) if m.partition(".")[0] != "idrl"]
    return [
        {"name": name, "version": _version(name), "sha256": digest(_origin(sys.modules.get(name)))}
        for name in used
        if is_name(name)
    ]


def are_plugins(told: Any) -> bool:
    """Whether a file says what `record` may have written."""
    return (
        isinstance(told, list)
        and len(told) <= MOST
        and all(isinstance(one, dict) and is_name(one.get("name")) for one in told)
    )


def need(wanted: list[dict[str, str]], what: str) -> None:
    """Make sure that all plugins of `what` (a run, a study, a saved agent) are there.

    What is imported already is; what the user named before is imported again, with a warning that
    says from where. Anything else is refused: a file cannot make code run.
    """
    if not wanted:
        return
    load_installed()
    missing = []
    for one in wanted:
        name, sha = one["name"], one.get("sha256")
        if name not in sys.modules:
            file = allowed(name, sha)
            if file is None:
                missing.append(name.partition(".")[0])  # a package is allowed with its parts
                continue
            _import_from(name, file)
            if name not in _loaded:
                _loaded.append(name)
            warnings.warn(f"loading the plugin {name!r} from {str(file)!r}.", stacklevel=3)
        now = digest(_origin(sys.modules[name]))
        if sha and now and sha != now:
            warnings.warn(
                f"the plugin {name!r} has changed since {what} was made with it.", stacklevel=3
            )
    missing = list(dict.fromkeys(missing))
    if missing:
        several = len(missing) > 1
        options = " ".join(f"--plugin {name}" for name in missing)
        raise IdrlError(
            f"{what} was made with the plugin{'s' * several} {', '.join(map(repr, missing))}, "
            f"which {'are' if several else 'is'} not loaded: if you trust "
            f"{'them' if several else 'it'}, add {options} (which runs "
            f"{'their' if several else 'its'} code), or import {missing[0]} before in Python."
        )


def _module(given: str) -> str:
    """The module that `given` stands for, with its folder on the path where it is a file or in
    the folder one is in."""
    if given.endswith(".py"):
        file = Path(given).absolute()
        if not file.is_file():
            raise IdrlError(f"--plugin {given!r}: there is no such file.")
        if (file.parent / "__init__.py").exists():
            raise IdrlError(
                f"--plugin {given!r} is a part of a package: name the package, with the folder "
                f"above it as the one you are in, as in --plugin {file.parent.name}."
            )
        if not is_name(file.stem):
            raise IdrlError(f"--plugin {given!r}: {file.stem!r} cannot name a module.")
        known = file.stem in sys.builtin_module_names or _find(file.stem)
        if known and known != real_path(file):
            raise IdrlError(
                f"--plugin {given!r}: another module is named {file.stem!r}; rename it."
            )
        _add(str(file.parent))
        return file.stem
    if not is_name(given):
        raise IdrlError(
            f"--plugin {given!r} does not name a module: write it like mypackage.exploration, or "
            "as a file such as exploration.py."
        )
    if given not in sys.modules and _find(given) is None:
        _add(os.getcwd())  # an installed command does not look there by itself
        if _find(given) is None:
            raise IdrlError(
                f"--plugin {given!r}: there is no such module, neither installed nor in the folder "
                f"{os.getcwd()!r}."
            )
    return given


@contextlib.contextmanager
def _at_it(name: str) -> Iterator[None]:
    global _importing
    before, _importing = _importing, name
    try:
        yield
    finally:
        _importing = before


def _import(name: str) -> None:
    try:
        with _at_it(name):
            importlib.import_module(name)
    except IdrlError as error:
        raise IdrlError(f"the plugin {name!r}: {error}") from None
    except Exception as error:
        raise IdrlError(f"the plugin {name!r} cannot be imported: {in_a_line(error)}.") from None


def _import_from(name: str, file: Path) -> None:
    """Whatever else of that name is on the path."""
    depth = name.count(".") + (file.name == "__init__.py")
    folder = str(file.parents[depth])
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        _import(name)
    finally:
        sys.path.remove(folder)
        _add(folder)
    if _origin(sys.modules[name]) != str(file):
        raise IdrlError(
            f"the plugin {name!r} is not the one in {str(file)!r}: start a new process."
        )


def _add(folder: str) -> None:
    if folder not in sys.path:
        sys.path.append(folder)  # behind all others: it hides nothing
        importlib.invalidate_caches()


def _find(name: str) -> str | None:
    """The file that `name` would be imported from, without importing any of it. A part of a
    package is found by its path, since `find_spec` would import the package."""
    top, *rest = name.split(".")
    if top in sys.modules:
        file = _origin(sys.modules[top])
    else:
        try:
            spec = importlib.util.find_spec(top)
        except (ImportError, ValueError):
            spec = None
        file = None if spec is None or not spec.has_location else spec.origin
    if not rest or file is None:
        return file and real_path(Path(file))
    inner = Path(file).parent.joinpath(*rest)
    for found in (inner / "__init__.py", inner.with_suffix(".py")):  # Python's order
        if found.is_file():
            return real_path(found)
    return None


def _origin(module: Any) -> str | None:
    file = getattr(module, "__file__", None)
    return file and real_path(Path(file))


def _folder(file: Path) -> Path:
    """The folder on the path: that of a module, or the one above a package."""
    return file.parent.parent if file.name == "__init__.py" else file.parent


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    """By the packages that they install; to find out takes a while."""
    return metadata.packages_distributions()


def _version(name: str) -> str:
    """Of the distribution that a module is of; empty where it is of none."""
    top = name.partition(".")[0]
    for known in _distributions().get(top, ()):
        return metadata.version(known)
    return ""
