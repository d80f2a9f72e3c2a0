"""Settings as tables: laid over each other, flat, and from the command line."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any

from idrl.errors import IdrlError

# Settings that had another name once: files and run folders of then are still read.
RENAMED = {"learning.target_share": "learning.tau"}
_said: set[str] = set()  # once a process is enough


def merge(base: dict[str, Any], change: dict[str, Any], where: str = "") -> dict[str, Any]:
    """`base` with `change` laid over it, table by table. A new `kind` replaces its whole table. A
    value in place of a table is refused, and a table in place of a value: the next change would
    hide the mistake, and what it had replaced would be gone."""
    merged = dict(base)
    for key, value in change.items():
        old, name = merged.get(key), join(where, key)
        if isinstance(old, dict) and isinstance(value, dict):
            new_kind = "kind" in value and value["kind"] != old.get("kind", value["kind"])
            merged[key] = value if new_kind else merge(old, value, name)
        elif isinstance(old, dict):
            needs = "a table of settings" + " with a `kind`" * ("kind" in old)
            raise IdrlError(f"{name} must be {needs}, not {value!r}.")
        elif isinstance(value, dict) and key in merged:
            raise IdrlError(f"{name} is {old!r}; it cannot be the table {value!r} as well.")
        else:
            merged[key] = value
    return merged


def current_names(data: dict[str, Any]) -> dict[str, Any]:
    """`data` with the names that settings have now, and a warning for one that had another."""
    for old, new in RENAMED.items():
        *tables, name = old.split(".")
        inner: Any = data
        for table in tables:
            inner = inner.get(table) if isinstance(inner, dict) else None
        if isinstance(inner, dict) and name in inner:
            if old not in _said:
                warnings.warn(f"{old} is called {new} now.", stacklevel=3)
            _said.add(old)
            change = _placed(new.split("."), inner[name])
            kept = {key: value for key, value in inner.items() if key != name}
            kept = _placed(tables, kept)
            data = merge(data | kept, change)
    return data


def flat(data: dict[str, Any], where: str = "") -> dict[str, Any]:
    """{'heads': {'q': {'k': 20}}} → {'heads.q.k': 20}."""
    out: dict[str, Any] = {}
    for key, value in data.items():
        name = join(where, key)
        out |= flat(value, name) if isinstance(value, dict) and value else {name: value}
    return out


def nested(data: Mapping[str, Any]) -> dict[str, Any]:
    """{'heads.q.k': 20} → {'heads': {'q': {'k': 20}}}; tables are left as they are."""
    out: dict[str, Any] = {}
    for name, value in data.items():
        out = merge(out, _placed(str(name).split("."), value))
    return out


def _placed(keys: list[str], value: Any) -> dict[str, Any]:
    return functools.reduce(lambda inner, key: {key: inner}, reversed(keys), value)


def parse_assignment(text: str) -> dict[str, Any]:
    """`heads.q.k=20` → {'heads': {'q': {'k': 20}}}. Values: numbers, booleans, lists, words."""
    path, equals, value = text.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys) or len(keys) > 24:
        raise IdrlError(f"--set {text!r} is not of the form name.of.setting=value.")
    return _placed(keys, literal(value))


def literal(text: str) -> Any:
    text = text.strip()
    if text.startswith(("[", "(")) and text.endswith(("]", ")")):
        inner = text[1:-1].strip().rstrip(",")
        if "[" in inner or "(" in inner:
            raise IdrlError(f"{_short(text)} is a list within a list; no setting is one.")
        return [literal(part) for part in inner.split(",")] if inner else []
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text.strip("'\"")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def join(where: str, key: Any) -> str:
    return f"{where}.{key}" if where else str(key)
