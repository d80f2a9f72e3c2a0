"""Markdown tables and figures of what was collected."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.claim.collecting import read
from benchmarks.claim.diagnosing import write_diagnostics
from benchmarks.claim.scoring import not_run, section_of
from benchmarks.claim.training import Rows, training_sheet, write_training
from idrl.report.figures import write_figures
from idrl.report.grouping import Group, Section
from idrl.report.reference import read_reference
from idrl.report.sheets import Column, Sheet
from idrl.report.statistics import INTERVAL, Estimate, mean_over_seeds, profile
from idrl.report.tables import (
    ONE,
    aggregates,
    game_table,
    improvement,
    matrices,
    scale,
    too_narrow,
)

OVER = "dqn"
MISSING = "Not run, not to the end, or without a score since no episode of an evaluation ended:"
FIGURES = "figures"
TAUS = (0.25, 0.5, 0.75, 1.0)


def tabulate(out: Path, study: str, reference: Path | None = None) -> Path:
    """Write `out`/benchmark.md and `out`/figures from the CSV files in `out`.

    Args:
        out: the folder that `collect` wrote to.
        study: the study by name, which says what is missing.
        reference: published curves to draw beside, as for `idrl report`.
    """
    section = section_of(out / "evaluations.csv")
    folder = out / FIGURES
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    published = read_reference(reference) if reference else {}
    how: dict[str, Any] = {"band": "interval", "reference": published, "endings": ("png",)}
    write_figures(section, folder, **how)
    curves = (folder / "curves.png").read_bytes()  # of all; what sums games up is of fewer
    drawn = write_figures(whole_variants(section), folder, **how)
    (folder / "curves.png").write_bytes(curves)
    training = read(out / "training.csv")
    drawn += write_training(training, folder)
    drawn += write_diagnostics(read(out / "diagnostics.csv"), folder)
    target = out / "benchmark.md"
    target.write_text(markdown(section, study, drawn, training), encoding="utf-8")
    return target


def markdown(
    section: Section, study: str, drawn: list[tuple[str, str]], training: Rows = ()
) -> str:
    missing = not_run(study, section)
    told = "\n".join([MISSING, "", *(f"- {line}" for line in missing)])
    parts = [f"<!-- python -m benchmarks.claim tables {study} writes what follows -->"]
    parts += [told] if missing else []
    parts += [sheet.markdown().rstrip() for sheet in sheets(section, training)]
    parts += [f"![{name}]({FIGURES}/{name}.png)\n\n{about}." for name, about in drawn]
    return "\n\n".join(parts) + "\n"


def sheets(section: Section, training: Rows = ()) -> list[Sheet]:
    """All tables. `training`: rows of `training.csv`."""
    best = "the highest evaluation of each seed, then the mean over seeds"
    last = "the last evaluation of each seed, then the mean over seeds"
    made = [
        games(section, "Score", best, lambda group: group.scores()),
        games(section, "Last evaluation", last, lambda group: _last(group)),
    ]
    while_training = training_sheet(training, section)
    made += [while_training] if while_training else []
    if section.of_atari:
        made.append(game_table(section, percent=True))
    summed = whole_variants(section)
    if not summed.common():
        return made
    first = aggregates(summed)
    omitted = [label for label in section.labels() if label not in summed.labels()]
    if omitted:
        told = ", ".join(omitted)
        first.notes.append(f"Not in every game, so omitted: {told}.")
    made += [first, shares(summed)]
    if OVER in summed.labels() and len(summed.labels()) > 1:
        made.append(improvement(summed, over=OVER))
    return made


def whole_variants(section: Section) -> Section:
    """Without the variants that lack a game which all agents of the study have played: tables that
    sum games up are over those that all have played, and would lose it for those agents too."""
    variants = {label for label in section.labels() if " (" in label}
    agents = set(section.labels()) - variants
    shared = [groups for groups in section.tasks.values() if agents <= groups.keys()]
    partial = {label for label in variants if any(label not in groups for groups in shared)}
    tasks = {
        task: {label: group for label, group in groups.items() if label not in partial}
        for task, groups in section.tasks.items()
    }
    return replace(section, tasks=tasks)


def _last(group: Group) -> np.ndarray:
    return np.array([seed.returns[-1] for seed in group.seeds])


def games(
    section: Section, title: str, what: str, score: Callable[[Group], np.ndarray]
) -> Sheet:  # fmt: skip
    """A row for each agent, a column for each game: a study has fewer games than agents."""
    rows: list[list] = []
    for label in section.labels():
        mine = [groups.get(label) for groups in section.tasks.values()]
        counts = sorted({len(group.seeds) for group in mine if group})
        cells = [str(mean_over_seeds(score(group))) if group else None for group in mine]
        rows.append([label, "–".join(map(str, counts)), *cells])
    names = [task.partition("/")[2] or task for task in section.tasks]
    columns = [Column("agent"), Column("seeds"), *(Column(name, 0) for name in names)]
    notes = [f"{title}: {what}; in brackets its {INTERVAL}."]
    single = any(len(g.seeds) == 1 for groups in section.tasks.values() for g in groups.values())
    name = title.lower().replace(" ", "-")
    heading = f"{title}, {section.title}"
    return Sheet(name, heading, columns, rows, [*notes, *([ONE] if single else [])])


def shares(section: Section) -> Sheet:
    """The performance profile at a few scores."""
    columns = [Column("agent"), *(Column(f"above {tau:g}", 0) for tau in TAUS)]
    rows: list[list] = []
    for label, tasks in matrices(section).items():
        share, low, high = profile(tasks, np.array(TAUS))
        alone = max(map(len, tasks)) < 2
        ends = (np.full(len(TAUS), math.nan),) * 2 if alone else (low, high)
        rows.append([label, *(str(Estimate(*one)) for one in zip(share, *ends, strict=True))])
    note = f"The share of runs above a score, {scale(section)}; in brackets: 95% stratified "
    note += "bootstrap interval."
    notes = [note, *too_narrow(matrices(section).values())]
    return Sheet("profile", "Performance profile", columns, rows, notes)
