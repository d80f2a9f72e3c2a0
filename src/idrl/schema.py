"""Frozen dataclasses ↔ plain dictionaries, strictly: unknown keys and wrong types are refused.

A field typed as a union of dataclasses is told apart by their `kind`. Nothing here evaluates
text or imports what a file names: a config can only pick among what the code already declares.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
import warnings
from typing import Any, Literal, TypeVar

from idrl.errors import IdrlError, nearest, unknown

T = TypeVar("T")

# Settings that had another name once: files and run folders of then are still read.
RENAMED = {"learning.target_share": "learning.tau"}
_said: set[str] = set()  # once a process is enough


def build(cls: type[T], data: dict[str, Any], where: str = "") -> T:
    """The dataclass `cls` from `data`; `where` is the dotted path for error messages."""
    if not isinstance(data, dict):
        raise IdrlError(f"{where or 'the config'} must be a table of settings, not {data!r}.")
    hints = _hints(typing.cast(Any, cls))
    for key in data:
        if key not in hints:
            raise IdrlError(f"unknown setting {_join(where, key)!r}; {nearest(str(key), hints)}")
    values = {key: _convert(hints[key], value, _join(where, key)) for key, value in data.items()}
    missing = [
        f.name
        for f in dataclasses.fields(cls)  # type: ignore[arg-type]
        if f.name not in values
        and f.default is dataclasses.MISSING
        and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise IdrlError(f"the setting {_join(where, missing[0])!r} is missing.")
    built = cls(**values)
    if hasattr(built, "check"):
        built.check(where)
    return built


def to_dict(value: Any) -> Any:
    """The plain dictionary of a dataclass, the inverse of `build`."""
    if dataclasses.is_dataclass(value):
        return {f.name: to_dict(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: to_dict(item) for key, item in value.items()}
    return [to_dict(item) for item in value] if isinstance(value, (list, tuple)) else value


def merge(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """`base` with `change` laid over it, table by table. A new `kind` replaces its whole table."""
    merged = dict(base)
    for key, value in change.items():
        old = merged.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            new_kind = "kind" in value and value["kind"] != old.get("kind", value["kind"])
            merged[key] = value if new_kind else merge(old, value)
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
            change = functools.reduce(lambda d, k: {k: d}, reversed(new.split(".")), inner[name])
            kept = {key: value for key, value in inner.items() if key != name}
            kept = functools.reduce(lambda d, k: {k: d}, reversed(tables), kept)
            data = merge(data | kept, change)
    return data


def flat(data: dict[str, Any], where: str = "") -> dict[str, Any]:
    """{'heads': {'q': {'k': 20}}} → {'heads.q.k': 20}."""
    out: dict[str, Any] = {}
    for key, value in data.items():
        name = _join(where, key)
        out |= flat(value, name) if isinstance(value, dict) and value else {name: value}
    return out


def parse_assignment(text: str) -> dict[str, Any]:
    """`heads.q.k=20` → {'heads': {'q': {'k': 20}}}. Values: numbers, booleans, lists, words."""
    path, equals, value = text.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys) or len(keys) > 24:
        raise IdrlError(f"--set {text!r} is not of the form name.of.setting=value.")
    return functools.reduce(lambda inner, key: {key: inner}, reversed(keys), _literal(value))


def _literal(text: str) -> Any:
    text = text.strip()
    if text.startswith(("[", "(")) and text.endswith(("]", ")")):
        inner = text[1:-1].strip().rstrip(",")
        if "[" in inner or "(" in inner:
            raise IdrlError(f"{_short(text)} is a list within a list; no setting is one.")
        return [_literal(part) for part in inner.split(",")] if inner else []
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


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _join(where: str, key: Any) -> str:
    return f"{where}.{key}" if where else str(key)


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(args, value, where)
    if origin is Literal:
        if value not in args or isinstance(value, bool) != isinstance(args[0], bool):
            known = ", ".join(map(repr, args))
            raise IdrlError(f"{where} is {value!r}; it must be one of {known}.")
        return value
    if origin is tuple:
        items = value if isinstance(value, (list, tuple)) else [value]
        return tuple(_convert(args[0], item, where) for item in items)
    if origin is dict:
        if not isinstance(value, dict):
            raise IdrlError(f"{where} must be a table of settings, not {value!r}.")
        return {key: _convert(args[1], item, _join(where, key)) for key, item in value.items()}
    if dataclasses.is_dataclass(hint):
        return build(typing.cast(type, hint), value, where)
    return _convert_plain(hint, value, where)


def _convert_union(options: tuple[Any, ...], value: Any, where: str) -> Any:
    kinds = {_hints(option)["kind"].__args__[0]: option for option in options}
    if not isinstance(value, dict):
        raise IdrlError(f"{where} must be a table of settings with a `kind`, not {value!r}.")
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        if kind is None:
            raise IdrlError(f"{where}.kind is missing; known: {', '.join(sorted(kinds))}.")
        raise unknown(f"{where}.kind", str(kind), kinds)
    return build(kinds[kind], value, where)


def _convert_plain(hint: type, value: Any, where: str) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and isinstance(value, int) and hint in (int, float) and abs(value) > 2**53:
        # Beyond what a float counts exactly; beyond 1e308 it could not even be converted.
        raise IdrlError(f"{where} has {value.bit_length()} bits; that is too large.")
    if hint is float and number:
        if not math.isfinite(value):
            raise IdrlError(f"{where} is {value}; it must be a finite number.")
        return float(value)
    if hint is int and number and math.isfinite(value) and value == int(value):
        if abs(value) > 2**53:
            raise IdrlError(f"{where} is {value}; that is too large.")
        return int(value)
    if hint in (bool, str) and isinstance(value, hint):
        return value
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
    raise IdrlError(f"{where} is {value!r}; it must be {words.get(hint, hint)}.")
