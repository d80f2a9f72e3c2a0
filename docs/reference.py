"""Reference pages made from the code while Sphinx reads them, so that they cannot go stale.

A page holds a marker, and what stands in its place is generated:

    % commands            every command of `idrl` with its options, from the parsers themselves
    % module idrl.losses  everything public in a module
    % kinds rule          every built-in part of a category

The build warns, and so fails, where a public name has no docstring, a parameter is not described,
or a name is missing from the pages. A parameter of a function is described under "Args:" in its
docstring (Google's style); a field of a dataclass or a named tuple by the comment beside it.
`python docs/reference.py` prints what is missing.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import functools
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

MODULES = ("ids", "rules", "losses", "agents", "envs", "bandits")
CATEGORIES = ("rule", "head", "trunk", "optimiser")
# Classes that users are handed and never make: their methods are described, not their fields.
HANDED_OUT = ("Policy", "RecordTable", "Agent", "AgentState", "Family")
_MARKER = re.compile(r"^% (commands|module|kinds)(?: (\S+))?$", flags=re.MULTILINE)


def setup(app) -> dict:
    app.connect("source-read", _fill)
    app.connect("autodoc-process-docstring", _add_fields)
    app.connect("autodoc-process-docstring", _rejoin, priority=600)  # after napoleon
    app.connect("env-check-consistency", _check)
    return {"parallel_read_safe": True}


def _fill(app, docname: str, source: list[str]) -> None:
    made = {"commands": commands, "module": module, "kinds": kinds}
    source[0] = _MARKER.sub(
        lambda found: "\n".join(made[found[1]](*filter(None, [found[2]]))), source[0]
    )


def _add_fields(app, what, name, value, options, lines: list[str]) -> None:
    """Fields of a dataclass or a named tuple, as the parameters that they are."""
    if what == "class" and (found := field_comments(value)):
        lines += ["", *(f":param {field}: {text}" for field, text in found.items() if text), ""]


def _rejoin(app, what, name, value, options, lines: list[str]) -> None:
    """A sentence with a colon, which napoleon takes for a type and a description."""
    for number, line in enumerate(lines):
        if what == "property" and line.startswith(":type: "):
            del lines[number]
            lines[0] = f"{line.removeprefix(':type: ')}: {lines[0]}"
            return


def _check(app, env) -> None:
    from sphinx.util import logging

    log = logging.getLogger(__name__)
    shown = env.domains["py"].objects
    for name in public():
        if name not in shown:
            log.warning("%s is public and missing from the reference", name)
    for sentence in undescribed():
        log.warning(sentence)


# -- what is public ---------------------------------------------------------------------------


@functools.cache
def public() -> dict[str, Any]:
    """Everything that users may rely on, by the name they import it by."""
    import idrl

    found = {f"idrl.{name}": getattr(idrl, name) for name in (*idrl._HOME, "report")}
    for name in MODULES:
        found |= {path: value for path, value in members(f"idrl.{name}")}
    for category in CATEGORIES:
        found |= {f"{part.__module__}.{part.__qualname__}": part for part in parts(category)}
    return found


def members(path: str) -> list[tuple[str, Any]]:
    """What a module offers besides what `idrl` itself does."""
    import idrl

    home = importlib.import_module(path)
    names = getattr(home, "__all__", None) or [
        name
        for name, value in vars(home).items()
        if getattr(value, "__module__", None) == path and not name.startswith("_")
    ]
    return [(f"{path}.{n}", getattr(home, n)) for n in names if n not in idrl._HOME]


def parts(category: str) -> list[type]:
    import idrl

    importlib.import_module("idrl.agents")  # registers them
    found = (idrl.Rule, idrl.Head, idrl.Trunk, idrl.Optimiser)
    (base,) = (one for one in found if one.category == category)
    return [part for part in base.kinds.values() if part.is_built_in()]


# -- what is said of it -----------------------------------------------------------------------


def undescribed() -> Iterator[str]:
    """Sentences on what is public and not described."""
    for name, value in public().items():
        if not callable(value):
            continue
        own = inspect.isclass(value) or inspect.isfunction(value) or inspect.ismethod(value)
        if not own:
            continue
        text = value.__doc__ or ""
        if not text.strip() or text.startswith(f"{getattr(value, '__name__', '')}("):
            yield f"{name} has no docstring"
            continue
        known = field_comments(value) if inspect.isclass(value) else {}
        known = {**known, **arguments(text)}
        for parameter in () if value.__name__ in HANDED_OUT else parameters(value):
            if not known.get(parameter):
                yield f"{name} does not describe {parameter!r}"
        if inspect.isclass(value) and name.count(".") == 1:
            yield from _undescribed_methods(name, value)


def _undescribed_methods(name: str, cls: type) -> Iterator[str]:
    """Methods may inherit their docstrings."""
    for method, value in vars(cls).items():
        if method.startswith("_") or not isinstance(
            value, property | classmethod | staticmethod | type(lambda: 0)
        ):
            continue
        if not inspect.getdoc(getattr(cls, method)):
            yield f"{name}.{method} has no docstring"


def parameters(value: Any) -> list[str]:
    if inspect.isclass(value):
        fields = field_comments(value)
        if fields or dataclasses.is_dataclass(value):
            return list(fields)
        if "__init__" not in vars(value):
            return []
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    signature = inspect.signature(value).parameters.values()
    return [one.name for one in signature if one.kind in plain and one.name != "self"]


def arguments(text: str) -> dict[str, str]:
    """Under "Args:" in a docstring: `name: what it is`, and `one, two: what they are`."""
    _, _, section = inspect.cleandoc(text).partition("\nArgs:\n")
    section = re.split(r"\n\S", section)[0]
    found = re.findall(r"^    (\S[^:]*): +(\S.*)$", section, flags=re.MULTILINE)
    return {name.strip(): said for names, said in found for name in names.split(",")}


@functools.cache
def field_comments(cls: type) -> dict[str, str]:
    """The fields of a dataclass or a named tuple, inherited ones too, each with its comment."""
    named = hasattr(cls, "_fields") and issubclass(cls, tuple)
    if not (named or dataclasses.is_dataclass(cls)):
        return {}
    wanted = cls._fields if named else [f.name for f in dataclasses.fields(cls) if f.init]
    said: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("idrl"):
            said |= _comments(base)
    return {name: said.get(name, "") for name in wanted}


def _comments(cls: type) -> dict[str, str]:
    """By the source: a comment behind a field, or the lines of comment above it."""
    try:
        lines = textwrap.dedent(inspect.getsource(cls)).splitlines()
    except (OSError, TypeError):
        return {}
    (node,) = ast.parse("\n".join(lines)).body
    found = {}
    for item in node.body:
        if not (isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)):
            continue
        own = lines[item.lineno - 1 : item.end_lineno]
        behind = [
            re.sub(r"(type: ignore|fmt: skip)\S*( +# )?", "", line.partition("  # ")[2])
            for line in own
        ]
        above, at = [], item.lineno - 2
        while not any(behind) and lines[at].strip().startswith("# "):
            above.insert(0, lines[at].strip()[2:])
            at -= 1
        found[item.target.id] = " ".join(filter(None, [*above, *behind])).strip()
    return found


# -- pages ------------------------------------------------------------------------------------


def module(path: str) -> Iterator[str]:
    """Everything public in a module, in its own order."""
    yield "```{eval-rst}"
    for name, value in members(path):
        yield from _directive(name, value)
    yield "```"


def kinds(category: str) -> Iterator[str]:
    """The built-in parts of a category, under the names that configs pick them by."""
    for part in parts(category):
        yield f"### {part.kind}\n\n```{{eval-rst}}"
        yield f".. autoclass:: {part.__module__}.{part.__qualname__}"
        yield "```\n"


def _directive(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield f".. autoclass:: {name}"
        if not field_comments(value) and not issubclass(value, Exception):
            yield "   :members:"
    elif callable(value):
        yield f".. autofunction:: {name}"
    else:  # a dictionary of names
        known = ", ".join(f"``{key}``" for key in value)
        yield f".. py:data:: {name}\n\n   By name: {known}.\n"


def commands() -> Iterator[str]:
    """Markdown for every command, in the order of `idrl --help`."""
    from idrl.cli.app import parser

    (group,) = _groups(parser())
    for choice in group._choices_actions:
        yield from _command(group.choices[choice.dest], choice.help, "##")


def _groups(of: argparse.ArgumentParser) -> list[argparse._SubParsersAction]:
    return [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]


def _command(of: argparse.ArgumentParser, summary: str, level: str) -> Iterator[str]:
    yield f"{level} {of.prog}\n"
    yield f"{summary[0].upper()}{summary[1:]}.\n"
    if of.description and of.description != summary:
        yield f"{of.description}\n"
    groups = _groups(of)
    actions = [action for action in of._actions if action not in groups and action.dest != "help"]
    if actions:
        yield "| argument | meaning |\n|---|---|"
        yield from (_row(action) for action in actions)
        yield ""
    for group in groups:
        for choice in group._choices_actions:
            yield from _command(group.choices[choice.dest], choice.help, level + "#")


def _row(action: argparse.Action) -> str:
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices and not isinstance(action.metavar, str):
        name = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        shown = [f"`{name}`"]
    elif action.nargs == 0:
        shown = [f"`{option}`" for option in action.option_strings]
    else:
        shown = [f"`{option} {name}`" for option in action.option_strings]
    text = (action.help or "") % {**vars(action), "prog": "idrl"}
    text = re.sub(r"(?<!`)--[a-z][\w-]*", r"`\g<0>`", text)  # or it becomes a dash
    return f"| {', '.join(shown)} | {text} |".replace("\n", " ")


if __name__ == "__main__":
    print("\n".join(undescribed()))
