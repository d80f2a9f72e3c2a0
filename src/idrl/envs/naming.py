"""What the name of an environment says: `family`, `family/argument`,
`family/argument?option=value&…`. Text alone; families are in `declaring`."""

from __future__ import annotations

from typing import Any

from idrl.errors import IdrlError

KINDS = (bool, int, float, str)


def family_of(name: str) -> str:
    """The name of the family an environment belongs to, by which tasks are grouped.

    Args:
        name: the name of the environment.
    """
    return path_of(name).partition("/")[0]


def path_of(name: str) -> str:
    return name.partition("?")[0]


def options_of(name: str) -> dict[str, str]:
    """What `name` says behind its question mark."""
    _, mark, query = name.partition("?")
    pairs = [part.partition("=") for part in query.split("&")] if mark else []
    if any(not key or not value for key, _, value in pairs):
        raise IdrlError(f"{name!r}: options are written ?option=value&option=value.")
    options = {key: value for key, _, value in pairs}
    if len(options) < len(pairs):
        raise IdrlError(f"{name!r} has an option twice: omit one.")
    return options


def with_options(name: str, options: dict[str, str]) -> str:
    """The same with these options instead of its own."""
    query = "&".join(f"{option}={value}" for option, value in options.items())
    return f"{path_of(name)}?{query}" if query else path_of(name)


def is_kind(default: Any) -> bool:
    """Whether an option has a type in the place of a default."""
    return isinstance(default, type) and default in KINDS


def convert(name: str, option: str, text: str, default: Any) -> Any:
    """`text` as a value of the default's type."""
    kind = default if is_kind(default) else type(default)
    if kind is str:
        return text
    if kind is bool:
        if text not in ("0", "1"):
            raise IdrlError(f"{name!r}: {option} is 0 or 1, not {text!r}.")
        return text == "1"
    return number(name, text, kind)


def number(name: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise IdrlError(f"{name!r}: {text!r} is not {what}.") from None
