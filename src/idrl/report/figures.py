"""The figures of a section, as PNG and SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from idrl.report import series
from idrl.report.grouping import Group, Section
from idrl.report.reference import Published, for_task, published_looks
from idrl.report.series import QUANTITIES, Line
from idrl.report.statistics import estimate
from idrl.report.style import Look, caption, figure
from idrl.report.tables import matrices, scale

BAND = {"range": "bands: lowest to highest seed", "interval": "bands: 95% intervals over seeds"}
RESAMPLED = "bands: 95% bootstrap intervals"
Reference = dict[str, list[Published]]


def write_figures(
    section: Section, folder: Path, *, band: str, reference: Reference,
    endings: Sequence[str] = ("png", "svg"),
) -> list[tuple[str, str]]:  # fmt: skip
    """Draws all there is to draw; their names, with what each shows."""
    made = []
    for name, about, drawn in _figures(section, band, reference):
        for ending in endings:
            drawn.savefig(folder / f"{name}.{ending}", dpi=120)
        made.append((name, about))
    return made


def _figures(section: Section, band: str, reference: Reference) -> Iterator[tuple[str, str, Any]]:
    shown = f"Evaluation returns over training ({BAND[band]})"
    yield "curves", shown, _curves(section, band, reference)
    lines = series.efficiency(section)
    if lines:
        about = f"Sample efficiency: IQM over tasks and seeds, {scale(section)}; {RESAMPLED}"
        yield (
            "efficiency",
            about,
            _lines(section, lines, section.unit, "IQM", section.per_step),
        )
        about = (
            f"Performance profiles: the share of runs above a score, {scale(section)}; {RESAMPLED}"
        )
        made = _lines(section, series.profiles(section), "score τ", "share of runs above τ", 1)
        yield "profiles", about, made
        yield "intervals", "IQM with 95% bootstrap intervals", _intervals(section)
    taken: set[str] = set()
    for task, groups in section.tasks.items():
        recorded = {label: series.distributions(group) for label, group in groups.items()}
        recorded = {label: found for label, found in recorded.items() if found}
        if recorded:
            name = "distributions-" + "".join(c if c.isalnum() else "-" for c in task)
            while name in taken:  # another task of nearly the same name
                name += "-"
            taken.add(name)
            about = f"What the agents believed on batches of states over training, {task}"
            yield name, about, _distributions(recorded, groups, section)


def _band(axis, line: Line, drawn: Look, label: str, per_step: int = 1) -> None:
    x = line.x * per_step
    axis.plot(x, line.y, color=drawn.colour, ls=drawn.line, lw=1.6, label=caption(label))
    axis.fill_between(x, line.low, line.high, color=drawn.colour, alpha=0.18, lw=0)
    _count_axis(axis, x)


def _count_axis(axis, x) -> None:
    """50M, not 0.5 with 1e8 in a corner."""
    from matplotlib.ticker import EngFormatter

    if np.max(x, initial=0) >= 1_000:
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))


def seeds_word(*groups: Group) -> str:
    counts = sorted({len(group.seeds) for group in groups})
    if counts == [1]:
        return "one seed"
    return f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else f"{counts[0]} seeds"


def _curves(section: Section, band: str, reference: Reference):
    count = len(section.tasks)
    across = min(4, count)
    down = math.ceil(count / across)
    fig, axes = figure(
        down, across, figsize=(max(6, 3.6 * across), 0.9 + 2.8 * down), squeeze=False
    )
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    handles: dict[str, object] = {}
    theirs = published_looks(reference)
    tasks = section.tasks.values()  # a label for each agent, however many seeds a task has
    named = {
        label: f"{label}, {seeds_word(*(groups[label] for groups in tasks if label in groups))}"
        for label in section.labels()
    }
    for axis, (task, groups) in zip(axes.flat, section.tasks.items(), strict=False):
        for label, group in groups.items():
            line = series.over_seeds(group.curve(), band)
            _band(axis, line, group.look, named[label], section.per_step)
        for other in for_task(reference, task, section.length):
            drawn = theirs[other.agent]
            axis.plot(other.frames, other.returns, color=drawn.colour, lw=1, ls=drawn.line,
                      label=caption(f"{other.agent}, published"))  # fmt: skip
        axis.set_title(caption(task), fontsize="medium")
        handles |= {h.get_label(): h for h in axis.get_lines()}
    fig.supxlabel(section.unit, fontsize="medium")
    fig.supylabel("return of an episode", fontsize="medium")
    _legend(fig, handles)
    return fig


def _legend(fig, handles: dict) -> None:
    fig.legend(
        handles.values(), handles.keys(), loc="outside upper center", ncols=min(3, len(handles)),
        frameon=False, fontsize="small",
    )  # fmt: skip


def _lines(section: Section, lines: dict[str, Line], x: str, y: str, per_step: int):
    fig, axis = figure()
    for label, line in lines.items():
        _band(axis, line, section.labels()[label].look, label, per_step)
    axis.set(xlabel=x, ylabel=y)
    _legend(fig, {h.get_label(): h for h in axis.get_lines()})
    return fig


def _intervals(section: Section):
    scores = {label: tasks for label, tasks in matrices(section).items() if tasks}
    fig, axis = figure(figsize=(7, 1.2 + 0.4 * len(scores)))
    for i, (label, tasks) in enumerate(scores.items()):
        tint, found = section.labels()[label].look.colour, estimate(tasks)
        axis.barh(i, np.nan_to_num(found.high - found.low), left=found.low, color=tint, alpha=0.4)
        axis.plot([found.value] * 2, [i - 0.4, i + 0.4], color=tint, lw=2.5)
    axis.set(
        yticks=range(len(scores)),
        yticklabels=list(map(caption, scores)),
        xlabel=f"IQM, {scale(section)}",
    )
    axis.xaxis.label.set_fontsize("small")
    axis.use_sticky_edges = False  # or the lowest bar begins on the axis
    axis.margins(x=0.05)
    axis.invert_yaxis()
    axis.grid(visible=False, axis="y")
    return fig


def _distributions(recorded: dict, groups: dict[str, Group], section: Section):
    """The paper's last figure: nested bands of percentiles, one column an agent."""
    names = [name for name in QUANTITIES if any(name in found for found in recorded.values())]
    fig, axes = figure(
        len(names), len(recorded), figsize=(0.8 + 4 * len(recorded), 2.2 * len(names)),
        squeeze=False, sharey="row",
    )  # fmt: skip
    for column, (label, found) in enumerate(recorded.items()):
        tint = groups[label].look.colour
        for row, name in enumerate(names):
            axis = axes[row, column]
            if name not in found:
                axis.set_visible(False)
                continue
            one = found[name]
            x = one["steps"] * section.per_step
            for low, high, alpha in (("p0", "p100", 0.12), ("p5", "p95", 0.2), ("p25", "p75", 0.3)):
                axis.fill_between(x, one[low], one[high], color=tint, alpha=alpha, lw=0)
            axis.plot(x, one["p50"], color=tint, lw=1.4)
            _count_axis(axis, x)
            if not column:
                axis.set_ylabel(QUANTITIES[name], fontsize="small")
        title = f"{caption(label)}, {seeds_word(groups[label])}"
        axes[0, column].set_title(title, fontsize="medium")
    fig.supxlabel(
        f"{section.unit}; line: median, bands: middle half, 5 to 95%, all", fontsize="small"
    )
    return fig
