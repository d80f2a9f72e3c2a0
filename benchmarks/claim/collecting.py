"""CSV files of a study's finished runs: all that tables and figures are made from. Run folders are
gigabytes and are not kept.

`evaluations.csv` has every evaluation of every seed, `training.csv` the returns of the acting
policy, thinned, and `diagnostics.csv` what the IDS agents believed and how often they were not
greedy. What is there already stays, unless the same seed of an agent on a game is collected again.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from idrl.errors import IdrlError
from idrl.report.reading import LeftOut, Record, read_runs, shown_path
from idrl.storage.records import numbers, read_distributions, read_evaluations, read_table

POINTS = 50  # of a thinned curve
TOLD = ("return_mean", "return_std", "episodes", "length_mean", "truncated")
EVALUATIONS = (
    "env", "agent", "seed", "steps", "frames", *TOLD, "run_steps", "every_steps", "window_steps",
)  # fmt: skip
TRAINING = ("env", "agent", "seed", "steps", "episode_return")
# A row is over the seeds of a run, such as "100-109": one for each of them would be megabytes.
DIAGNOSTICS = ("env", "agent", "seeds", "quantity", "steps", "mean", "lowest", "highest")
FILES = {
    "evaluations.csv": EVALUATIONS, "training.csv": TRAINING, "diagnostics.csv": DIAGNOSTICS
}  # fmt: skip
# Of the acting rule in metrics.csv, and medians over states and actions in distributions.csv.
ACTED, BELIEVED = ("not_greedy",), ("sigma2", "rho2", "regret", "info_gain", "ratio")
Rows = list[dict[str, Any]]


def collect(studies: Sequence[str | Path], out: Path, variant: str = "") -> list[LeftOut]:
    """Write the three files; the runs that could not be read, with the reason.

    Args:
        studies: folders of studies, or of runs.
        out: the folder of the files.
        variant: what tells these runs from those of the study, in a word: "Adam" makes rows of
            `dqn (Adam)` beside those of `dqn`.
    """
    records, left_out = read_runs(studies)
    if variant:
        records = [_renamed(record, f"{record.agent} ({variant})") for record in records]
    _check_once(records)
    made: dict[str, Rows] = {name: [] for name in FILES}
    for record in records:
        made["evaluations.csv"] += evaluations(record)
        made["training.csv"] += training(record)
        if record.config["explore"].get("kind") == "ids":
            made["diagnostics.csv"] += diagnostics(record)
    together = {name: merged(out / name, rows) for name, rows in made.items()}
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in together.items():
        with open(out / name, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FILES[name], lineterminator="\n")
            writer.writeheader()
            writer.writerows({column: _text(row[column]) for column in FILES[name]} for row in rows)
    return left_out


def _renamed(record: Record, agent: str) -> Record:
    return record._replace(config=record.config | {"agent": agent})


def _check_once(records: Sequence[Record]) -> None:
    """A seed of an agent on a game is one row of a table: two runs of it would be mixed there."""
    known: dict[tuple[str, str, int], Path] = {}
    for record in records:
        for seed in record.seeds:
            first = known.setdefault((record.env, record.agent, seed.seed), record.path)
            if first is not record.path:
                raise IdrlError(
                    f"{shown_path(first)} and {shown_path(record.path)} are both seed {seed.seed} "
                    f"of {record.agent} on {record.env}: collect one of them, and runs with "
                    "settings of their own in a command of their own, with --variant."
                )


def merged(path: Path, rows: Rows) -> Rows:
    """With what is there; rows of the same agent and seed on the same game replace it."""
    new: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        new.setdefault(_task(row), set()).update(seeds_of(row))
    kept: Rows = []
    for row in read(path):
        seeds, given = set(seeds_of(row)), new.get(_task(row), set())
        if seeds & given and not seeds <= given:  # a mean, of which no seed can be taken out
            env, agent = _task(row)
            raise IdrlError(
                f"{shown_path(path)} has rows over seeds {row['seeds']} of {agent} on {env}: "
                "collect all of these seeds again, or others."
            )
        if not seeds & given:
            kept.append(row)
    return sorted([*kept, *rows], key=lambda row: (*_task(row), seeds_of(row).start))


def _task(row: dict[str, Any]) -> tuple[str, str]:
    return str(row["env"]), str(row["agent"])


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def seeds_of(row: dict[str, Any]) -> range:
    """That a row of any of the files is of."""
    first, _, last = str(row.get("seed", row.get("seeds"))).partition("-")
    return range(int(first), int(last or first) + 1)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.7g}"
    return str(value)


def _named(record: Record) -> dict[str, Any]:
    return {"env": record.env, "agent": record.agent}


def evaluations(record: Record) -> Rows:
    run = {
        "run_steps": record.config["training"]["steps"],
        "every_steps": record.config["evaluation"]["every_steps"],
        "window_steps": record.config["evaluation"]["steps"],
    }
    rows = []
    for seed, mine in _by_seed(read_evaluations(record.path)).items():
        for row in sorted(mine, key=lambda row: int(row["steps"])):
            steps = int(row["steps"])
            told = {name: _number(row.get(name, "")) for name in TOLD}
            of = {"seed": seed, "steps": steps, "frames": steps * record.unit[1]}
            rows.append(_named(record) | of | told | run)
    return rows


def _number(text: str) -> float:
    return float(text) if text else float("nan")


def training(record: Record) -> Rows:
    rows = read_table(record.path / "metrics.csv", ("seed", "steps"), ("episode_return",))
    return [
        {**_named(record), "seed": seed, "steps": step, "episode_return": value}
        for seed, mine in _by_seed(rows).items()
        for step, value in thinned(mine, "episode_return")
        if np.isfinite(value)
    ]


def diagnostics(record: Record) -> Rows:
    found: dict[str, list[list[tuple[int, float]]]] = {}
    acted = _by_seed(read_table(record.path / "metrics.csv", ("seed", "steps"), ACTED))
    believed = read_distributions(record.path)
    for name in ACTED:
        found[name] = [thinned(mine, name) for mine in acted.values()]
    for name in BELIEVED:
        mine = _by_seed([row for row in believed if row["quantity"] == name])
        found[name] = [thinned(rows, "p50") for rows in mine.values()]
    first, last = record.seeds[0].seed, record.seeds[-1].seed
    named = {**_named(record), "seeds": f"{first}-{last}" if last > first else str(first)}
    return [
        {**named, "quantity": name, "steps": step, "mean": float(np.mean(values)),
         "lowest": min(values), "highest": max(values)}
        for name, seeds in found.items()
        for step, values in _together(seeds)
    ]  # fmt: skip


def _by_seed(rows: Iterable[dict[str, str]]) -> dict[int, list[dict[str, str]]]:
    found: dict[int, list[dict[str, str]]] = {}
    for row in rows:
        found.setdefault(int(row["seed"]), []).append(row)
    return dict(sorted(found.items()))


def thinned(rows: Sequence[dict[str, str]], column: str) -> list[tuple[int, float]]:
    """At most `POINTS` stretches of as many rows each: the step it ends at, and the mean of what is
    finite."""
    order = sorted(rows, key=lambda row: int(row["steps"]))
    values = np.array(numbers(order, column))
    parts = np.array_split(np.arange(len(order)), min(POINTS, len(order))) if order else []
    points = []
    for part in parts:
        there = values[part][np.isfinite(values[part])]
        mean = float(there.mean()) if there.size else float("nan")
        points.append((int(order[part[-1]]["steps"]), mean))
    return points


def _together(seeds: list[list[tuple[int, float]]]) -> Iterable[tuple[int, list[float]]]:
    """By step, what is finite of all seeds."""
    by_step: dict[int, list[float]] = {}
    for step, value in (point for seed in seeds for point in seed):
        if np.isfinite(value):
            by_step.setdefault(step, []).append(value)
    return sorted(by_step.items())
