"""All runs of a study as one table, a row a seed: CSV, or Parquet where pyarrow is installed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from idrl.errors import IdrlError
from idrl.storage.files import check_writable
from idrl.storage.records import numbers, read_table
from idrl.sweep.folder import Outcome, StudyFolder
from idrl.sweep.job import Job
from idrl.system.words import csv_text


def rows(folder: StudyFolder) -> list[dict[str, Any]]:
    """Settings that differ within the study are columns of their own."""
    base = folder.runs()
    found = folder.outcomes()
    varied = list(dict.fromkeys(name for job in folder.jobs.values() for name in job.variant))
    return [
        row
        for name, job in folder.jobs.items()
        for row in _seed_rows(job, found[name], base / name, varied)
    ]


def _seed_rows(job: Job, outcome: Outcome, path: Path, varied: list[str]) -> list[dict[str, Any]]:
    """Where no evaluation completed an episode there is no score, and its cells are empty."""
    evaluations = []
    if outcome.over:
        columns = ("return_mean", "best")
        try:
            evaluations = read_table(path / "evaluations.csv", ("seed", "steps"), columns)
        except IdrlError as error:
            raise IdrlError(f"{job.name}: {error}") from None
    last = {row["seed"]: row for row in evaluations}
    settings = {name: job.variant.get(name) for name in varied}
    made = []
    for seed in range(job.seed, job.seed + job.seeds):
        mine = [last[str(seed)]] if str(seed) in last else []
        scores = {
            name: next(filter(math.isfinite, numbers(mine, column)), None)
            for name, column in (("last", "return_mean"), ("best", "best"))
        }
        scores["steps"] = int(mine[0]["steps"]) if mine else None
        made.append(
            {
                "run": job.name, "agent": job.agent, "env": job.env, "seed": seed, **settings,
                "status": outcome.status, **scores, "attempts": outcome.attempts,
                "failures": outcome.failures, "losses": outcome.losses,
                "wall_s": round(outcome.wall_s, 1), "cpu_s": round(outcome.cpu_s, 1),
                "seeds_in_run": job.seeds, "node": outcome.node, "error": outcome.error,
            }
        )  # fmt: skip
    return made


def as_csv(found: list[dict[str, Any]]) -> str:
    names = list(found[0]) if found else []
    return csv_text([names, *([row[name] for name in names] for row in found)])


def check_target(path: Path) -> None:
    """Refuse a table that could not be written, before there is anything to write."""
    if path.suffix not in (".csv", ".parquet"):
        raise IdrlError(f"--table {str(path)!r}: its name ends in .csv or .parquet.")
    check_writable(path)
    if path.suffix == ".parquet":
        _arrow()


def write_table(found: list[dict[str, Any]], path: Path) -> None:
    if path.suffix == ".csv":
        path.write_text(as_csv(found), encoding="utf-8")
        return
    arrow, parquet = _arrow()
    plain = [{k: str(v) if isinstance(v, (list, dict)) else v for k, v in r.items()} for r in found]
    parquet.write_table(arrow.Table.from_pylist(plain), str(path))


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise IdrlError("Parquet needs pyarrow: pip install pyarrow, or ask for .csv.") from None
    return pyarrow, pyarrow.parquet
