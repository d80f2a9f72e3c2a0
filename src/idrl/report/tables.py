"""The tables of a section: scores of each task, aggregates, who is better than whom."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from idrl.report import paper
from idrl.report.grouping import Group, Section
from idrl.report.paper import all_games, game_of
from idrl.report.sheets import Column, Sheet
from idrl.report.statistics import (
    INTERVAL,
    Estimate,
    chance_better,
    estimate,
    iqm,
    mean_over_seeds,
    optimality_gap,
)

PROTOCOL = (
    "Best-agent protocol: the highest evaluation of each seed, then the mean over seeds; "
    f"from … to: {INTERVAL}."
)
ONE = "One seed says nothing about the spread between seeds: no interval is given."
SOME = (
    "For an agent with one seed on some tasks and more on others, the interval reflects the spread "
    "on the latter only, so it is too narrow. All tasks count alike."
)


def normalised(section: Section, task: str, scores: np.ndarray) -> np.ndarray:
    """Scores as fractions: by the section's anchors, of a human's on Atari, else of the range seen
    here."""
    game = game_of(task)
    if task in section.anchors:
        zero, one = section.anchors[task]
        return (scores - zero) / (one - zero)
    if game:
        return all_games()[game].normalised(scores) / 100
    low, high = _range(section, task)
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def _range(section: Section, task: str) -> tuple[float, float]:
    """The lowest and the highest evaluation of any run on the task."""
    seen = np.concatenate([s.returns for g in section.tasks[task].values() for s in g.seeds])
    return float(np.nanmin(seen)), float(np.nanmax(seen))


def _alike(section: Section) -> list[str]:
    """A note on the tasks whose range is empty, if there are any."""
    if section.anchors or section.of_atari:
        return []
    found = [task for task in section.common() if len(set(_range(section, task))) == 1]
    told = "All evaluations are the same, so that every score counts as 0, on"
    return [f"{told}: {', '.join(found)}."] if found else []


def scale(section: Section) -> str:
    if section.anchors:
        return section.anchored
    if section.of_atari:
        return "human-normalised: 0 is random play, 1 a human's (Video Pinball's random score: 0)"
    return "scaled by task: 0 is the lowest evaluation of any run here, 1 the highest"


def matrices(section: Section) -> dict[str, list[np.ndarray]]:
    """By label, the normalised scores of each common task."""
    return {
        label: [normalised(section, t, section.tasks[t][label].scores()) for t in section.common()]
        for label in section.labels()
    }


def scores(section: Section) -> Sheet:
    """One row for each task and agent."""
    columns = [
        Column("task"), Column("agent"), Column("seeds", 0), Column("score", 3), Column("from", 3),
        Column("to", 3), Column("lowest seed", 3), Column("highest seed", 3),
        Column("last evaluation", 3),
    ]  # fmt: skip
    of_atari = section.of_atari
    if of_atari:
        columns += [Column(name, 1) for name in ("human-normalised %", "paper", "paper %")]
    rows, single = [], False
    for task, groups in section.tasks.items():
        for label, group in groups.items():
            best = group.scores()
            single |= len(best) == 1
            last = np.array([seed.returns[-1] for seed in group.seeds])
            told = last[np.isfinite(last)]  # of a seed whose last evaluation ended no episode none
            row = [
                task,
                label,
                len(best),
                *mean_over_seeds(best),
                best.min(),
                best.max(),
                told.mean() if told.size else np.nan,
            ]
            rows.append([*row, *(_beside_paper(task, group) if of_atari else ())])
    notes = [PROTOCOL, *([ONE] if single else [])]
    return Sheet("scores", f"Scores, {section.title}", columns, rows, notes, keys=2)


def _beside_paper(task: str, group: Group) -> list[float | None]:
    game = all_games()[game_of(task) or ""]
    theirs = game.scores.get(group.agent)
    percent = game.normalised(group.scores().mean())
    return [percent, theirs, None if theirs is None else game.normalised(theirs)]


def game_table(section: Section, *, percent: bool) -> Sheet:
    """The paper's layout: a row a game, ours beside its columns; then median and means."""
    labels = section.labels()
    known = [agent for agent in paper.agents() if agent in {g.agent for g in labels.values()}]
    known = known or ["c51-ids"]
    columns = [Column("game"), Column("seeds")]
    columns += [Column(label, 1) for label in labels]
    columns += [Column(f"paper {agent}", 1) for agent in known]
    rows, by_reading = [], {}
    for printed in (True, False):
        facts = all_games(printed=printed)
        lines, compared = [], []
        for task, groups in section.tasks.items():
            game = facts[game_of(task) or ""]
            values = [groups[x].scores().mean() if x in groups else None for x in labels]
            values += [game.scores.get(agent) for agent in known]
            if percent:
                values = [None if v is None else game.normalised(v) for v in values]
            lines.append([game.title, _seeds(groups.values()), *values])
            compared += [values] if game.scores else []
        by_reading[printed] = np.array(compared, float)
        if printed:
            rows = lines
    notes, others = [PROTOCOL], len(rows) - len(by_reading[True])
    if percent and len(rows) > others:
        rows += [["median", "", *np.median(by_reading[True], axis=0)]]
        rows += [["mean, Video Pinball − 0", "", *by_reading[True].mean(0)]]
        rows += [["mean, Video Pinball − 16,256.9", "", *by_reading[False].mean(0)]]
        notes.append(
            "Median and means over the games listed here, the paper's columns over the same ones; "
            "– where an agent has not played them all. The paper's printed means follow from a "
            "random score of 0 on Video Pinball."
        )
    if others:
        left = "; medians and means leave them out" if percent else ""
        notes.append(f"{paper.LEFT_OUT}{left}.")
    name, what = (
        ("games-normalised", "Human-normalised percent") if percent else ("games", "Scores")
    )
    return Sheet(name, f"{what} of each game, {section.title}", columns, rows, notes)


def _seeds(groups) -> str:
    counts = sorted({len(group.seeds) for group in groups})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"


def aggregates(section: Section) -> Sheet:
    """IQM and optimality gap over the tasks that all agents have played."""
    columns = [Column("agent"), Column("seeds"), Column("tasks", 0)]
    columns += [Column(name, 3) for name in ("median", "mean")]
    for name in ("IQM", "gap"):
        columns += [Column(name, 3), Column(f"{name} from", 3), Column(f"{name} to", 3)]
    rows = []
    for label, tasks in matrices(section).items():
        if not tasks:
            continue
        means = np.array([task.mean() for task in tasks])
        groups = [section.tasks[task][label] for task in section.common()]
        found: list[Estimate] = [estimate(tasks, iqm), estimate(tasks, optimality_gap)]
        cells = [value for one in found for value in one]
        row = [label, _seeds(groups), len(tasks), float(np.median(means)), float(means.mean())]
        rows.append(row + cells)
    notes = [
        f"Scores {scale(section)}. From … to: 95% stratified bootstrap intervals over seeds "
        "(Agarwal et al. 2021). Gap: the optimality gap, how far scores fall short of 1."
    ]
    if section.common() != list(section.tasks):
        left = [task for task in section.tasks if task not in section.common()]
        notes.append(f"Left out, since not every agent has played them: {', '.join(left)}.")
    notes += [*_alike(section), *too_narrow(matrices(section).values())]
    notes = _with_one(notes, rows, columns.index(Column("IQM from", 3)))
    return Sheet("aggregates", f"Aggregates, {section.title}", columns, rows, notes)


def too_narrow(agents: Iterable[Sequence[np.ndarray]]) -> list[str]:
    """A note on intervals over tasks with one run and tasks with more, if there are any."""
    counts = [[len(task) for task in tasks] for tasks in agents if len(tasks)]
    return [SOME] if any(min(each) < 2 <= max(each) for each in counts) else []


def _with_one(notes: list[str], rows: list[list], low: int) -> list[str]:
    """And why intervals, whose low ends are in column `low`, are missing, if some are."""
    return [*notes, ONE] if any(np.isnan(row[low]) for row in rows) else notes


def improvement(section: Section, over: str | None = None) -> Sheet:
    """The probability that the first of a pair is better, over the tasks of both: of every pair, or
    of each agent and the one it is to be better than."""
    columns = [Column("agent"), Column("better than"), Column("tasks", 0)]
    columns += [Column(name, 3) for name in ("probability", "from", "to")]
    rows: list[list] = []
    compared: list[list[np.ndarray]] = []
    tasks = section.tasks.values()
    labels = section.labels()
    pairs = [(one, over) for one in labels if one != over] if over else None
    for one, other in pairs or itertools.combinations(labels, 2):
        both = [groups for groups in tasks if one in groups and other in groups]
        if both:
            sides = [[g[label].scores() for g in both] for label in (one, other)]
            compared += sides
            rows.append([one, other, len(both), *chance_better(*sides)])
    notes = [
        "That a seed of the first scores above one of the second; a tie counts half. "
        "From … to: 95% stratified bootstrap intervals over seeds.",
        *too_narrow(compared),
    ]
    title = f"Probability of improvement, {section.title}"
    return Sheet("improvement", title, columns, rows, _with_one(notes, rows, 4))


def summary(section: Section) -> Sheet:
    """What fits a terminal."""
    columns = [Column("task"), Column("agent"), Column("seeds", 0), Column("score (95%)", 0)]
    columns.append(Column("IQM (95%)", 0))
    rows: list[list] = []
    for task, groups in section.tasks.items():
        for label, group in groups.items():
            best = group.scores()
            rows.append([task, label, len(best), str(mean_over_seeds(best)), str(estimate([best]))])
    note = (
        "score: the highest evaluation of each seed, then the mean over seeds; in brackets: "
        f"{INTERVAL}."
    )
    single = any(row[2] == 1 for row in rows)
    return Sheet(
        "summary", section.title, columns, rows, [note, *([ONE] if single else [])], keys=2
    )


def sheets(section: Section) -> list[Sheet]:
    made = [scores(section)]
    if section.of_atari:
        made += [game_table(section, percent=True), game_table(section, percent=False)]
    made.append(aggregates(section))
    if len(section.labels()) > 1:
        made.append(improvement(section))
    return [sheet for sheet in made if sheet.rows]
