"""Modules of one's own that register parts, agents or families of environments when imported.

Importing runs code, so only the user says what is imported: by `--plugin`, by installing a package
with an entry point of the group `idrl.plugins`, or by importing it in Python. What a run was made
with is written into its folder by name; a folder alone never makes anything be imported. A name
that the user gave once with `--plugin` is remembered with the file that it stood for, and a run
that names it may have that file again.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import sys
import warnings
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from idrl.errors import IdrlError

GROUP = "idrl.plugins"
MOST = 32
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)

_loaded: list[str] = []  # as the user named them, in this order
_installed = False


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
        _loaded.append(name)
        _remember(name)


def load_installed() -> None:
    """Import the entry points of installed packages, once. One that fails is a warning: whoever
    needs nothing of it is not kept from working."""
    global _installed
    if _installed:
        return
    _installed = True
    for point in metadata.entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            warnings.warn(
                f"the plugin {point.name!r} cannot be loaded: {_said(error)}.", stacklevel=2
            )
            continue
        if point.module not in _loaded:
            _loaded.append(point.module)


def loaded() -> tuple[str, ...]:
    return tuple(_loaded)


def places() -> list[str]:
    """Folders that another process needs on its path to import the same."""
    tops = [sys.modules.get(name.partition(".")[0]) for name in _loaded]
    found = [_origin(module) for module in tops if module is not None]
    return list(dict.fromkeys(str(_folder(Path(file))) for file in found if file))


def record(modules: Iterable[str] = ()) -> list[dict[str, str]]:
    """For a run's folder: what was loaded, and the `modules` of parts that the run uses."""
    used = [m for m in dict.fromkeys([*_loaded, *modules]) if m.partition(".")[0] != "idrl"]
    return [{"name": name, "version": _version(name)} for name in used if is_name(name)]


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
    says so. Anything else is refused: a file cannot make code run.
    """
    if not wanted:
        return
    load_installed()
    for name in (one["name"] for one in wanted):
        if name in sys.modules:
            continue
        if name == "__main__" or not _is_remembered(name):
            raise IdrlError(
                f"{what} was made with the plugin {name!r}, which is not loaded: if you trust it, "
                f"add --plugin {name} (which runs its code), or import {name} before in Python."
            )
        version = _version(name)
        warnings.warn(f"loading the plugin {name!r}{version and f' {version}'}.", stacklevel=3)
        _import(name)
        _loaded.append(name)


def _module(given: str) -> str:
    """The module that `given` stands for, with its folder on the path where it is a file or in
    the folder one is in."""
    if given.endswith(".py"):
        file = Path(given)
        if not file.is_file():
            raise IdrlError(f"--plugin {given!r}: there is no such file.")
        if not is_name(file.stem):
            raise IdrlError(f"--plugin {given!r}: {file.stem!r} cannot name a module.")
        known = _find(file.stem)
        if known is not None and known != str(file.resolve()):
            raise IdrlError(
                f"--plugin {given!r}: another module is named {file.stem!r}: rename it."
            )
        _add(str(file.resolve().parent))
        return file.stem
    if not is_name(given):
        raise IdrlError(
            f"--plugin {given!r} names no module: it is written like mypackage.exploration, or as "
            "a file such as exploration.py."
        )
    if given not in sys.modules and _find(given) is None:
        _add(os.getcwd())  # an installed command does not look there by itself
        if _find(given) is None:
            raise IdrlError(
                f"--plugin {given!r}: there is no such module, neither installed nor in the folder "
                f"{os.getcwd()!r}."
            )
    return given


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except IdrlError as error:
        raise IdrlError(f"the plugin {name!r}: {error}") from None
    except Exception as error:
        raise IdrlError(f"the plugin {name!r} cannot be imported: {_said(error)}.") from None


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".")


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
        if spec is None:
            return None
        file = spec.origin
        if file is None and spec.submodule_search_locations:  # a folder without __init__.py
            file = str(Path(next(iter(spec.submodule_search_locations))) / "__init__.py")
    if not rest or file is None:
        return file and str(Path(file).resolve())
    inner = Path(file).parent.joinpath(*rest)
    for found in (inner.with_suffix(".py"), inner / "__init__.py"):
        if found.is_file():
            return str(found.resolve())
    return None


def _origin(module: Any) -> str | None:
    return getattr(module, "__file__", None)


def _folder(file: Path) -> Path:
    """The folder on the path: that of a module, or the one above a package."""
    file = file.resolve()
    return file.parent.parent if file.name == "__init__.py" else file.parent


def _version(name: str) -> str:
    """Of the distribution that a module is of; empty where it is of none."""
    top = name.partition(".")[0]
    for known in metadata.packages_distributions().get(top, ()):
        return metadata.version(known)
    return ""


# -- what the user said before ----------------------------------------------------------------


def _memory() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "idrl" / "plugins.json"


def _remembered() -> dict[str, str]:
    try:
        told = json.loads(_memory().read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):  # RuntimeError: there is no home
        return {}
    if not isinstance(told, dict):
        return {}
    return {name: file for name, file in told.items() if isinstance(file, str)}


def _remember(name: str) -> None:
    """A convenience: where it cannot be written the user says it again next time."""
    file = _find(name)
    known = _remembered()
    if file is None or known.get(name) == file:
        return
    try:
        path = _memory()
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(json.dumps(known | {name: file}, indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
    except (OSError, RuntimeError):
        pass


def _is_remembered(name: str) -> bool:
    """Whether the user named it before, and it still stands for the same file."""
    file = _remembered().get(name)
    if file is None or not Path(file).is_file():
        return False
    if _find(name) is None:
        depth = name.count(".") + (Path(file).name == "__init__.py")
        _add(str(Path(file).parents[depth]))
    return _find(name) == file
