"""Reference pages made from the code while Sphinx reads them, so that they cannot go stale.

A page of the reference holds a marker; what stands in its place is generated:

    % commands        every command of `idrl` with its options, from the parsers themselves
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

COMMANDS = "% commands"


def setup(app) -> dict:
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True}


def _fill(app, docname: str, source: list[str]) -> None:
    if COMMANDS in source[0]:
        source[0] = source[0].replace(COMMANDS, "\n".join(commands()))


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
    return f"| {', '.join(shown)} | {text} |".replace("\n", " ")
