"""What an environment shows, held against the spaces that it declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces


class Wrong(ValueError):
    """What an environment did against its own spaces, as the rest of a sentence about it."""


def check_observation(space: Any, value: Any) -> None:
    """Refuse what is of another shape or kind: NumPy would broadcast or flatten it. Not what is
    out of bounds, which are often rough, and not float64 for float32."""
    found = _wrong(space, value)
    if found:
        raise Wrong(f"returned an observation {found}")


def check_actions(before: Any, now: Any) -> None:
    """Refuse an action space that changed: the agent has what it began with."""
    if now is not before and now != before:
        raise Wrong(f"changed its action space from {before} to {now}")


def _wrong(space: Any, value: Any) -> str:
    """What is wrong with `value`; empty where nothing is."""
    if isinstance(space, spaces.Box):
        return _wrong_array(space, value)
    if isinstance(space, spaces.Dict):
        if not isinstance(value, Mapping) or set(value) != set(space.spaces):
            return f"without the keys {', '.join(map(repr, space.spaces))} of its space alone"
        return _wrong_parts((name, part, value[name]) for name, part in space.spaces.items())
    if isinstance(space, spaces.Tuple):
        if not isinstance(value, tuple | list) or len(value) != len(space.spaces):
            return f"that is not a tuple of {len(space.spaces)} parts"
        return _wrong_parts(
            (i, *pair) for i, pair in enumerate(zip(space.spaces, value, strict=True))
        )
    return "" if space.contains(value) else f"that is not in {space}"


def _wrong_parts(parts: Any) -> str:
    found = ((name, _wrong(space, value)) for name, space, value in parts)
    return next((f"with a part {name!r} {wrong}" for name, wrong in found if wrong), "")


def _wrong_array(space: spaces.Box, value: Any) -> str:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):  # lists of different lengths, …
        return "that is not an array"
    if array.shape != space.shape:
        return f"of shape {array.shape}, but its space has {space.shape}"
    if array.dtype == space.dtype:
        return ""
    if array.dtype.kind not in "buif":
        return f"of {array.dtype}, but its space has {space.dtype}"
    if np.dtype(space.dtype).kind != "f":
        with np.errstate(invalid="ignore"):
            same = array.astype(space.dtype) == array
        if not same.all():
            return f"of {array.dtype} with numbers that its space's {space.dtype} does not hold"
    return ""
