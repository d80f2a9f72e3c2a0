"""Registries of parts, and what a part must be."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeVar

from idrl.errors import IdrlError
from idrl.schema.tables import literal

T = TypeVar("T")


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
    if not word or literal(kind) != kind:
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
        hints = hints_of(part)
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
    return plain or (isinstance(hint, type) and (is_part(hint) or dataclasses.is_dataclass(hint)))


def is_part(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Part)


@functools.cache
def hints_of(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)
