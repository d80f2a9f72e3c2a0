"""What `idrl play` shows of an episode's observations: a board, a picture, or numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# For the channels of a board; index 0 is the page's own ground.
CELLS = (
    "", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C8C8C", "#F0E442",
    "#7F3C8D", "#B5651D",
)  # fmt: skip
AXES = {"cells": 3, "grey": 3, "colour": 4, "numbers": 2}  # of the frames of each kind


class View(NamedTuple):
    """What `idrl play` shows of an episode's observations."""

    kind: str  # "cells", "grey", "colour" or "numbers"
    # `[T, H, W]` indices of colours or greys, `[T, H, W, 3]` colours, or `[T, N]` numbers
    frames: np.ndarray
    about: str  # what is seen, for those who cannot see it
