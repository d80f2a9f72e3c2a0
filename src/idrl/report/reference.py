"""Published curves from a file, to lay over one's own."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from idrl.errors import IdrlError
from idrl.report.paper import game_of
from idrl.report.style import Look, dotted
from idrl.storage.records import opened
from idrl.system import words

COLUMNS = ("agent", "game", "frames", "eval_return")


class Published(NamedTuple):
    agent: str
    frames: np.ndarray
    returns: np.ndarray


def read_reference(path: str | Path) -> dict[str, list[Published]]:
    """By game, which is a ROM's name or an environment's own."""
    path = Path(path)
    curves: dict[tuple[str, str], list[tuple[float, float]]] = {}
    try:
        with opened(path, named=True) as lines:
            reader = csv.DictReader(lines)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise IdrlError(
                    f"the reference file {str(path)!r} lacks the column {', '.join(missing)}; "
                    f"it needs {', '.join(COLUMNS)}."
                )
            for row in reader:
                point = _point(path, reader.line_num, row)
                curves.setdefault((row["game"], row["agent"]), []).append(point)
    except FileNotFoundError:
        raise IdrlError(f"there is no reference file {str(path)!r}.") from None
    if not curves:
        raise IdrlError(f"the reference file {str(path)!r} has no rows.")
    found: dict[str, list[Published]] = {}
    for (game, agent), points in curves.items():
        frames, returns = np.array(sorted(points)).T
        found.setdefault(game, []).append(Published(words.name(agent), frames, returns))
    return found


def _point(path: Path, line: int, row: dict) -> tuple[float, float]:
    try:
        point = float(row["frames"]), float(row["eval_return"])
        if not all(map(math.isfinite, point)):
            raise ValueError
    except (TypeError, ValueError):
        raise IdrlError(
            f"line {line} of the reference file {str(path)!r} has no number for frames or "
            "eval_return."
        ) from None
    return point


def for_task(
    reference: dict[str, list[Published]], task: str, frames: float = math.inf
) -> list[Published]:
    """Curves of `task` as far as `frames`: what came later would squeeze short runs to a corner."""
    curves = reference.get(task) or reference.get(game_of(task) or "") or []
    cut = [(x, x.frames <= frames) for x in curves]
    return [Published(x.agent, x.frames[in_], x.returns[in_]) for x, in_ in cut if in_.any()]


def published_looks(reference: dict[str, list[Published]]) -> dict[str, Look]:
    """How each of its agents is drawn, the same in every chart."""
    return dotted(x.agent for curves in reference.values() for x in curves)
