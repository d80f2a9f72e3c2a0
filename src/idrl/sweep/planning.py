"""What a study would take: runs, hours, disk and money, before anything is started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from idrl.config import RunConfig
from idrl.envs import family_of, unit_of
from idrl.envs.declaring import STEPS
from idrl.sweep.jobs import Combination
from idrl.sweep.speeds import Hardware
from idrl.sweep.work import disk_of, per_step
from idrl.system.tables import TextTable


class PlanRow(NamedTuple):
    """One agent in one family of environments."""

    agent: str
    family: str
    runs: int  # seeds of JAX environments in one, before they are split over idle cores
    steps: int  # of all seeds together
    disk: float
    seconds: tuple[float | None, ...]  # of one unit, for each hardware; None: never measured
    longest: tuple[float, ...]  # run
    measured: tuple[bool, ...]


def rows(
    found: Sequence[Combination], hardware: Sequence[Hardware], trials: int = 1
) -> list[PlanRow]:
    """`trials`: how often each is run, in a search."""
    grouped: dict[tuple[str, str], list[Combination]] = {}
    for c in found:
        grouped.setdefault((c.config.agent, family_of(c.config.env)), []).append(c)
    return [_row(*key, members, hardware, trials) for key, members in grouped.items()]


def measured_only(
    found: list[PlanRow], hardware: list[Hardware]
) -> tuple[list[PlanRow], list[Hardware]]:
    """Without hardware on which none of it was ever measured."""
    keep = [i for i in range(len(hardware)) if any(row.seconds[i] is not None for row in found)]

    def kept(values: tuple) -> tuple:
        return tuple(values[i] for i in keep)

    rows = [
        row._replace(
            seconds=kept(row.seconds), longest=kept(row.longest), measured=kept(row.measured)
        )
        for row in found
    ]
    return rows, [hardware[i] for i in keep]


def _row(agent: str, family: str, members, hardware, trials: int) -> PlanRow:
    seconds: list[float | None] = []
    longest, measured = [], []
    alone = [1 if c.packable else len(c.seeds) for c in members]  # runs of each
    for kind in hardware:
        times = [kind.estimate(c.config, len(c.seeds) if c.packable else 1) for c in members]
        known = [t.seconds * n for t, n in zip(times, alone, strict=True) if t is not None]
        seconds.append(sum(known) * trials if len(known) == len(times) else None)
        longest.append(max((t.seconds for t in times if t is not None), default=0.0))
        measured.append(all(t is not None and t.measured for t in times))
    steps = sum(c.config.training.steps * len(c.seeds) for c in members) * trials
    disk = sum(disk_of(c.config) * len(c.seeds) for c in members) * trials
    return PlanRow(
        agent, family, sum(alone) * trials, steps, disk, tuple(seconds), tuple(longest),
        tuple(measured),
    )  # fmt: skip


def show(
    title: str, found: list[PlanRow], hardware: Sequence[Hardware], price: float | None
) -> TextTable:
    families = {row.family for row in found}
    units = set(map(unit_of, families))
    unit, scale = units.pop() if len(units) == 1 else STEPS
    lines, below = [], []
    for row in found:
        times = [
            _time(row.seconds[i], kind.units, row.longest[i], row.measured[i])
            for i, kind in enumerate(hardware)
        ]
        name = row.agent if len(families) == 1 else f"{row.agent}, {row.family}"
        lines.append([name, f"{row.runs:,}", _budget(row.steps * scale), _size(row.disk), *times])
    for name, cells in _sums(found, hardware, price).items():
        runs, disk = sum(row.runs for row in found), _size(sum(row.disk for row in found))
        first = (f"{runs:,}", "", disk) if name == "all" else ("", "", "")
        below.append([name, *first, *cells])
    heads = ["agent", "runs", unit, "disk", *map(str, hardware)]
    return TextTable(heads, lines, title, [_NOTE], left=[0], below=below)


def _sums(found: list[PlanRow], hardware: Sequence[Hardware], price: float | None):
    """Below the agents: the time of all, hours of one unit, and what these cost."""
    sums = [_sum(found, i) for i in range(len(hardware))]
    slow = [max((row.longest[i] for row in found), default=0.0) for i in range(len(hardware))]
    units = [kind.units for kind in hardware]
    lines = {
        "all": [_time(*one) for one in zip(sums, units, slow, strict=True)],
        "hours of one": [_plain(s, 1.0) for s in sums],
    }
    if price is not None:
        lines[f"at {price:g} an hour"] = [_plain(s, price) for s in sums]
    return lines


_NOTE = (
    "From measured speeds. ≈: of another agent, by the operations of an update. –: never measured."
)


def _plain(seconds: float | None, price: float) -> str:
    if seconds is None:
        return "–"
    value = seconds / 3600 * price
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _sum(found: list[PlanRow], i: int) -> float | None:
    known = [row.seconds[i] for row in found]
    return None if None in known else sum(s for s in known if s is not None)


def _time(seconds: float | None, units: int, longest: float, measured: bool = True) -> str:
    if seconds is None:
        return "–"
    return ("" if measured else "≈ ") + _lasting(max(seconds / units, longest))


def _lasting(seconds: float) -> str:
    for unit, size, least in (
        ("y", 365 * 86_400, 2), ("d", 86_400, 4), ("h", 3_600, 1.5), ("min", 60, 1.5),
    ):  # fmt: skip
        if seconds >= least * size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:.0f} s"


def _budget(count: int) -> str:
    for name, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:,.4g}{name}"
    return str(count)


def _size(size: float) -> str:
    for unit, one in (("TB", 1e12), ("GB", 1e9)):
        if size >= one:
            return f"{size / one:,.3g} {unit}"
    return f"{size / 1e6:,.0f} MB"


def costs(machine: Hardware | None) -> Callable[[RunConfig, int], float]:
    """Roughly the seconds of a run, for the order and the time left; operations where nothing is
    known, which order as well."""

    def cost(config: RunConfig, seeds: int) -> float:
        estimate = machine.estimate(config, seeds) if machine else None
        if estimate is not None:
            return estimate.seconds
        return config.training.steps * seeds * per_step(config) / 30e9

    return cost
