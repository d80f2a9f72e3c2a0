"""A whole report: tables, figures and the page, in one folder."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from idrl.errors import IdrlError
from idrl.report.figures import Reference, write_figures
from idrl.report.grouping import Section, sections
from idrl.report.reading import LeftOut, frozen_seeds, read_runs, shown_path
from idrl.report.reference import for_task, read_reference
from idrl.report.sheets import Sheet
from idrl.report.tables import sheets
from idrl.storage.files import check_plain, check_writable, read_json, read_text, write_whole
from idrl.system import words

AnyPath = str | PathLike[str]
BANDS = ("range", "interval")
MARK = "report.json"  # tells a folder that an earlier report made, and may be written over


class ReportPart(NamedTuple):
    """A section as it was written."""

    section: Section
    folder: str
    sheets: list[Sheet]
    figures: list[tuple[str, str]]
    configs: list[tuple[str, str, str]]  # label, run, where its config is


class Report(NamedTuple):
    parts: list[ReportPart]
    left_out: list[LeftOut]
    remarks: list[str]  # what a reader must know about what was kept apart or is missing
    path: Path  # its folder

    def __repr__(self) -> str:
        told = "; ".join(part.section.title for part in self.parts)
        count = sum(not one.in_part for one in self.left_out)
        left = f", {count} run{'s' * (count > 1)} left out" if count else ""
        return f"Report({told}{left}, {str(self.path)!r})"


def make_report(
    runs: AnyPath | Sequence[AnyPath],
    out: AnyPath,
    *,
    reference: AnyPath | None = None,
    band: str = "range",
) -> Report:
    """Write `out`/index.html, report.md, and a folder of tables and figures for each section."""
    from idrl.report.page import write_page  # it needs Plotly

    if band not in BANDS:
        raise IdrlError(f"bands is {band!r}; it must be 'range' or 'interval'.")
    out = Path(out)
    earlier = _earlier(out)
    published = read_reference(Path(reference)) if reference else {}
    records, left_out = read_runs(
        [*map(Path, [runs] if isinstance(runs, str | PathLike) else runs)]
    )
    found, repeated = sections(records)
    left_out += repeated
    remarks = _remarks(found, published, bool(reference))
    names = _names(found)
    for name in names:
        if name not in earlier and (out / name).exists():
            raise IdrlError(
                f"{str(out / name)!r} is not part of an earlier report; choose another -o."
            )
    _make(out)
    check_plain(out)
    for name in earlier:
        shutil.rmtree(out / name, ignore_errors=True)
    about = {"sections": names, "runs": len(records)}
    write_whole(out / MARK, json.dumps(about, indent=1) + "\n")  # else it is nobody's folder
    parts = []
    for section, name in zip(found, names, strict=True):
        folder = out / name
        (folder / "configs").mkdir(parents=True)
        made = sheets(section)
        for sheet in made:
            sheet.write(folder)
        figures = write_figures(section, folder, band=band, reference=published)
        parts.append(ReportPart(section, name, made, figures, _configs(section, folder, name)))
    report = Report(parts, left_out, remarks, out)
    write_whole(out / "report.md", markdown(report))
    write_page(report, out / "index.html", band=band, reference=published)
    return report


def markdown(report: Report) -> str:
    plain = words.markdown
    lines = ["# Report", *map(plain, report.remarks)]
    for part in report.parts:
        lines.append(f"## {plain(part.section.title)}")
        lines += [sheet.markdown().rstrip() for sheet in part.sheets]
        lines += [
            f"![{plain(about)}]({quote(part.folder)}/{quote(name)}.png)\n\n{plain(about)}"
            for name, about in part.figures
        ]
        runs = [
            f"- {plain(label)}: [{plain(run)}]({quote(where)})"
            for label, run, where in part.configs
        ]
        lines += ["### Settings of the runs", "\n".join(runs)]
    if report.left_out:
        told = [": ".join(map(plain, one.shown)) for one in report.left_out]
        lines += ["## Left out", "\n".join(f"- {one}" for one in told)]
    return "\n\n".join(lines) + "\n"


def _earlier(out: Path) -> list[str]:
    """The folders of an earlier report in `out`, which may go; anything else there may not."""
    if out.exists() and not out.is_dir():
        raise IdrlError(f"-o {str(out)!r} is a file; a report is a folder.")
    if not out.is_dir() or all(inside.name == f".{MARK}.draft" for inside in out.iterdir()):
        return []
    try:
        names = read_json(out / MARK)["sections"]
        return [name for name in names if re.fullmatch(r"[\w-]{1,200}", name)]
    except (IdrlError, KeyError, TypeError):
        raise IdrlError(
            f"-o {str(out)!r} holds other files than a report's; choose a new or an empty folder."
        ) from None


def _make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IdrlError(f"-o {str(out)!r} cannot be made: {error.strerror}.") from None
    check_writable(out / f".{MARK}.draft")  # new in any report


def _names(found: list[Section]) -> list[str]:
    """A folder for each section: its family and options, numbered where several share them."""
    names: list[str] = []
    given = [section.name for section in found]
    for name in given:
        plain = re.sub(r"[^\w-]", "-", name)[:60] or "tasks"
        alone = given.count(name) == 1 and plain not in names
        tries = (f"{plain}-{number}" for number in itertools.count(1))
        names.append(plain if alone else next(one for one in tries if one not in names))
    return names


def _configs(section: Section, folder: Path, name: str) -> list[tuple[str, str, str]]:
    """Copies of the runs' settings, so that the report is whole wherever it is moved to."""
    copied: list[tuple[str, str, str]] = []
    for groups in section.tasks.values():
        for label, group in groups.items():
            for record in group.records:
                number = len(copied) + 1
                file = f"{number:03d}-{words.file_name(record.path.resolve().name)}.toml"
                text = read_text(record.path / "config.toml")
                (folder / "configs" / file).write_text(text, encoding="utf-8")
                copied.append((label, shown_path(record.path), f"{name}/configs/{file}"))
    return copied


def _alone(found: list[Section]) -> list[str]:
    """Agents with one seed, and on which tasks if they have more on others, or on the same task by
    another protocol."""
    seeds: dict[str, list[tuple[str, int]]] = {}
    for section in found:
        for task, groups in section.tasks.items():
            for label, group in groups.items():
                seeds.setdefault(label, []).append((task, len(group.seeds)))
    told: list[str] = []
    for label, counts in sorted(seeds.items()):
        tasks = [task for task, count in counts if count == 1]
        alone = [label] if len(tasks) == len(counts) else [f"{label} on {task}" for task in tasks]
        told += dict.fromkeys(alone)
    return told


def _remarks(found: list[Section], published: Reference, asked: bool) -> list[str]:
    remarks = []
    if len(found) > 1:
        remarks.append(
            f"The runs are of {len(found)} kinds of task or protocol, which cannot share a table: "
            + "; ".join(section.title for section in found) + "."
        )  # fmt: skip
    groups = [g for section in found for tasks in section.tasks.values() for g in tasks.values()]
    if names := _alone(found):
        remarks.append(f"One seed only: {', '.join(names)}. Nothing is known of their spread.")
    records = [record for group in groups for record in group.records]
    remarks += frozen_seeds(records)
    if not any(record.distributions for record in records):
        remarks.append(
            "No run recorded distributions of ρ², σ², regret, information gain and ratio "
            "(distributions.csv): their figures are missing."
        )
    if asked and not any(for_task(published, task, s.length) for s in found for task in s.tasks):
        remarks.append("The reference file has none of these tasks, as far as the runs go.")
    return remarks
