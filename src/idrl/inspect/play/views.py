"""What an observation looks like: a board, a picture, or a row of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from idrl.system import words

# For the channels of a board; index 0 is the page's own ground.
CELLS = (
    "", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C8C8C", "#F0E442",
    "#7F3C8D", "#B5651D",
)  # fmt: skip
DIVER, TRAIL, TREASURE = 5, 6, 8
_LARGEST = 240  # pixels of a drawn picture's longer side


class View(NamedTuple):
    """`frames`: `[T, H, W]` (indices of colours, or greys), `[T, H, W, 3]`, or `[T, N]` numbers."""

    kind: str  # "cells", "grey", "colour" or "numbers"
    frames: np.ndarray
    about: str  # what is seen, for those who cannot see it


def view(env: str, observations: Sequence[Any], pictures: Sequence[np.ndarray | None]) -> View:
    env = words.name(env)
    if pictures and pictures[0] is not None:
        frames = np.stack([_small(np.asarray(picture)) for picture in pictures])
        return View("colour", frames.astype(np.uint8), f"{env} as it draws itself")
    seen = np.stack([np.asarray(obs) for obs in observations])
    family = env.partition("?")[0].partition("/")[0]
    if family == "deep_sea" and seen.ndim == 3:
        about = "The sea: orange is the agent, light blue its way so far, yellow the treasure"
        return View("cells", _deep_sea(seen), about)
    if seen.ndim == 4 and seen.shape[-1] == 3 and seen.dtype == np.uint8:
        return View("colour", seen, f"What the agent sees of {env}")
    if seen.ndim == 4 and seen.shape[-1] < len(CELLS) and seen.max() <= 1:
        return View("cells", _channels(seen), f"The board of {env}, a colour for each channel")
    if seen.ndim == 4:  # a stack of frames: the newest is last
        return View("grey", _bytes(seen[..., -1]), f"The newest frame that the agent sees of {env}")
    if seen.ndim == 3:
        return View("grey", _bytes(seen), f"What the agent sees of {env}")
    flat = seen.reshape(len(seen), -1).astype(np.float32)
    return View("numbers", flat, f"The numbers that the agent sees of {env}")


def _deep_sea(seen: np.ndarray) -> np.ndarray:
    """`[T, N, N]` one-hot places → cells with the way behind the agent."""
    here = seen.astype(bool)
    been = np.logical_or.accumulate(here, axis=0) & ~here
    cells = np.where(here, DIVER, np.where(been, TRAIL, 0)).astype(np.uint8)
    corner = cells[:, -1, -1]
    cells[:, -1, -1] = np.where(corner == 0, TREASURE, corner)
    return cells


def _channels(seen: np.ndarray) -> np.ndarray:
    """`[T, H, W, C]` zeros and ones → the last channel that is set, counted from 1; 0: none."""
    numbered = seen.astype(bool) * np.arange(1, seen.shape[-1] + 1, dtype=np.uint8)
    return numbered.max(-1)


def _bytes(seen: np.ndarray) -> np.ndarray:
    if seen.dtype == np.uint8 and seen.max() > 1:
        return seen
    low, high = float(seen.min()), float(seen.max())
    return ((seen - low) / max(high - low, 1e-9) * 255).astype(np.uint8)


def _small(picture: np.ndarray) -> np.ndarray:
    """By whole steps: sharp, and few colours stay few (they pack well)."""
    step = -(-max(picture.shape[:2]) // _LARGEST)
    return picture[::step, ::step]
