"""Results as CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def write(path: str | Path, rows: Sequence[dict[str, Any]], columns: Sequence[str] = ()) -> None:
    """`columns`: those to write; by default the first row's."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        names = columns or list(rows[0])
        writer = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
