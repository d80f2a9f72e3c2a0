"""The map of σ over deep_sea that a run recorded while it trained."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from idrl.errors import IdrlError
from idrl.storage.records import read_table


class SigmaMap(NamedTuple):
    """`maps` `[snapshots, N, N]`, NaN where no way leads."""

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
        side = int((np.sqrt(8 * values.shape[1] + 1) - 1) / 2)  # N(N+1)/2 places
        maps = np.full((len(rows), side, side), np.nan)
        maps[:, *np.tril_indices(side)] = values
    except IdrlError:
        raise
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise IdrlError(f"{str(run / 'sigma_map.csv')!r} is damaged: {error}.") from None
    return SigmaMap(steps, maps)
