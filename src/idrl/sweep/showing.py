"""A study's state as a table: live while it runs, or looked at from elsewhere."""

from __future__ import annotations

import os
import shlex
import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from idrl.envs import unit_of
from idrl.envs.declaring import STEPS
from idrl.sweep.folder import Outcome, StudyFolder

_SHOWN = 12  # running runs in the live table
_RECENT_S = 60.0  # a run that told nothing for so long is not counted into the speed
_EVERY_S = 2.0


class Snapshot:
    """What is queued, running, done and failed, how fast it goes and how long it will take."""

    def __init__(self, folder: StudyFolder):
        self.outcomes = folder.outcomes()
        jobs = folder.jobs
        self.running = {
            name: folder.progress(name)
            for name, o in self.outcomes.items()
            if o.status == "running"
        }
        units = {unit_of(job.env) for job in jobs.values()}
        unit, scale = units.pop() if len(units) == 1 else STEPS
        now = time.time()
        fresh = [n for n, p in self.running.items() if now - p.get("at", 0) < _RECENT_S]
        self.rate = scale * sum(self.running[name].get("rate", 0.0) for name in fresh)
        here = os.uname().nodename
        self.lives_elsewhere = any(self.outcomes[name].node not in ("", here) for name in fresh)
        self.unit = f"{unit}/s"
        self.left_s = self._left(jobs)

    def _left(self, jobs) -> float | None:
        """By the estimates, corrected by how the finished ones compare with theirs."""
        over = [n for n, o in self.outcomes.items() if o.status == "done" and jobs[n].cost_s]
        expected = sum(jobs[n].cost_s for n in over)
        if not expected or not self.running:
            return None
        slower = sum(self.outcomes[n].wall_s for n in over) / expected
        left = 0.0
        for name, outcome in self.outcomes.items():
            if not outcome.over:
                told = self.running.get(name, {})
                left += jobs[name].cost_s * (1 - told.get("steps", 0) / max(told.get("of", 1), 1))
        return left * slower / len(self.running)

    def count(self, *statuses: str) -> int:
        return sum(o.status in statuses for o in self.outcomes.values())

    def line(self) -> str:
        queued = len(self.outcomes) - self.count("running", "done", "pruned", "aside")
        left = "–" if self.left_s is None else _clock(self.left_s)
        pruned = self.count("pruned")
        return (
            f"queued {queued}   running {self.count('running')}   done {self.count('done')}"
            + (f"   ended early {pruned}" if pruned else "")
            + f"   failed {self.count('aside')}   {self.rate:,.0f} {self.unit}   left {left}"
        )

    def table(self) -> Table:
        table = Table(show_edge=False, pad_edge=False)
        for name in ("running", "progress", self.unit, "evaluation", "attempt"):
            table.add_column(name, justify="left" if name == "running" else "right", no_wrap=True)
        for name, told in list(self.running.items())[:_SHOWN]:
            table.add_row(name, *_cells(told, self.outcomes[name]))
        if len(self.running) > _SHOWN:
            table.add_row(f"… and {len(self.running) - _SHOWN} more", "", "", "", "")
        return table


def _cells(told: dict[str, Any], outcome: Outcome) -> list[str]:
    scores = told.get("evaluations") or []
    share = told.get("steps", 0) / max(told.get("of", 1), 1)
    score = f"{scores[-1][1]:.4g}" if scores else "–"
    return [f"{min(share, 1):.0%}", f"{told.get('rate', 0.0):,.0f}", score, str(outcome.attempts)]


def _clock(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"


class LiveTable:
    """One table that renews itself; where nobody watches, a line for every run that ends."""

    def __init__(self, folder: StudyFolder, console: Console):
        self.folder, self.console = folder, console
        self.live = Live(console=console, refresh_per_second=2, transient=True)
        self.due = 0.0

    def __enter__(self) -> LiveTable:
        if self.console.is_interactive:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.live.stop()

    def tell(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self) -> None:
        if not self.console.is_interactive or time.monotonic() < self.due:
            return
        self.due = time.monotonic() + _EVERY_S
        now = Snapshot(self.folder)
        self.live.update(Group(now.table(), now.line()))


def status(folder: StudyFolder, console: Console) -> None:
    """For `--status`: counts, what runs, and what was set aside and why."""
    now = Snapshot(folder)
    console.print(f"{folder.name}: {len(now.outcomes)} runs in {folder.store.where}", markup=False)
    console.print(now.line(), markup=False)
    if now.running:
        console.print(now.table())
    # not every network tells one machine of another's locks
    if now.running and not now.lives_elsewhere and folder.is_left():
        console.print(
            "Its driver is gone, and its runs with it; they continue with: idrl sweep --resume "
            f"{shlex.quote(folder.store.where)}",
            markup=False, soft_wrap=True,
        )  # fmt: skip
    for name, outcome in now.outcomes.items():
        if outcome.status == "aside":
            console.print(f"Set aside: {name}: {outcome.error}", markup=False, soft_wrap=True)
