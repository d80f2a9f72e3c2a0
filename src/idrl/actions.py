"""What an environment can be told to do: one of so many actions, or a point of a box."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from idrl.errors import IdrlError


@dataclass(frozen=True)
class Box:
    """Continuous actions, with bounds for each of their numbers.

    Outside networks and rules an action is in the environment's own units; inside it is in the unit
    box [-1, 1]. Works with NumPy and JAX arrays.
    """

    low: tuple[float, ...]  # the least of each number
    high: tuple[float, ...]  # the largest of each number

    def __post_init__(self) -> None:
        pairs = list(zip(self.low, self.high, strict=True))
        if not pairs or not all(math.isfinite(b - a) and a < b for a, b in pairs):
            raise IdrlError(
                f"a box of actions from {list(self.low)} to {list(self.high)}: it needs at least "
                "one number, and each a finite low below a finite high."
            )

    @property
    def dims(self) -> int:
        """How many numbers an action has."""
        return len(self.low)

    @property
    def _middle(self) -> np.ndarray:
        return ((np.array(self.low) + np.array(self.high)) / 2).astype(np.float32)

    @property
    def _half(self) -> np.ndarray:
        return ((np.array(self.high) - np.array(self.low)) / 2).astype(np.float32)

    def from_unit(self, unit: Any) -> Any:
        """A point of [-1, 1] in the environment's units.

        Args:
            unit: `[..., D]`.
        """
        low, high = (np.array(x, np.float32) for x in (self.low, self.high))
        return (self._middle + self._half * unit).clip(low, high)  # rounding may leave the box

    def to_unit(self, action: Any) -> Any:
        """An action as a point of [-1, 1].

        Args:
            action: `[..., D]`.
        """
        return (action - self._middle) / self._half


Actions = int | Box


def actions_of(env: Any) -> Actions:
    """Of an environment of either kind: its `action_box` if it has one, or how many it has."""
    box = getattr(env, "action_box", None)
    return int(env.num_actions) if box is None else box


def some_allowed(allowed: Any) -> Any:
    """`[..., A]`, but all where none is: no choice is made there (an episode is over), and whoever
    is asked all the same may say anything."""
    return allowed | ~allowed.any(-1, keepdims=True)


def in_words(actions: Actions) -> str:
    """As a sentence would have it."""
    if isinstance(actions, Box):
        return f"{actions.dims}-dimensional continuous actions"
    return f"{actions} discrete actions"


def to_table(actions: Actions) -> dict[str, Any]:
    """For a file; `from_table` is the inverse."""
    if isinstance(actions, Box):
        return {"action_box": {"low": list(actions.low), "high": list(actions.high)}}
    return {"num_actions": actions}


def from_table(table: dict[str, Any]) -> Actions | None:
    """Out of a file, which may say anything: None where that cannot be."""
    box = table.get("action_box")
    if box is None:
        count = table.get("num_actions")
        return count if type(count) is int and 0 < count < 2**31 else None
    try:
        low, high = (tuple(float(x) for x in box[name]) for name in ("low", "high"))
        return Box(low, high)
    except (TypeError, ValueError, KeyError, OverflowError, IdrlError):
        return None
