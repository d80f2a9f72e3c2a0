"""Runs the points of a sweep as ordinary run folders, so that a repeated command goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from idrl.bsuite.scoring import Runs
from idrl.bsuite.sweeps import Plan
from idrl.config import RunConfig, resolve
from idrl.errors import IdrlError
from idrl.runs import api
from idrl.runs.reading import read_run
from idrl.storage.files import open_plain
from idrl.storage.folder import RunFolder
from idrl.system import words


@dataclass
class Result:
    """The points of one experiment that are finished."""

    plan: Plan
    points: dict[float, Runs] = field(default_factory=dict)

    @property
    def score(self) -> float | None:
        return self.plan.experiment.judge(self.points) if self.points else None


class Watch:
    """One column of a run's episodes, by seed, read on as the file grows."""

    def __init__(self, folder: Path, column: str, seeds: int):
        self.path, self.column = folder / "episodes.csv", column
        self.values: list[list[float]] = [[] for _ in range(seeds)]
        self.place = 0
        self.names: list[str] = []

    def read(self) -> list[list[float]]:
        if not self.path.exists():
            return self.values
        with open_plain(self.path) as file:
            file.seek(self.place)
            text = file.read()
        text = text[: text.rfind(b"\n") + 1]  # a killed process may leave half a row
        self.place += len(text)
        for line in text.decode(errors="replace").splitlines():
            cells = line.split(",")
            if not self.names:
                self.names = cells
                continue
            try:
                row = dict(zip(self.names, cells, strict=True))
                self.values[int(row["seed"])].append(float(row[self.column]))
            except (ValueError, KeyError, IndexError):
                raise IdrlError(f"{str(self.path)!r} is damaged: {words.value(line)}.") from None
        return self.values


def run_plan(
    agent: str, plan: Plan, out: Path, *, deadline: float = float("inf"),
    tell: Callable[[str], None] = print, display: Callable[[], Any] | None = None,
) -> Result:  # fmt: skip
    """Train what is not finished yet. Points that the deadline leaves open are not in the result.

    `display` makes what shows a run while it goes, as a context.
    """
    result = Result(plan)
    for value in plan.values:
        title = f"{plan.experiment.name} {plan.experiment.setting}={value}"
        started = time.monotonic()
        runs, fresh = run_point(agent, plan, value, out, deadline, display)
        if runs is None:
            continue
        result.points[value] = runs
        took = f"{time.monotonic() - started:.0f} s" if fresh else "was finished"
        tell(f"{title}: {plan.experiment.tell(runs)} ({took})")
    left = len(plan.values) - len(result.points)
    if left:
        tell(f"{plan.experiment.name}: {left} points left open by the time limit")
    return result


def run_point(
    agent: str, plan: Plan, value: float, out: Path, deadline: float, display
) -> tuple[Runs | None, bool]:
    """The runs of one value, or None if time ran out; and whether anything had to be trained."""
    experiment = plan.experiment
    path = out / experiment.name / f"{experiment.setting}={value}"
    env, changes = experiment.env_of(value), settings(plan, value)
    if path.exists():
        _check_same(path, resolve(agent, env, changes=[changes]))

    def watch() -> Watch:
        return Watch(path, experiment.column, plan.seeds)

    def finished(values) -> bool:
        return experiment.decided(value, values, plan.episodes)

    found = watch().read()
    fresh = not finished(found)
    if fresh:
        if time.monotonic() >= deadline:
            return None, False
        now = watch()  # from the start of the file: a resumed run cuts it first

        def until() -> bool:
            return finished(now.read()) or time.monotonic() >= deadline

        with display() if display else _Nothing() as shown:
            if path.exists():
                api.train(resume=path, until=until, display=shown)
            else:
                api.train(agent, env, out=path, settings=changes, until=until, display=shown)
        found = watch().read()
        if not finished(found):
            return None, True
    return [np.array(run[: plan.episodes]) for run in found], fresh


def settings(plan: Plan, value: float) -> dict[str, Any]:
    """Long enough for every episode at its longest; `until` ends a run sooner. bsuite scores the
    acting agent, so one evaluation at the end is enough."""
    longest = plan.experiment.longest_steps(value)
    steps = plan.episodes * longest
    return {
        "seeds": plan.seeds,
        "training": {"steps": steps, "distributions_every_steps": 0},
        "evaluation": {"every_steps": steps, "steps": longest},
    }


def _check_same(path: Path, wanted: RunConfig) -> None:
    found = read_run(RunFolder.open(path))
    if found != wanted.settled(found.learning.precision):
        raise IdrlError(
            f"{str(path)!r} holds a run with other settings; choose another --out, or the agent, "
            "seeds and episodes that it was made with."
        )


class _Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *error) -> None:
        return None
