"""What `idrl play` shows of an episode's observations: a board, a picture, strokes, or numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

# For the channels of a board; index 0 is the page's own ground.
CELLS = (
    "", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C8C8C", "#F0E442",
    "#7F3C8D", "#B5651D",
)  # fmt: skip
AXES = {
    "cells": 3,
    "grey": 3,
    "colour": 4,
    "strokes": 3,
    "numbers": 2,
}  # of the frames of each kind


# Of strokes, by name: a page has them for light and dark.
COLOURS = {
    "ink": "#1D2126", "soft": "#5A636E", "line": "#D9DDE2", "accent": "#0072B2",
    "chosen": "#D55E00",
}  # fmt: skip


class Pen(NamedTuple):
    """What a stroke is drawn with."""

    colour: str  # a name of `COLOURS`
    width: float  # of the picture's height


class View(NamedTuple):
    """What `idrl play` shows of an episode's observations."""

    kind: str  # "cells", "grey", "colour", "strokes" or "numbers"
    # `[T, H, W]` indices of colours or greys, `[T, H, W, 3]` colours, `[T, S, 4]` strokes from x, y
    # to x, y on a picture 1.5 wide and 1 high (y upwards), or `[T, N]` numbers. An episode of
    # `idrl.play` has them packed, and reads like an array.
    frames: Any
    about: str  # what is seen, for those who cannot see it
    pens: tuple[Pen, ...] = ()  # of strokes, one for each
