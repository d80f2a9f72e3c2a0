"""What an observation looks like: as its family draws it, else a board, a picture or numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from idrl.envs import View, find
from idrl.envs.declaring import alike
from idrl.envs.views import AXES, CELLS, COLOURS
from idrl.errors import IdrlError
from idrl.inspect.play.rows import Rows
from idrl.system import words

_LARGEST = 240  # pixels of a drawn picture's longer side


def drawn(env: str, pictures: Rows) -> View:
    """Of an environment that draws itself; pictures are `small`."""
    frames = pictures if pictures.dtype == np.uint8 else pictures.map(lambda p: p.astype(np.uint8))
    return View("colour", frames, f"{words.name(env)} as it draws itself")


def view(env: str, seen: Rows) -> View:
    """Of observations. A family's own view gets all of them at once, since it may show a way."""
    families, env = (find(env), alike(env)), words.name(env)
    makers = [family.view for family in families if family is not None and family.view is not None]
    made = (make(np.asarray(seen)) for make in makers)
    own = next((found for found in made if found is not None), None)
    return _usual(env, seen) if own is None else _checked(own, len(seen), env)


def _usual(env: str, seen: Rows) -> View:
    if seen.ndim == 4 and seen.shape[-1] == 3 and seen.dtype == np.uint8:
        return View("colour", seen, f"What the agent sees of {env}")
    if seen.ndim == 4 and seen.shape[-1] < len(CELLS) and seen.max() <= 1:
        return View("cells", seen.map(_channels), f"The board of {env}, a colour for each channel")
    if seen.ndim == 4:  # a stack of frames: the newest is last
        newest = seen.map(lambda chunk: chunk[..., -1])
        return View("grey", _bytes(newest), f"The newest frame that the agent sees of {env}")
    if seen.ndim == 3:
        return View("grey", _bytes(seen), f"What the agent sees of {env}")
    flat = seen.map(lambda chunk: chunk.reshape(len(chunk), -1).astype(np.float32))
    return View("numbers", flat, f"The numbers that the agent sees of {env}")


def _checked(own: Any, steps: int, env: str) -> View:
    """A family's own, with frames as the page and the video want them."""
    axes = AXES.get(own.kind) if isinstance(own, View) else None
    frames = np.asarray(own.frames) if axes else np.zeros(0)
    shaped = frames.ndim == axes and len(frames) == steps
    if not shaped or not _fits(own, frames.shape):
        kinds = ", ".join(f"{kind} [T{', …' * (n - 1)}]" for kind, n in AXES.items())
        raise IdrlError(
            f"the view of {env} is not a View of its {steps} observations; kinds and frames: "
            f"{kinds}."
        )
    kind = np.float32 if own.kind in ("numbers", "strokes") else np.uint8
    return own._replace(frames=Rows(frames.astype(kind)))


def _fits(own: View, shape: tuple[int, ...]) -> bool:
    """Whether colours are of three numbers, and strokes of four, with a pen each."""
    if own.kind == "strokes":
        known = all(pen.colour in COLOURS for pen in own.pens)
        return shape[2] == 4 and len(own.pens) == shape[1] and known
    return own.kind != "colour" or shape[-1] == 3


def _channels(seen: np.ndarray) -> np.ndarray:
    """`[T, H, W, C]` zeros and ones → the last channel that is set, counted from 1; 0: none."""
    numbered = seen.astype(bool) * np.arange(1, seen.shape[-1] + 1, dtype=np.uint8)
    return numbered.max(-1)


def _bytes(seen: Rows) -> Rows:
    if seen.dtype == np.uint8 and seen.max() > 1:
        return seen
    low, high = float(seen.min()), float(seen.max())
    return seen.map(lambda c: ((c - low) / max(high - low, 1e-9) * 255).astype(np.uint8))


def small(picture: np.ndarray) -> np.ndarray:
    """By whole steps: sharp, and few colours stay few (they pack well)."""
    step = -(-max(picture.shape[:2]) // _LARGEST)
    return picture[::step, ::step]
