"""The live display of `idrl train`, and the short table it ends with."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from idrl.agents.telling import told
from idrl.config import RunConfig
from idrl.envs import unit_of
from idrl.report.statistics import (
    INTERVAL,
    iqm,
    mean_over_seeds,
    share_interval,
    short,
    solved_episode,
)
from idrl.runs.pace import Pace
from idrl.runs.run import Run
from idrl.storage.records import numbers, read_episodes, read_evaluations, read_table
from idrl.system import words
from idrl.system.tables import TextTable
from idrl.training.doing import EVALUATING, LEARNING, RANDOM, REPLAYING, RESUMING, Doing
from idrl.training.evaluation import Score


class LiveDisplay:
    """Steps or frames, how many a second, time left, returns, and what the rule sees; plain lines
    when piped, and in a notebook without ipywidgets, which cannot draw over what it showed."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic):
        self.console, self.clock = console, clock
        self.moves = console.is_interactive or (console.is_jupyter and _has_widgets())
        self.bar = Progress(
            TextColumn("{task.completed:>10,.0f}/{task.total:,.0f} {task.fields[unit]}"),
            BarColumn(), TextColumn("{task.fields[rate]:>8} {task.fields[unit]}/s"),
            TextColumn("{task.fields[left]}"),
            console=console,
        )  # fmt: skip
        self.task: Any = None
        self.live = Live(self.bar, console=console, refresh_per_second=4, transient=True)
        self.recent: list[float] = []
        self.score, self.ranges = "–", ""
        self.pace = Pace(clock)
        self.begun = self.shown = clock()  # when something was last shown
        self.lined: tuple[float, int] | None = None  # the line of the last evaluation: when, steps

    def __enter__(self):
        return self

    def start(self) -> None:
        """Training is about to begin: nothing can be refused any more."""
        self.begun = self.shown = self.clock()
        with _or_nowhere(self.console):
            if self.moves:
                self.live.update("compiling …")
                self.live.start()
            else:
                self.console.print("compiling …")

    def __exit__(self, *error):
        with _or_nowhere(self.console):
            self.live.stop()

    def tell(self, *what: Any) -> None:
        """Below it, a line each. Sentences may hold a command to copy: they are not cut."""
        with _or_nowhere(self.console):
            for one in what:
                self.console.print(one, markup=False, soft_wrap=isinstance(one, str))

    def busy(self, doing: Doing, config: RunConfig) -> None:
        """On the way from one `update` to the next."""
        self.pace.note(doing)
        unit, scale = unit_of(config.env)
        if doing.what == RESUMING:
            done, total = doing.done * scale, doing.total * scale
            self.tell(f"resuming at {done:,} of {total:,} {unit}")
        elif self._is_due(doing):
            with _or_nowhere(self.console):
                self._show_busy(doing, config)

    def _is_due(self, doing: Doing) -> bool:
        """A terminal is drawn often. Lines are rare: one as soon as it is known how long what comes
        before learning takes, all others half a minute apart, or more in a long run."""
        now, speed = self.clock(), self.pace.speed(doing.what)
        if doing.what in (REPLAYING, RANDOM):
            if not speed or doing.total / speed < _SHORT:
                return False
            if doing.done == doing.total if self.moves else self.shown <= self.pace.began:
                return True
        if self.moves:
            return now - self.shown >= _DRAWN
        if doing.what == LEARNING and not speed:
            return False
        return now - self.shown >= max(_LINED, 0.1 * (now - self.begun))

    def _show_busy(self, doing: Doing, config: RunConfig) -> None:
        unit, scale = unit_of(config.env)
        self.shown = self.clock()
        if doing.what in (REPLAYING, RANDOM):
            done, total = f"{doing.done * scale:,}", f"{doing.total * scale:,}"
            left = self.pace.stretch_left()
            text = f"{_BEFORE_LEARNING[doing.what]} {done} of {total} {unit}"
            text += f" … {left}" if left else ""
            if self.moves and doing.done == doing.total:
                text = "compiling …"
            self._draw(text) if self.moves else self.console.print(text, soft_wrap=True)
        elif self.moves:
            self._move(doing.done, config, doing.what == EVALUATING)
        elif doing.what == EVALUATING:
            self.console.print("evaluating …")
        else:
            self._print(doing.done, config, self.pace.speed())

    def update(self, progress, config: RunConfig) -> None:
        total = max(config.training.steps, progress.steps)
        self.pace.note(Doing(LEARNING, progress.steps, total))
        with _or_nowhere(self.console):
            self._update(progress, config)

    def _update(self, progress, config: RunConfig) -> None:
        if self.lined is None:  # what comes before is compiling, or an earlier process
            self.lined = self.clock(), progress.steps
        self.recent = (self.recent + progress.episodes.returns.tolist())[-100 * config.seeds :]
        if progress.metrics:
            m = {name: float(np.mean(v[progress.alive])) for name, v in progress.metrics.items()}
            self.ranges = "".join(
                f"   {symbol} {short(m[f'{name}_min'])}–{short(m[f'{name}_max'])}"
                for name, symbol in _RANGES.items()
                if name in told(config.spec)
            )
        if progress.scored is not None:
            self.score = _told(progress.score, progress.scored.alive)
            if progress.scored.steps < progress.steps:
                unit, scale = unit_of(config.env)
                self.score += f" at {progress.scored.steps * scale:,} {unit}"
        if self.moves:
            self._move(progress.steps, config)
        elif progress.score is not None:
            now = self.clock()
            then, before = self.lined  # this line tells of all the time since, evaluations included
            self.lined = now, progress.steps
            made = progress.steps - before
            speed = made / max(now - then, 1e-9) if made else self.pace.speed()
            self._print(progress.steps, config, speed)

    def _numbers(self) -> str:
        acting = short(float(np.mean(self.recent))) if self.recent else "–"
        return f"episode return {acting}   evaluation {self.score}{self.ranges}"

    def _left(self, steps: int, config: RunConfig) -> str:
        return self.pace.run_left(steps, config.training.steps, config.evaluation.every_steps)

    def _move(self, steps: int, config: RunConfig, evaluating: bool = False) -> None:
        unit, scale = unit_of(config.env)
        total = max(config.training.steps, steps) * scale
        if self.task is None:
            self.task = self.bar.add_task("", total=total, rate="–", unit=unit, left="")
        left = self._left(steps, config) if LEARNING in self.pace.sums else "compiling …"
        rate = _rate(self.pace.speed() * config.seeds * scale)
        self.bar.update(self.task, completed=steps * scale, rate=rate, left=left)
        self._draw(self.bar, self._numbers() + ("   evaluating …" if evaluating else ""))

    def _draw(self, *rows: Any) -> None:
        grid = Table.grid()
        for row in rows:
            grid.add_row(row)
        self.live.update(grid)

    def _print(self, steps: int, config: RunConfig, speed: float) -> None:
        unit, scale = unit_of(config.env)
        self.shown, left = self.clock(), self._left(steps, config)
        rate = _rate(speed * config.seeds * scale)
        text = f"{steps * scale:>10,} {unit} {rate:>9} {unit}/s   {self._numbers()}"
        self.console.print(f"{text}   {left}" if left else text, soft_wrap=True)


def _rate(speed: float) -> str:
    return f"{speed:,.0f}" if speed else "–"  # too little was measured


def _told(score: Score, alive: np.ndarray) -> str:
    """An evaluation, and what its mean does not show: games that went on to a time limit, or on and
    on, as those of a greedy policy that stands still."""
    episodes, cut = (int(np.sum(x[alive])) for x in (score.episodes, score.truncated))
    told = str(mean_over_seeds(score.return_mean[alive]))
    if not episodes:
        return f"{told}, no episode ended"
    return f"{told}, {cut:,} of {episodes:,} episodes at the time limit" if cut else told


_SHORT = 2.0  # seconds of a replay or of random steps that nobody is told of
_DRAWN, _LINED = 0.25, 30.0  # seconds between two pictures in a terminal, and two lines
_BEFORE_LEARNING = {REPLAYING: "replaying", RANDOM: "random actions:"}
_RANGES = {"sigma": "σ", "rho2": "ρ²"}  # that metrics have, of the agents they mean something for


def _has_widgets() -> bool:
    return importlib.util.find_spec("ipywidgets") is not None


@contextlib.contextmanager
def _or_nowhere(console: Console) -> Iterator[None]:
    """A run does not end with the terminal that showed it: from then on nobody is told."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        gone, nowhere = os.fstat(console.file.fileno()), os.open(os.devnull, os.O_WRONLY)
        for number in (1, 2):
            if os.path.samestat(os.fstat(number), gone):
                os.dup2(nowhere, number)
        os.close(nowhere)


def summary(run: Run) -> TextTable:
    """One row a seed: what it reached, when it solved the task and what acting cost, where these
    are defined; below them the seeds together."""
    found = _by_seed(run)
    stopped = read_table(run.path / "frozen.csv", ("seed", "steps"))
    frozen = {row["seed"]: f"at step {int(row['steps']):,}" for row in stopped}
    latest = {row["seed"]: row for row in read_evaluations(run.path)}
    marks = {_LIMIT: _at_limit(latest), "frozen": frozen}  # columns of what is unusual
    marks = {name: told for name, told in marks.items() if any(told.values())}
    rows, below = [], []
    for index, seed in enumerate(run.seeds):
        cells = [_COLUMNS[name](x[index]) for name, x in found.items()]
        rows.append([str(seed), *cells, *(told.get(str(seed), "") for told in marks.values())])
    notes = [f"Frozen: {len(frozen)} of {len(run.seeds)} seeds."] if frozen else []
    notes += _unfinished(latest, run)
    if run.config.seeds == 1:
        notes.append("One seed: there is no interval.")
    else:
        for label, tell in (("mean", mean_over_seeds), ("IQM", _iqm)):
            cells = ["" if name in _COUNTS else str(tell(x)) for name, x in found.items()]
            below.append([label, *cells, *[""] * len(marks)])
        notes.append(f"In brackets: {INTERVAL}.")
        if _SOLVED in found:
            notes.append(_solved(found[_SOLVED]))
    if _REGRET in found:
        last = numbers(list(latest.values()), "regret")
        said = f"; in the last evaluation {mean_over_seeds(last)} per episode"
        notes.append(
            "Regret: the best policy's expected return less what acting earned, summed over "
            f"episodes{said if np.isfinite(last).any() else ''}."
        )
    heads = ["seed", *found, *marks]
    title = words.title(run.config.agent, run.config.env)
    return TextTable(heads, rows, title, notes, below=below)


_SOLVED, _REGRET, _LIMIT = "solved at episode", "regret", "at the time limit"
_COUNTS = ("episodes", _SOLVED)  # whose mean over seeds says nothing


def _at_limit(latest: dict[str, dict[str, str]]) -> dict[str, str]:
    """By seed, how many episodes of its last evaluation a time limit ended; of runs that say so."""
    told = {}
    for seed, row in latest.items():
        cut, of = (float(row.get(name) or 0) for name in ("truncated", "episodes"))
        told[seed] = f"{cut:,.0f} of {of:,.0f}" if cut else ""
    return told


def _unfinished(latest: dict[str, dict[str, str]], run: Run) -> list[str]:
    """A sentence on seeds whose last evaluation was over before any of its episodes."""
    seeds = [seed for seed, row in latest.items() if float(row.get("episodes") or 1) == 0]
    if not seeds:
        return []
    told = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(seeds)}"
    steps = run.config.evaluation.steps
    return [f"No episode of the last evaluation of {told} ended in its {steps:,} steps."]


def _score(value: float) -> str:
    """A dash where no episode ended: in the last evaluation, or in any."""
    return short(value) if np.isfinite(value) else "–"


_COLUMNS: dict[str, Callable[[float], str]] = {
    "last evaluation": _score,
    "best evaluation": _score,
    "episodes": "{:,.0f}".format,
    _SOLVED: lambda episode: "never" if np.isnan(episode) else f"{episode:.0f}",
    _REGRET: short,
}


def _by_seed(run: Run) -> dict[str, list[float]]:
    """The columns of the summary that this run has."""
    rows, episodes = read_evaluations(run.path), read_episodes(run.path)
    found: dict[str, list[float]] = {name: [] for name in _COLUMNS}
    for name, column in ((_SOLVED, "bad"), (_REGRET, "regret")):
        if not (episodes and column in episodes[0]):
            del found[name]
    for seed in run.seeds:
        mine = [row for row in rows if row["seed"] == str(seed)][-1:]
        played = [row for row in episodes if row["seed"] == str(seed)]
        for name, column in (("last evaluation", "return_mean"), ("best evaluation", "best")):
            found[name].append(numbers(mine, column)[0] if mine else np.nan)
        found["episodes"].append(len(played))
        if _SOLVED in found:
            found[_SOLVED].append(solved_episode(numbers(played, "bad")) or np.nan)
        if _REGRET in found:
            found[_REGRET].append(sum(numbers(played, "regret")))
    return found


def _iqm(values) -> str:
    finite = [value for value in values if np.isfinite(value)]
    return short(float(iqm(finite))) if finite else "–"


def _solved(episodes: list[float]) -> str:
    """How many seeds, with the interval of their share, and when."""
    done = [episode for episode in episodes if np.isfinite(episode)]
    low, high = share_interval(len(done), len(episodes))
    middle = f", median episode {np.median(done):.0f}" if done else ""
    return f"Solved: {len(done)} of {len(episodes)} seeds (95%: {low:.0%} to {high:.0%}){middle}."
