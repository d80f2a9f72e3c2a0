"""Dataclasses from tables, and back."""

from __future__ import annotations

import dataclasses
import math
import typing
from numbers import Integral, Real
from typing import Any, Literal, TypeVar

from idrl.errors import IdrlError, nearest, unknown
from idrl.schema.parts import Part, hints_of, is_part
from idrl.schema.tables import join

T = TypeVar("T")


def build(cls: type[T], data: dict[str, Any], where: str = "") -> T:
    """The dataclass `cls` from `data`; `where` is the dotted path for error messages."""
    if not isinstance(data, dict):
        raise IdrlError(f"{where or 'the config'} must be a table of settings, not {data!r}.")
    hints = hints_of(typing.cast(Any, cls))
    names = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    named = {"kind"} if is_part(cls) else set()
    for key in data:
        if key not in names | named:
            known = nearest(str(key), names | named)
            raise IdrlError(f"unknown setting {join(where, key)!r}; {known}")
    values = {
        key: _convert(hints[key], value, join(where, key))
        for key, value in data.items()
        if key in names
    }
    missing = [
        f.name
        for f in dataclasses.fields(cls)  # type: ignore[arg-type]
        if f.name not in values
        and f.default is dataclasses.MISSING
        and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise IdrlError(f"the setting {join(where, missing[0])!r} is missing.")
    built = cls(**values)
    if hasattr(built, "check"):
        built.check(where)
    return built


def to_dict(value: Any) -> Any:
    """The plain dictionary of a dataclass, the inverse of `build`."""
    if dataclasses.is_dataclass(value):
        return _kind_of(value) | {
            f.name: to_dict(getattr(value, f.name)) for f in dataclasses.fields(value)
        }
    if isinstance(value, dict):
        return {key: to_dict(item) for key, item in value.items()}
    return [to_dict(item) for item in value] if isinstance(value, (list, tuple)) else value


def _kind_of(value: Any) -> dict[str, str]:
    if not isinstance(value, Part):
        return {}
    if "kind" not in vars(type(value)):  # that of a class above it would stand for another
        raise IdrlError(
            f"the {value.category} {type(value).__name__} has no name that a config could give; "
            f'write @idrl.{value.category}("…") above its class.'
        )
    return {"kind": value.kind}


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(value, Real) and not isinstance(value, (int, float)):  # one of NumPy's
        value = int(value) if isinstance(value, Integral) else float(value)
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
        return {key: _convert(args[1], item, join(where, key)) for key, item in value.items()}
    if is_part(hint):
        return _convert_part(hint, value, where)
    if dataclasses.is_dataclass(hint):
        return build(typing.cast(type, hint), value, where)
    return _convert_plain(hint, value, where)


def _convert_part(category: type[Part], value: Any, where: str) -> Any:
    kinds = category.options()
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
