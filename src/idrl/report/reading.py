"""Run folders as a report needs them: finished and whole, or named with the reason they are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from idrl.errors import IdrlError
from idrl.runs.folder import RunFolder
from idrl.runs.records import numbers, read_table

BANDS = ("p0", "p5", "p25", "p50", "p75", "p95", "p100")


class Seed(NamedTuple):
    """The evaluations of one seed."""

    run: Path
    seed: int
    steps: np.ndarray
    returns: np.ndarray  # NaN where no episode was completed

    @property
    def best(self) -> float:
        """The best-agent protocol: the highest evaluation."""
        return float(np.nanmax(self.returns))


class Record(NamedTuple):
    """What a finished run leaves."""

    path: Path
    config: dict[str, Any]
    seeds: list[Seed]
    distributions: list[dict[str, str]]  # empty where none were recorded

    @property
    def agent(self) -> str:
        return self.config["agent"]

    @property
    def env(self) -> str:
        return self.config["env"]


class LeftOut(NamedTuple):
    path: Path
    why: str


def read_runs(paths: Sequence[str | Path]) -> tuple[list[Record], list[LeftOut]]:
    """Every run in `paths`, which are run folders or folders of them."""
    records, left_out = [], []
    for path in find_runs(paths):
        try:
            records.append(read_run(path))
        except IdrlError as error:
            left_out.append(LeftOut(path, str(error)))
    if not records:
        first = left_out[0]
        many = f"none of the {len(left_out)} runs" if len(left_out) > 1 else "the run"
        cannot = (
            "can be reported, the first because" if len(left_out) > 1 else "cannot be reported:"
        )
        raise IdrlError(f"{many} {cannot} {first.path.name}: {first.why}")
    return records, left_out


def find_runs(paths: Sequence[str | Path]) -> list[Path]:
    found: dict[Path, Path] = {}  # by what they really are: named twice, counted once
    for path in map(Path, paths):
        if not path.is_dir():
            raise IdrlError(
                f"there is no folder {str(path)!r}; name run folders, or a folder of them."
            )
        inside = [path] if (path / "run.json").exists() or (path / "config.toml").exists() else []
        inside = inside or sorted(p.parent for p in path.rglob("run.json"))
        if not inside:
            raise IdrlError(f"{str(path)!r} holds no run folders.")
        found |= {run.resolve(): run for run in inside}
    return list(found.values())


def read_run(path: Path) -> Record:
    """Refuses a run that is unfinished or damaged, with the reason."""
    config = RunFolder.open(path).read_config()
    try:
        first, count = int(config["seed"]), int(config["seeds"])
        wanted = int(config["training"]["steps"])
        str(config["agent"]), str(config["env"]), int(config["evaluation"]["steps"])
    except (KeyError, TypeError, ValueError) as error:
        raise IdrlError(f"its config.toml is damaged: {error}.") from None
    rows = _table(path, "evaluations.csv", ("seed", "steps", "return_mean"))
    if not rows:
        raise IdrlError("it has no evaluations yet.")
    seeds = [_seed(path, seed, rows) for seed in range(first, first + count)]
    done = min(int(seed.steps[-1]) if seed.steps.size else 0 for seed in seeds)
    if done < wanted:
        raise IdrlError(f"it is unfinished: {done:,} of {wanted:,} steps evaluated.")
    for seed in seeds:
        if not np.isfinite(seed.returns).any():
            raise IdrlError(f"no evaluation of seed {seed.seed} completed an episode.")
    bands = _table(path, "distributions.csv", ("seed", "steps", "quantity", "mean", *BANDS))
    return Record(path, config, seeds, bands)


def _seed(path: Path, seed: int, rows: list[dict[str, str]]) -> Seed:
    mine = [row for row in rows if row["seed"] == str(seed)]
    steps, returns = (np.array(numbers(mine, name)) for name in ("steps", "return_mean"))
    order = np.argsort(steps, kind="stable")
    return Seed(path, seed, steps[order].astype(int), returns[order])


def _table(path: Path, name: str, columns: Sequence[str]) -> list[dict[str, str]]:
    """A table whose `columns` are all there and hold numbers, but for names and empty cells."""
    try:
        rows = read_table(path / name)
        for row in rows:
            if None in row or None in row.values():
                raise ValueError("a row has another number of cells than the first")
            for column in columns:
                if column != "quantity" and row[column]:
                    float(row[column])
    except KeyError as error:
        raise IdrlError(f"its {name} is damaged: it has no column {error.args[0]!r}.") from None
    except (ValueError, OSError) as error:
        raise IdrlError(f"its {name} is damaged: {error}.") from None
    return rows
