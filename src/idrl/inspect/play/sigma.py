"""The map of σ over states that a run recorded while it trained."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from idrl.envs import find
from idrl.errors import IdrlError
from idrl.storage.folder import RunFolder
from idrl.storage.records import read_table


class SigmaMap(NamedTuple):
    """`maps` `[snapshots, H, W]`, NaN where no state is."""

    steps: np.ndarray
    maps: np.ndarray


def read_sigma(run: Path, seed: int) -> SigmaMap | None:
    """None where the run has no map of this seed."""
    try:
        found = read_table(run / "sigma_map.csv", ("seed", "steps"))
        rows = [row for row in found if row["seed"] == str(seed)]
        if not rows:
            return None
        values = np.array([[float(x) for x in row["sigma"].split()] for row in rows])
        steps = np.array([int(row["steps"]) for row in rows])
        family = find(str(RunFolder.open(run).read_config()["env"]))
        board = _one_row if family is None or family.board is None else family.board
        maps = board(values)
    except IdrlError:
        raise
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise IdrlError(f"{str(run / 'sigma_map.csv')!r} is damaged: {error}.") from None
    return SigmaMap(steps, maps)


def _one_row(values: np.ndarray) -> np.ndarray:
    return values[..., None, :]
