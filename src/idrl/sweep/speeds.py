"""Measured speeds of runs, and what they say about runs that nobody has measured.

A row of `data/speeds.csv` is steps a second over all seeds, on so many units (cores, or GPUs). A
run of the same family of environments on the same hardware is taken to need time as its updates
need operations, and so many seeds to be between those that were measured; where a family was never
measured nothing is said. Of several rows those count whose settings are the run's.
"""

from __future__ import annotations

import csv
import functools
import math
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from idrl.config import RunConfig, assignments, resolve
from idrl.envs import family_of
from idrl.schema import flat, to_dict
from idrl.sweep.machine import cpu_name, gpus
from idrl.sweep.work import per_step

_START_S = {"core": 20.0, "GPU": 60.0}  # to import and to compile; seen


class Speed(NamedTuple):
    hardware: str
    unit: str  # core or GPU
    agent: str
    family: str
    seeds: int
    steps_per_s: float  # of one unit, all seeds together
    operations: float  # of a step
    settings: tuple[tuple[str, Any], ...] = ()  # it was measured with, where others were as well


class TimeEstimate(NamedTuple):
    seconds: float  # of one unit
    measured: bool  # this agent in this family, not another one's speed by its operations


class Hardware(NamedTuple):
    """So many units of a kind; `factor` is how much faster than the measured kind they are."""

    name: str
    unit: str
    units: int
    factor: float = 1.0
    own: tuple[Speed, ...] = ()  # measured on this very machine

    def __str__(self) -> str:
        if self.own:
            return "here"
        if self.unit == "core":
            return f"{self.units} cores" if self.units > 1 else "1 core"
        return f"{self.units} × {self.name}"

    def estimate(self, config: RunConfig, seeds: int) -> TimeEstimate | None:
        rows = [*self.own] or [s for s in table() if s.hardware == self.name]
        rows = [row for row in rows if row.family == family_of(config.env)]
        if not rows:
            return None
        mine = per_step(config)

        said = flat(to_dict(config))

        def apart(row: Speed) -> tuple[int, int, bool, float]:
            shared = sum(said.get(name) == value for name, value in row.settings)
            others = len(row.settings) - shared
            far = round(abs(math.log(mine / row.operations)), 3)
            return others, -shared, row.agent != config.agent, far

        nearest = min(map(apart, rows))
        alike = [row for row in rows if apart(row) == nearest]
        slower = mine / alike[0].operations
        train = config.training.steps * seeds / _rate(alike, seeds) * slower / self.factor
        return TimeEstimate(train + _START_S[self.unit], not nearest[2])


def _rate(rows: list[Speed], seeds: int) -> float:
    """Of so many seeds: between two counts that were measured, a straight line of logarithms.
    Beyond them it is the outermost's."""
    known = {row.seeds: math.log(row.steps_per_s) for row in rows}
    counts = sorted(known)
    logs = np.interp(math.log(seeds), np.log(counts), [known[n] for n in counts])
    return math.exp(float(logs))


@functools.cache
def table() -> tuple[Speed, ...]:
    text = resources.files("idrl.sweep").joinpath("data", "speeds.csv").read_text("utf-8")
    return tuple(_speed(row) for row in csv.DictReader(text.splitlines()))


def _speed(row: dict[str, str]) -> Speed:
    changes = assignments(row["settings"].split())
    config = resolve(row["agent"], row["env"], changes=changes)
    return Speed(
        row["hardware"], row["unit"], row["agent"], family_of(row["env"]), int(row["seeds"]),
        float(row["steps_per_s"]) / int(row["units"]), per_step(config),
        tuple(item for change in changes for item in flat(change).items()),
    )  # fmt: skip


KNOWN = (Hardware("H200", "GPU", 1), Hardware("H200", "GPU", 8), Hardware("EPYC", "core", 2))


def this_machine(cores: int) -> Hardware | None:
    """This machine, where the table has measurements of its kind."""
    found = gpus()
    names = {row.hardware for row in table()}
    told = found[0][0] if found else cpu_name()
    for name in names:
        if name.lower() in told.lower():
            return Hardware(name, "GPU" if found else "core", len(found) or cores)
    return None
