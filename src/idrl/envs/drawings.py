"""Small machines drawn from what is seen of them: a cart with its pole, a car on its hill, arms.

A drawing is strokes with round ends on a picture that is 1.5 wide and 1 high, y upwards; a stroke
without length is a disc.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from idrl.envs.views import Pen, View

_RAIL, _THIN = Pen("line", 0.012), Pen("soft", 0.012)
_BODY, _PART, _END = Pen("accent", 0.11), Pen("chosen", 0.035), Pen("ink", 0.05)
_WHEEL = Pen("ink", 0.045)
_MIDDLE = (0.75, 0.5)
_LOWEST, _HIGHEST, _GOAL = -1.2, 0.6, 0.5  # of mountain_car, in all of its forms


def cart_and_pole(share: Any, angle: Any, *, swings: bool = False) -> View:
    """`share` `[T]` of half the track, right of its middle; `angle` `[T]` from upright, clockwise.
    `swings`: the pole also hangs."""
    ground, length = (0.5, 0.38) if swings else (0.25, 0.55)
    x = 0.75 + 0.62 * np.clip(share, -1, 1)
    tip = x + length * np.sin(angle), ground + 0.04 + length * np.cos(angle)
    return _view(
        "The cart on its track, and its pole",
        (_RAIL, (0.05, ground - 0.06), (1.45, ground - 0.06)),
        (_BODY, (x - 0.06, ground), (x + 0.06, ground)),
        (_PART, (x, ground + 0.04), tip),
        (_END, (x, ground + 0.04), (x, ground + 0.04)),
    )


def car_on_hill(position: Any) -> View:
    """`position` `[T]` from -1.2 to 0.6, on the hill sin(3x)."""
    edges = np.linspace(_LOWEST, _HIGHEST, 37)
    hill = [(_THIN, _on_hill(a), _on_hill(b)) for a, b in itertools.pairwise(edges)]
    (x, y), slope = _on_hill(position), np.arctan(_slope(position))
    cos, sin = np.cos(slope), np.sin(slope)

    def at(forward: float, up: float) -> tuple[Any, Any]:
        return x + forward * cos - up * sin, y + forward * sin + up * cos

    foot = _on_hill(_GOAL)
    return _view(
        "The car on its hill; the flag is where it has to go",
        *hill,
        (_THIN, foot, (foot[0], foot[1] + 0.16)),
        (Pen("chosen", 0.05), (foot[0], foot[1] + 0.15), (foot[0] + 0.05, foot[1] + 0.15)),
        (Pen("accent", 0.07), at(-0.05, 0.07), at(0.05, 0.07)),
        *((_WHEEL, at(side, 0.025), at(side, 0.025)) for side in (-0.045, 0.045)),
    )


def _on_hill(position: Any) -> tuple[Any, Any]:
    x = 0.06 + 1.38 * (np.asarray(position) - _LOWEST) / (_HIGHEST - _LOWEST)
    return x, 0.4 + 0.28 * np.sin(3 * np.asarray(position))


def _slope(position: Any) -> Any:
    """In the picture."""
    return 0.28 * 3 * np.cos(3 * np.asarray(position)) * (_HIGHEST - _LOWEST) / 1.38


def arm(about: str, links: Sequence[tuple[Any, Any]], *marks: tuple[Pen, Any, Any]) -> View:
    """Links `(x, y)` `[T]` from joint to joint, in pictures' heights, beginning in the middle."""
    joints = [_MIDDLE]
    for x, y in links:
        joints.append((joints[-1][0] + x, joints[-1][1] + y))
    pens = (Pen("accent", 0.05), _PART)
    rods = [(pens[i % 2], a, b) for i, (a, b) in enumerate(itertools.pairwise(joints))]
    return _view(about, *marks, *rods, *((_END, joint, joint) for joint in joints[:-1]))


def level(height: float) -> tuple[Pen, Any, Any]:
    """A line so far above the middle."""
    return _RAIL, (0.05, _MIDDLE[1] + height), (1.45, _MIDDLE[1] + height)


def spot(x: Any, y: Any) -> tuple[Pen, Any, Any]:
    """A disc so far from the middle."""
    place = _MIDDLE[0] + x, _MIDDLE[1] + y
    return Pen("soft", 0.07), place, place


def _view(about: str, *strokes: tuple[Pen, Any, Any]) -> View:
    numbers = [x for _, start, end in strokes for x in (*start, *end)]
    frames = np.stack(np.broadcast_arrays(*map(np.atleast_1d, numbers)), -1)
    frames = frames.reshape(len(frames), len(strokes), 4).astype(np.float32)
    return View("strokes", frames, about, tuple(pen for pen, *_ in strokes))
