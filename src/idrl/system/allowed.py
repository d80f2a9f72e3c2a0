"""The files that the user named as plugins, by module: what may be imported again."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

_MOST = 32  # files of one name


def real_path(file: Path) -> str:
    """Where it is, links of folders followed, but under its own name."""
    return str(file.absolute().parent.resolve() / file.name)


def digest(file: str | None) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""
    except OSError:
        return ""


def _memory() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "idrl" / "plugins.json"


def _remembered() -> dict[str, list[str]]:
    """The files that each name stood for, the last first."""
    try:
        told = json.loads(_memory().read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):  # RuntimeError: there is no home
        return {}
    if not isinstance(told, dict):
        return {}
    return {
        name: files
        for name, files in told.items()
        if isinstance(files, list) and all(isinstance(file, str) for file in files)
    }


def remember(name: str, file: str) -> None:
    """A convenience: where it cannot be written the user says it again next time."""
    known = _remembered()
    files = known.get(name, [])
    if files[:1] == [file]:
        return
    files = [file, *(other for other in files if other != file)][:_MOST]
    try:
        path = _memory()
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(json.dumps(known | {name: files}, indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
    except (OSError, RuntimeError):
        pass


def allowed(name: str, sha: str | None) -> Path | None:
    """The file that the user named before, or that is a part of a package which they named. Of
    several it is the one that holds what `sha` is of; where none does, nobody knows which."""
    known = _remembered()
    found = [Path(file) for file in known.get(name, [])]
    parent, _, rest = name.rpartition(".")
    while parent:
        inside = rest.split(".")
        for file in map(Path, known.get(parent, [])):
            if file.name == "__init__.py":
                inner = file.parent.joinpath(*inside)
                found += [inner / "__init__.py", inner.with_suffix(".py")]
        parent, _, more = parent.rpartition(".")
        rest = f"{more}.{rest}"
    found = [file for file in dict.fromkeys(found) if file.is_file()]
    same = [file for file in found if sha and digest(str(file)) == sha]
    if same:
        return same[0]
    return found[0] if len(found) == 1 else None
