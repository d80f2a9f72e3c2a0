"""The live display of `idrl train`, and the short table it ends with."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from idrl.api import Run
from idrl.config import RunConfig
from idrl.envs.deep_sea import solved_episode
from idrl.report.statistics import plus_minus
from idrl.runs.records import numbers


class LiveDisplay:
    """Steps, steps/s, time left, returns, and what the rule sees; plain lines when piped."""

    def __init__(self, console: Console):
        self.console = console
        self.bar = Progress(
            TextColumn("{task.completed:>10,.0f}/{task.total:,.0f} steps"), BarColumn(),
            TextColumn("{task.fields[rate]:>8,.0f} steps/s"), TimeRemainingColumn(),
            console=console,
        )  # fmt: skip
        self.task: Any = None
        self.live = Live(self.bar, console=console, refresh_per_second=4, transient=True)
        self.recent: list[float] = []
        self.score = self.ranges = "–"
        self.clock, self.last_steps = time.monotonic(), 0

    def __enter__(self):
        return self

    def start(self) -> None:
        """Training is about to begin: nothing can be refused any more."""
        if self.console.is_terminal:
            self.live.update("compiling …")
            self.live.start()
        else:
            self.console.print("compiling …")

    def __exit__(self, *error):
        self.live.stop()

    def update(self, progress, config: RunConfig) -> None:
        now = time.monotonic()
        made = (progress.steps - self.last_steps) * config.seeds
        rate = made / max(now - self.clock, 1e-9) if self.last_steps else 0.0
        self.clock, self.last_steps = now, progress.steps
        self.recent = (self.recent + progress.episodes.returns.tolist())[-100 * config.seeds :]
        if progress.metrics:
            m = {name: float(np.mean(v[progress.alive])) for name, v in progress.metrics.items()}
            self.ranges = (
                f"σ {m['sigma_min']:.3g}–{m['sigma_max']:.3g}   "
                f"ρ² {m['rho2_min']:.3g}–{m['rho2_max']:.3g}"
            )
        if progress.score is not None:
            self.score = plus_minus(progress.score.return_mean[progress.alive])
        acting = f"{np.mean(self.recent):.3g}" if self.recent else "–"
        line = f"episode return {acting}   evaluation {self.score}   {self.ranges}"
        if self.console.is_terminal:
            total = max(config.training.steps, progress.steps)
            if self.task is None:
                self.task = self.bar.add_task("", total=total, rate=0)
            self.bar.update(self.task, completed=progress.steps, rate=rate)
            grid = Table.grid()
            grid.add_row(self.bar)
            grid.add_row(line)
            self.live.update(grid)
        elif progress.score is not None:
            text = f"{progress.steps:>10,} steps {rate:>9,.0f} steps/s   {line}"
            self.console.print(text, soft_wrap=True)


def summary(run: Run) -> Table:
    """One row a seed: what it reached, and when it solved the task where that is defined."""
    rows, episodes = run.evaluations, run.episodes
    judged = bool(episodes) and "bad" in episodes[0]
    frozen = {row["seed"]: f"at step {int(row['steps']):,}" for row in run.frozen}
    table = Table(title=f"{run.config.agent} on {run.config.env}", title_justify="left")
    for name in ("seed", "last evaluation", "best evaluation", "episodes"):
        table.add_column(name, justify="right")
    if judged:
        table.add_column("solved at episode", justify="right")
    if frozen:
        table.add_column("frozen", justify="right")
    last, best, solved = [], [], []
    for seed in run.seeds:
        mine = [row for row in rows if row["seed"] == str(seed)]
        played = [row for row in episodes if row["seed"] == str(seed)]
        last.append(numbers(mine[-1:], "return_mean")[0] if mine else float("nan"))
        best.append(numbers(mine[-1:], "best")[0] if mine else float("nan"))
        cells = [str(seed), f"{last[-1]:.4g}", f"{best[-1]:.4g}", f"{len(played):,}"]
        if judged:
            solved.append(solved_episode(numbers(played, "bad")))
            cells.append(str(solved[-1] or "not"))
        if frozen:
            cells.append(frozen.get(str(seed), ""))
        table.add_row(*cells)
    cells = ["mean", plus_minus(last), plus_minus(best), ""]
    if judged:
        done = [s for s in solved if s]
        middle = f", median {int(np.median(done))}" if done else ""
        cells.append(f"{len(done)} of {len(solved)}{middle}")
    if frozen:
        cells.append(f"{len(frozen)} of {len(run.seeds)}")
    table.add_section()
    table.add_row(*cells)
    return table
