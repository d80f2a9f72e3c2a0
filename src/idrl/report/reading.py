"""Run folders as a report needs them: finished and whole, or named with the reason they are not."""

from __future__ import annotations

import csv
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
    first, count, wanted = _shape(config)
    rows = _table(path, "evaluations.csv", ("seed", "steps"), ("return_mean",))
    if not rows:
        raise IdrlError("it has no evaluations yet.")
    if count > len(rows):
        raise IdrlError(f"it is unfinished: {len(rows)} evaluations of {count} seeds.")
    seeds = [_seed(path, seed, rows) for seed in range(first, first + count)]
    done = min(int(seed.steps[-1]) if seed.steps.size else 0 for seed in seeds)
    if done < wanted:
        raise IdrlError(f"it is unfinished: {done:,} of {wanted:,} steps evaluated.")
    for seed in seeds:
        if not np.isfinite(seed.returns).any():
            raise IdrlError(f"no evaluation of seed {seed.seed} completed an episode.")
    bands = _table(path, "distributions.csv", ("seed", "steps"), ("mean", *BANDS))
    if bands and "quantity" not in bands[0]:
        raise IdrlError("its distributions.csv is damaged: it has no column 'quantity'.")
    return Record(path, config, seeds, bands)


def _shape(config: dict[str, Any]) -> tuple[int, int, int]:
    """First seed, number of seeds, steps; all that grouping relies on is checked to be there."""
    try:
        first, count = int(config["seed"]), int(config["seeds"])
        steps = int(config["training"]["steps"])
        int(config["evaluation"]["steps"]), int(config["evaluation"]["every_steps"])
        words = all(isinstance(config[name], str) for name in ("agent", "env"))
    except (KeyError, TypeError, ValueError) as error:
        raise IdrlError(f"its config.toml is damaged: {error}.") from None
    if not words or count < 1:
        raise IdrlError("its config.toml is damaged: it names no agent, task or seeds.")
    return first, count, steps


def _seed(path: Path, seed: int, rows: list[dict[str, str]]) -> Seed:
    mine = [row for row in rows if row["seed"] == str(seed)]
    steps, returns = (np.array(numbers(mine, name)) for name in ("steps", "return_mean"))
    order = np.argsort(steps, kind="stable")
    returns = np.where(np.isfinite(returns), returns, np.nan)
    return Seed(path, seed, steps[order].astype(int), returns[order])


def _table(
    path: Path, name: str, whole: Sequence[str], numeric: Sequence[str]
) -> list[dict[str, str]]:
    """A table where the columns `whole` hold whole numbers and `numeric` numbers or nothing."""
    try:
        rows = read_table(path / name)
        for row in rows:
            if None in row or None in row.values():
                raise ValueError("a row has another number of cells than the first")
            for column in whole:
                int(row[column])
            for column in numeric:
                float(row[column] or "nan")
    except KeyError as error:
        raise IdrlError(f"its {name} is damaged: it has no column {error.args[0]!r}.") from None
    except (ValueError, OSError, csv.Error) as error:
        raise IdrlError(f"its {name} is damaged: {error}.") from None
    return rows
