"""The report as one interactive page."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from idrl.report import series
from idrl.report.figures import BAND, RESAMPLED, Reference, seeds_word
from idrl.report.grouping import Section
from idrl.report.html import asset, page, plain
from idrl.report.reference import for_task, published_looks
from idrl.report.series import QUANTITIES, Line
from idrl.report.tables import scale
from idrl.storage.files import write_whole

if TYPE_CHECKING:
    from idrl.report.writing import Report, ReportPart

_POINTS = 200  # of a curve; a screen shows no more, and 500 runs must load at once
PUBLISHED = "published"  # all such lines are switched together
# What bands are that `BAND` does not speak of.
_OTHERS = (
    "of sample efficiency and profiles 95% bootstrap intervals; of beliefs the middle half, 5 to "
    "95% and all values"
)
_SVG_DASH = {"solid": "", "dash": "7 4", "dot": "2 3", "dashdot": "8 3 2 3"}


def write_page(report: Report, target: Path, *, band: str, reference: Reference) -> None:
    charts: dict[str, Any] = {}
    looks: dict[str, Any] = {}
    body: list[str] = []
    for part in report.parts:
        looks |= {label: group.look._asdict() for label, group in part.section.labels().items()}
        mine = _charts(part.section, f"s{len(body)}", band, reference)
        charts |= mine
        body.append(_section(part, mine))
    if any(line["label"] == PUBLISHED for chart in charts.values() for line in chart["lines"]):
        looks[PUBLISHED] = {"colour": "#8C8C8C", "dash": "dot"}
    text = _head(report, looks, band) + "\n<main>" + "\n".join(body) + _left_out(report) + "</main>"
    data = {"charts": charts, "looks": looks}
    made = page(
        "Report", style=asset("idrl.report", "report.css"), body=text, data=data,
        script=asset("idrl.report", "report.js"),
    )  # fmt: skip
    write_whole(target, made)


def _head(report: Report, looks: dict, band: str) -> str:
    remarks = "".join(f"<p>{html.escape(remark)}</p>" for remark in report.remarks)
    agents = "".join(
        f'<button type="button" class="agent" aria-pressed="true" '
        f'data-label="{html.escape(label)}">'
        f'<svg aria-hidden="true" viewBox="0 0 26 10"><path d="M0 5h26" fill="none" '
        f'stroke="{one["colour"]}" stroke-width="3" stroke-dasharray="{_SVG_DASH[one["dash"]]}"/>'
        f"</svg>{html.escape(label)}</button>"
        for label, one in looks.items()
    )
    return f"""<header><h1>Report</h1>{remarks}</header>
<main><div class="controls" role="group" aria-label="What the charts show">{agents}
<label>Smoothing <input type="range" id="smoothing" min="0" max="15" value="0"
aria-describedby="width"><output id="width">none</output></label>
<span class="note">{html.escape(f"{BAND[band]}; {_OTHERS}")}</span></div></main>"""


def _section(part: ReportPart, charts: dict[str, Any]) -> str:
    figures = "".join(
        f'<div class="card chart"><h3>{html.escape(chart["title"])}</h3>'
        f'<div class="plot" id="{name}" role="img" aria-label="{html.escape(chart["about"])}">'
        "</div></div>"
        for name, chart in charts.items()
    )
    tables = "".join(sheet.html(f"{part.folder}-") for sheet in part.sheets)
    runs = "".join(
        f'<li>{html.escape(label)}: <a href="{quote(where)}">{html.escape(run)}</a></li>'
        for label, run, where in part.configs
    )
    return (
        f"<section><h2>{html.escape(part.section.title)}</h2>"
        f'<div class="charts">{figures}</div>{tables}'
        f"<details><summary>Settings of the runs</summary><ul>{runs}</ul>"
        "</details></section>"
    )


def _left_out(report: Report) -> str:
    if not report.left_out:
        return ""
    rows = "".join(
        f"<li><code>{html.escape(path)}</code>: {html.escape(why)}</li>"
        for path, why in (one.shown for one in report.left_out)
    )
    return f'<section id="left-out"><h2>Left out</h2><ul>{rows}</ul></section>'


def _charts(section: Section, prefix: str, band: str, reference: Reference) -> dict[str, Any]:
    made: list[dict[str, Any]] = []
    per_step, unit = section.per_step, section.unit
    theirs = published_looks(reference)
    for task, groups in section.tasks.items():
        lines = []
        for label, group in groups.items():
            line = series.over_seeds(group.curve(), band)
            name = f"{label}, {seeds_word(group)}"
            lines.append(_line(line, label, per_step) | {"name": name})
        for other in for_task(reference, task, section.length):
            line = Line(other.frames, *[other.returns] * 3)
            shown = theirs[other.agent]._asdict() | {"name": f"{other.agent}, published"}
            lines.append(_line(line, PUBLISHED) | shown | {"bands": []})
        about = f"Evaluation return over training on {task}"
        made.append(_chart(task, about, unit, "return", lines, smooth=True))
    where = scale(section)
    efficiency = [_line(x, label, per_step) for label, x in series.efficiency(section).items()]
    if efficiency:
        about = f"Interquartile mean over tasks and seeds, {where}; {RESAMPLED}"
        made.append(_chart("Sample efficiency", about, unit, "IQM", efficiency, smooth=True))
        profiles = [_line(x, label) for label, x in series.profiles(section).items()]
        about = f"The share of runs above a score, {where}; {RESAMPLED}"
        made.append(_chart("Performance profiles", about, "score τ", "runs above τ", profiles))
    for task, groups in section.tasks.items():
        for label, group in groups.items():
            for quantity, found in series.distributions(group).items():
                title = f"{QUANTITIES[quantity]}: {label}, {task}"
                about = f"{title}; median, middle half, 5 to 95% and all values over training"
                lines = [_nested(found, label, per_step)]
                made.append(_chart(title, about, unit, "", lines, smooth=True))
    return {f"{prefix}c{i}": chart for i, chart in enumerate(made)}


def _chart(title: str, about: str, x: str, y: str, lines: list, smooth: bool = False) -> dict:
    return {"title": title, "about": about, "x": x, "y": y, "lines": lines, "smooth": smooth}


def _line(line: Line, label: str, per_step: int = 1) -> dict[str, Any]:
    keep = _thin(len(line.x))
    return {
        "label": label,
        "x": plain(line.x[keep] * per_step, 9),
        "y": plain(line.y[keep]),
        "bands": [[plain(line.low[keep]), plain(line.high[keep]), 0.18]],
    }


def _nested(found: dict[str, np.ndarray], label: str, per_step: int) -> dict[str, Any]:
    keep = _thin(len(found["steps"]))
    pairs = (("p0", "p100", 0.12), ("p5", "p95", 0.2), ("p25", "p75", 0.3))
    return {
        "label": label,
        "x": plain(found["steps"][keep] * per_step, 9),
        "y": plain(found["p50"][keep]),
        "bands": [[plain(found[low][keep]), plain(found[high][keep]), a] for low, high, a in pairs],
    }


def _thin(count: int) -> np.ndarray:
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, _POINTS)).astype(int))
