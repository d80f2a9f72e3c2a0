"""Two runs, or two folders of runs, against each other."""

from __future__ import annotations

from os import PathLike, fspath
from typing import NamedTuple

import numpy as np

from idrl.errors import IdrlError
from idrl.report.grouping import Protocol, sections
from idrl.report.reading import LeftOut, frozen_seeds, read_runs
from idrl.report.sheets import Column, Sheet
from idrl.report.statistics import INTERVAL, Estimate, chance_better, mean_over_seeds
from idrl.system import words


class AgentComparison(NamedTuple):
    sheet: Sheet
    chance: Estimate  # that the first is better
    verdict: str
    left_out: list[LeftOut]

    def __repr__(self) -> str:
        return f"AgentComparison({self.verdict})"


class Side(NamedTuple):
    """What is compared: scores of seeds, by task and by how they were come by."""

    name: str
    scores: dict[tuple[str, Protocol | str], np.ndarray]
    left_out: list[LeftOut] = []
    remarks: list[str] = []


def compare(one: str | PathLike[str], other: str | PathLike[str]) -> AgentComparison:
    """Two runs, or two folders of runs of one agent each, by the best evaluation of each seed, task
    by task: `chance` that the first is better, a `verdict` in words, and the numbers as `sheet`."""
    one, other = fspath(one), fspath(other)
    return compare_sides(
        _side(one), _side(other), (one, other), "The highest evaluation of each seed"
    )


def compare_sides(a: Side, b: Side, places: tuple[str, str], what: str) -> AgentComparison:
    """`what` their scores are; `places` tell them apart where their names do not."""
    tasks = [key for key in a.scores if key in b.scores]
    if not tasks:
        raise IdrlError(_nothing_shared(a, b))
    alike = a.name == b.name
    names = (words.name(places[0]), words.name(places[1])) if alike else (a.name, b.name)
    columns = [Column("task"), Column(names[0], 0), Column(names[1], 0), Column("seeds")]
    columns += [Column(name, 2) for name in ("P(first better)", "from", "to")]
    rows: list[list] = []
    for key in tasks:
        x, y = a.scores[key], b.scores[key]
        counts = f"{len(x)} and {len(y)}"
        said = [str(mean_over_seeds(side)) for side in (x, y)]
        rows.append([key[0], *said, counts, *chance_better([x], [y])])
    ours, theirs = ([side.scores[key] for key in tasks] for side in (a, b))
    chance = chance_better(ours, theirs)
    notes = [
        f"{what}, the mean and its {INTERVAL}. "
        "P: that a seed of the first scores above one of the second (a tie counts half), with its "
        "95% bootstrap interval."
    ]
    alone = [key[0] for side in (a, b) for key in side.scores if key not in tasks]
    if alone:
        notes.append(
            f"Not compared, since only one side has them: {', '.join(sorted(set(alone)))}."
        )
    notes += a.remarks + b.remarks
    sheet = Sheet("comparison", f"{names[0]} against {names[1]}", columns, rows, notes)
    return AgentComparison(
        sheet, chance, _verdict(names, chance, len(tasks)), a.left_out + b.left_out
    )


def _side(path: str) -> Side:
    records, left_out = read_runs([path])
    found, repeated = sections(records)
    scores: dict[tuple[str, Protocol | str], np.ndarray] = {}
    labels, counted = set(), []
    for section in found:
        for task, groups in section.tasks.items():
            if len(groups) > 1:
                raise IdrlError(
                    f"{path!r} holds several agents or settings on {task} "
                    f"({', '.join(groups)}); name one of them, or see `idrl report`."
                )
            for label, group in groups.items():
                scores[task, section.protocol] = group.scores()
                labels.add(label)
                counted += group.records
    name = labels.pop() if len(labels) == 1 else words.name(path)
    return Side(name, scores, left_out + repeated, frozen_seeds(counted))


def _nothing_shared(a: Side, b: Side) -> str:
    ours, theirs = (dict(side.scores.keys()) for side in (a, b))
    shared = [task for task in ours if task in theirs]
    if shared:
        task = shared[0]
        return (
            f"both are of {task}, but by different protocols ({ours[task]}; {theirs[task]}); only "
            "scores of the same protocol can be compared."
        )
    return (
        f"the runs share no task ({', '.join(ours)} against {', '.join(theirs)}); only scores on "
        "the same task can be compared."
    )


def _verdict(names: tuple[str, str], chance: Estimate, tasks: int) -> str:
    first, second = names
    over = "" if tasks == 1 else f" over {tasks} tasks"
    if np.isnan(chance.low):
        return (
            f"P({first} better than {second}) = {chance.value:.2f}{over}; with one seed a side "
            "there is no interval, and it says little."
        )
    if chance.high < 0.5:  # say it of the one that is better
        chance = Estimate(1 - chance.value, 1 - chance.high, 1 - chance.low)
        first, second = second, first
    said = f"{chance.value:.2f} (95% interval {chance.low:.2f} to {chance.high:.2f}){over}"
    if chance.low > 0.5:
        return f"{first} is better than {second} with probability {said}."
    return f"These seeds do not say which is better: {first} is, with probability {said}."
