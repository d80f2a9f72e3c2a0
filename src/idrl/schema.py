"""Frozen dataclasses ↔ plain dictionaries, strictly: unknown keys and wrong types are refused.

A field typed as a category of parts (`Part`) is told apart by their `kind`. Nothing here evaluates
text or imports what a file names: a config picks only among the kinds that code has registered.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import re
import typing
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeVar

from idrl.errors import IdrlError, nearest, unknown

T = TypeVar("T")

# Settings that had another name once: files and run folders of then are still read.
RENAMED = {"learning.target_share": "learning.tau"}
_said: set[str] = set()  # once a process is enough


class Part:
    """A piece that a config picks by its `kind`. A category of parts is a subclass that says so,
    `class Rule(Part, category="rule")`; its parts are frozen dataclasses below it, registered by
    `Rule.register("name")`, whose fields are their settings."""

    kind: ClassVar[str] = ""
    category: ClassVar[str] = ""
    kinds: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, category: str = "", **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if category:
            cls.category, cls.kinds = category, {}

    @classmethod
    def register(cls, kind: str) -> Callable[[type[T]], type[T]]:
        """Decorator: register the frozen dataclass below under a name, for configs and commands.
        Defined anew, as by a cell of a notebook, it replaces itself.

        Args:
            kind: the name.
        """
        if not isinstance(kind, str):
            raise IdrlError(
                f'write @idrl.{cls.category}("name") above the class, with a name of its own.'
            )

        def add(part: type[T]) -> type[T]:
            _check_kind(cls, kind, part)
            old = cls.kinds.get(kind)
            if old is not None and not same_place(old, part):
                raise IdrlError(
                    f"a {cls.category} of kind {kind!r} is registered already ({_place(old)}); "
                    "choose another name."
                )
            _check_part(cls, kind, part)
            part.kind = kind  # type: ignore[attr-defined]
            cls.kinds[kind] = part
            return part

        return add

    @classmethod
    def options(cls) -> dict[str, Any]:
        """The registered parts that are of this class, by kind."""
        return {kind: part for kind, part in cls.kinds.items() if issubclass(part, cls)}

    @classmethod
    def summary(cls) -> str:
        """The first paragraph of its docstring."""
        told = first_paragraph(cls.__doc__)
        return "" if told.startswith(f"{cls.__name__}(") else told  # which dataclasses write

    @classmethod
    def is_built_in(cls) -> bool:
        return cls.__module__.split(".")[0] == __name__.split(".")[0]


def first_paragraph(doc: str | None) -> str:
    """Of a docstring, as one line: its first sentence may take more than the first."""
    return " ".join((doc or "").strip().split("\n\n")[0].split())


def same_place(old: Any, new: Any) -> bool:
    """Whether both were defined by the same lines of somebody's code."""
    try:
        same = _place(old) == _place(new)
    except AttributeError:  # functools.partial and the like
        return old is new
    # All lambdas of a module are called alike, and of our own each is there once.
    return (
        same and not old.__qualname__.endswith("<lambda>") and not _place(old).startswith("idrl.")
    )


def _place(definition: Any) -> str:
    return f"{definition.__module__}.{definition.__qualname__}"


def _check_kind(category: type[Part], kind: Any, part: Any) -> None:
    named = f"the {category.category} {kind!r}"
    word = isinstance(kind, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", kind)
    if not word or _literal(kind) != kind:
        raise IdrlError(
            f"{named} cannot be called so: a kind is a word of letters, digits, - and _ that "
            f'starts with a letter, as in @idrl.{category.category}("boltzmann").'
        )
    if not isinstance(part, type) or not issubclass(part, category):
        shown = getattr(part, "__name__", repr(part))
        raise IdrlError(
            f"{named}: {shown} must be a class derived from idrl.{category.__name__}, as in "
            f"class {shown if isinstance(part, type) else 'Mine'}(idrl.{category.__name__})."
        )


def _check_part(category: type[Part], kind: str, part: Any) -> None:
    """Refuse what would fail only later, and less clearly."""
    named = f"the {category.category} {kind!r}"
    params = vars(part).get("__dataclass_params__")
    if params is None or not params.frozen:
        raise IdrlError(
            f"{named}: {part.__name__} must be a frozen dataclass; write @dataclass(frozen=True) "
            f"between @idrl.{category.category} and the class."
        )
    lacking = [
        name for name, value in inspect.getmembers_static(part)
        if getattr(value, "__isabstractmethod__", False)
    ]  # fmt: skip
    if lacking:
        which = " and ".join([", ".join(lacking[:-1]), lacking[-1]] if lacking[1:] else lacking)
        raise IdrlError(
            f"{named}: {part.__name__} lacks {which}; see idrl.{category.__name__} for what a "
            f"{category.category} defines."
        )
    try:
        hints = _hints(part)
    except (NameError, TypeError) as error:
        raise IdrlError(f"{named}: the types of its settings cannot be read: {error}.") from None
    for setting in dataclasses.fields(part):
        if setting.name == "kind":
            raise IdrlError(f"{named} has a field `kind`; leave it out, the decorator names it.")
        if isinstance(setting.default, property):
            raise IdrlError(f"{named}: its setting {setting.name!r} needs a default value.")
        if not _readable(hints[setting.name]):
            raise IdrlError(
                f"{named}: its setting {setting.name!r} is of type {hints[setting.name]!r}, which "
                "no config can hold; settings are int, float, bool, str, Literal, tuples and "
                "dictionaries of these, or other dataclasses."
            )


def _readable(hint: Any) -> bool:
    """Whether `_convert` knows the type of a setting."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return len(args) == 2 and args[1] is ... and _readable(args[0])
    if origin is dict:
        return args[0] is str and _readable(args[1])
    plain = hint in (int, float, bool, str) or origin is Literal
    return plain or (isinstance(hint, type) and (_is_part(hint) or dataclasses.is_dataclass(hint)))


def _is_part(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Part)


def build(cls: type[T], data: dict[str, Any], where: str = "") -> T:
    """The dataclass `cls` from `data`; `where` is the dotted path for error messages."""
    if not isinstance(data, dict):
        raise IdrlError(f"{where or 'the config'} must be a table of settings, not {data!r}.")
    hints = _hints(typing.cast(Any, cls))
    names = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    named = {"kind"} if _is_part(cls) else set()
    for key in data:
        if key not in names | named:
            known = nearest(str(key), names | named)
            raise IdrlError(f"unknown setting {_join(where, key)!r}; {known}")
    values = {
        key: _convert(hints[key], value, _join(where, key))
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
        raise IdrlError(f"the setting {_join(where, missing[0])!r} is missing.")
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
    if _is_part(hint):
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
