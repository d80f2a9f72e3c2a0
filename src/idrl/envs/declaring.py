"""Families of environments: each is one declaration of all that the package asks of it.

Its pattern of names, options, constructor, settings, unit, view and place to run are in one file
of `families/`, or in one's own; nothing else knows its name.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from idrl.envs.naming import (
    KINDS,
    convert,
    family_of,
    is_kind,
    number,
    options_of,
    path_of,
    with_options,
)
from idrl.envs.presets import Preset
from idrl.envs.views import View
from idrl.errors import IdrlError, nearest, unknown
from idrl.schema import parse_assignment

_PATTERN = re.compile(r"[A-Za-z][\w.-]*(/[A-Z]+)?")


class Unit(NamedTuple):
    """What the lengths of runs are counted in."""

    name: str = "steps"  # what it is called
    per_step: int = 1  # how many of them are one step


STEPS = Unit()

PAPER = "paper"  # a preset by this name is there for every task


class NameParts(NamedTuple):
    """What a name says, with defaults for what it does not say."""

    argument: int | str | None
    options: dict[str, Any]


@dataclass(frozen=True)
class Family:
    """What is known of all environments whose names fit a pattern; see `family`."""

    pattern: str
    make: Any  # the constructor, or (of a name alone) what `make_env` takes
    options: Mapping[str, Any] | None = field(default_factory=dict)  # None: any
    summary: str = ""
    arguments: Mapping[str, str] | Sequence[str] = ()
    noun: str = ""
    preset: Preset | None = None
    like: Sequence[str] = ()
    named: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unit: Unit = STEPS
    host: bool | None = None
    view: Callable[[np.ndarray], View | None] | None = None
    board: Callable[[np.ndarray], np.ndarray] | None = None
    stand_in: Any = None
    exact: bool = False  # the pattern is the one name, slashes and all
    declared_in: str = ""  # the module, where the constructor is none's in particular

    @property
    def name(self) -> str:
        return self.pattern if self.exact else self.pattern.partition("/")[0]

    @property
    def placeholder(self) -> str:
        """N of `family/N`; empty where there is no argument."""
        return "" if self.exact else self.pattern.partition("/")[2]

    @property
    def module(self) -> str:
        """That it is declared in: who wants the family again has to import it."""
        make = self.make.func if isinstance(self.make, functools.partial) else self.make
        return self.declared_in or getattr(make, "__module__", "") or type(make).__module__

    def listed(self) -> dict[str, str]:
        """Its names with a line on each."""
        if isinstance(self.arguments, Mapping):
            return {f"{self.name}/{word}": text for word, text in self.arguments.items()}
        words = f": {', '.join(self.arguments)}" if self.arguments else ""
        return {self.pattern: (self.summary or "registered by you") + words}

    def parse(self, name: str) -> NameParts:
        """What `name`, which is of this family, says. A word is not looked up yet."""
        return NameParts(self._argument(name), self._options(name))

    def _argument(self, name: str) -> int | str | None:
        _, slash, text = ("", "", "") if self.exact else path_of(name).partition("/")
        if slash and not (text and self.placeholder):
            raise unknown_environment(name)
        if text:
            return number(name, text, int) if self.placeholder == "N" else text
        default = _parameters(self.make)[0].default if self.placeholder else None
        if default is inspect.Parameter.empty:
            raise unknown_environment(name)
        return default

    def _options(self, name: str) -> dict[str, Any]:
        given = options_of(name)
        if self.options is None:
            found = [parse_assignment(f"{option}={text}") for option, text in given.items()]
            return {option: value for one in found for option, value in one.items()}
        if given and not self.options:
            raise IdrlError(f"{name!r}: {path_of(name)} takes no options.")
        for option in given:
            if option not in self.options:
                hint = nearest(option, self.options)
                raise IdrlError(f"{name!r}: unknown option {option!r}; {hint}")
        defaults = {o: value for o, value in self.options.items() if not is_kind(value)}
        kinds = self.options
        return defaults | {o: convert(name, o, text, kinds[o]) for o, text in given.items()}

    def check_argument(self, argument: Any) -> None:
        """Refuse a word that the family does not know, where it says which it knows."""
        if self.arguments and argument not in self.arguments:
            noun = self.noun or f"{self.placeholder.lower()} of {self.name}"
            raise unknown(noun, str(argument), self.arguments)


_FAMILIES: dict[str, Family] = {}


def family(
    pattern: str,
    *,
    options: Mapping[str, Any] | None = None,
    any_option: bool = False,
    summary: str = "",
    preset: Preset | None = None,
    arguments: Mapping[str, str] | Sequence[str] = (),
    noun: str = "",
    like: Sequence[str] = (),
    named: Mapping[str, Mapping[str, str]] | None = None,
    unit: Unit = STEPS,
    host: bool | None = None,
    view: Callable[[np.ndarray], View | None] | None = None,
    board: Callable[[np.ndarray], np.ndarray] | None = None,
    stand_in: Any = None,
) -> Callable[[Any], Any]:
    """Decorator: make the constructor below known by a pattern of names.

    Args:
        pattern: `name/N` (a whole number), `name/WORD` (a word in capitals: any word), or `name`.
            The argument is the first of the constructor; it is required where that has no default.
        options: keywords of the constructor with their defaults, which give them their types (a
            boolean is written 0 or 1). A type in place of a default: passed on only where it is
            given.
        any_option: pass every option on, unchecked.
        summary: a line for `idrl list envs`.
        preset: a function from a `PresetContext` to settings: what to change in the declaration of
            an agent, table by table, and in the table `kinds` by the kind of part. They are laid
            over the settings for tasks of which only the observation is known, unless they set the
            `trunk` (`{}`: as declared), and with it everything. None: those alone.
        arguments: the words there are, perhaps with a line on each.
        noun: what one of them is called.
        like: names in other families for the same task, which get the same preset.
        named: presets by name, each with the options that it writes into the environment's name.
        unit: what runs are counted in, such as `Unit("frames", 4)`.
        host: whether it runs on the host; by default one is made to find out.
        view: makes a `View` of an episode's observations `[T, …]` for `idrl play`.
        board: lays values `[…, N]` of its `mapped_states` out as maps `[…, H, W]`.
        stand_in: an environment of the same shapes to plan with, where the real one needs packages
            that may be missing.
    """

    if not isinstance(pattern, str):
        raise IdrlError('write @idrl.family("name/N") above the constructor, with its pattern.')

    def declare(make: Any) -> Any:
        made = Family(
            pattern, make, None if any_option else dict(options or {}), summary, arguments, noun,
            preset, like, dict(named or {}), unit, host, view, board, stand_in,
        )  # fmt: skip
        _check(made)
        _add(made)
        return make

    return declare


def add_name(name: str, made_by: Any, module: str = "") -> None:
    """A name without arguments for what `make_env` takes; `module` is who says so."""
    if not name or any(c in name for c in "?&= "):
        raise IdrlError(f"{name!r} cannot name an environment: no spaces, '?', '&' or '='.")
    own = isinstance(made_by, type) or inspect.isfunction(made_by)
    _add(Family(name, made_by, exact=True, declared_in="" if own else module))


def _add(made: Family) -> None:
    old = _FAMILIES.get(made.name)
    head = _FAMILIES.get(family_of(made.name))
    again = old is not None and _same(old, made)
    if (old is not None and not again) or (made.exact and head is not None and not head.exact):
        raise IdrlError(f"an environment named {made.name!r} exists already; choose another name.")
    _FAMILIES[made.name] = made


def _same(old: Family, new: Family) -> bool:
    """The same definition, run again: a cell of a notebook."""
    where = [(getattr(x.make, "__module__", ""), getattr(x.make, "__qualname__", "<"))
             for x in (old, new)]  # fmt: skip
    return old.exact == new.exact and where[0] == where[1] and not where[0][1].endswith(("<", ">"))


def _check(made: Family) -> None:
    """Refuse a declaration that could not be used."""
    where = f"family {made.pattern!r}"
    if not _PATTERN.fullmatch(made.pattern):
        raise IdrlError(
            f"{where}: a pattern is 'name', 'name/N' for a whole number or 'name/WORD' for a word."
        )
    parameters = _parameters(made.make)
    if made.placeholder:
        first, *parameters = parameters or [None]
        if first is None or first.kind in (first.KEYWORD_ONLY, first.VAR_KEYWORD):
            raise IdrlError(f"{where}: its constructor takes no {made.placeholder}.")
    keywords = {p.name for p in parameters if p.kind is not p.VAR_POSITIONAL}
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for option, default in (made.options or {}).items():
        if option not in keywords and not open_ended:
            raise IdrlError(f"{where}: its constructor takes no option {option!r}.")
        if not is_kind(default) and type(default) not in KINDS:
            raise IdrlError(
                f"{where}: option {option!r} has the default {default!r}; it must be a number, "
                "a word or a boolean."
            )
    if not re.fullmatch("[a-z-]{1,30}", made.unit.name) or made.unit.per_step < 1:
        raise IdrlError(
            f"{where}: its unit is {made.unit}; it must be a word and how many are a step."
        )
    for name, written in made.named.items():
        for option in written:
            if option not in (made.options or {}):
                raise IdrlError(f"{where}: preset {name!r} has an option {option!r}, it has none.")


def _parameters(make: Any) -> list[Any]:
    return list(inspect.signature(make).parameters.values())


def families() -> dict[str, str]:
    """Name patterns with a line on each."""
    return {name: line for known in _FAMILIES.values() for name, line in known.listed().items()}


def find(name: str) -> Family | None:
    """The family that `name` belongs to, whatever else it says; None where there is none.

    Args:
        name: the name of an environment.
    """
    return _FAMILIES.get(path_of(name)) or _FAMILIES.get(family_of(name))


def alike(name: str) -> Family | None:
    """The family that has the same task as `name`, which is of another."""
    return next((known for known in _FAMILIES.values() if path_of(name) in known.like), None)


def unknown_environment(name: str) -> IdrlError:
    return IdrlError(f"unknown environment {name!r}; {nearest(path_of(name), families())}")


def unit_of(name: str) -> Unit:
    """What runs on the environment `name` are counted in.

    Args:
        name: the name of an environment.
    """
    known = find(name)
    return STEPS if known is None else known.unit


def steps_of(frames: int, env: str) -> int:
    """Steps that take so many frames, whole ones."""
    unit = unit_of(env)
    if unit.name != "frames":
        those = _those(lambda known: known.unit.name == "frames")
        raise IdrlError(
            f"frames are for {those}; {env!r} is counted in {unit.name}: use --steps, or for a "
            "score --episodes."
        )
    if not isinstance(frames, Real) or not math.isfinite(frames) or frames != int(frames):
        raise IdrlError(f"frames is {frames!r}; it must be a whole number.")
    if frames <= 0:
        raise IdrlError(f"frames is {frames}; it must be positive.")
    return -(-int(frames) // unit.per_step)


def under_preset(env: str, named: str | None) -> str:
    """The name of `env` with the options that a named preset of its family writes into it."""
    known = find(env)
    if named is None or (named == PAPER and PAPER not in (known.named if known else ())):
        return env
    if known is None or not known.named:
        those = _those(lambda known: bool(known.named))
        raise IdrlError(f"{env!r} has the preset {PAPER!r}, not {named!r}; others are for {those}.")
    if named not in known.named:
        raise unknown("preset", named, known.named)
    asked, written, kinds = options_of(env), known.named[named], known.options or {}
    for option in asked.keys() & written.keys():
        values = [convert(env, option, each[option], kinds[option]) for each in (asked, written)]
        if values[0] != values[1]:
            raise IdrlError(
                f"preset {named!r} has {option}={written[option]}, not {env!r}; omit the preset "
                "or the option."
            )
    return with_options(env, {**written, **asked, **written})


def _those(fit: Callable[[Family], bool]) -> str:
    found = [f"{known.name}/…" for known in _FAMILIES.values() if fit(known)]
    return ", ".join(found) or "no environment that is known"
