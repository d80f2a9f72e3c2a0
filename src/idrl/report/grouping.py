"""Runs sorted into what may stand in one table: one family of tasks, played and evaluated in one
way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from idrl.report.paper import FRAMES_PER_STEP, family_of, game_of
from idrl.report.reading import LeftOut, Record, Seed
from idrl.report.style import Look, look
from idrl.system import words

_LONGEST = 160  # letters of an agent with the settings that tell it from others
_SEEDS_NAMED = 8  # of those that a run repeats
_MORE = 1_000  # points of a curve beyond which it is thinned
_OWN = (
    {("", name) for name in ("agent", "env", "seed", "seeds")}
    | {
        ("training", name)
        for name in ("log_every_steps", "keep_weights", "env_timeout_s", "env_processes")
    }
    | {("evaluation", "beside")}
)
# Options of a name that suites sweep over, as bsuite does: levels of one task, which its tables
# average. All others, such as sticky actions or a time limit, say how tasks are played.
LEVELS = ("height", "noise", "width")


class Protocol(NamedTuple):
    """What must agree for maxima over evaluations to be compared."""

    steps: int
    every: int
    window: int

    def __str__(self) -> str:
        return f"{self.steps:,} steps, evaluated every {self.every:,} for {self.window:,}"


class Curve(NamedTuple):
    """Evaluations over seeds on a common grid: `returns` is `[seeds, steps]`."""

    steps: np.ndarray
    returns: np.ndarray


@dataclass
class Group:
    """The seeds of one agent with one setting on one task."""

    label: str
    agent: str
    look: Look
    seeds: list[Seed] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def scores(self) -> np.ndarray:
        return np.array([seed.best for seed in self.seeds])

    def curve(self) -> Curve:
        """On the steps that all seeds were evaluated at which did not freeze on the way."""
        end = max(seed.steps[-1] for seed in self.seeds)
        first, *others = (seed.steps for seed in self.seeds if seed.steps[-1] == end)
        steps = first
        for other in others:
            steps = np.intersect1d(steps, other)
        if len(steps) > _MORE:
            steps = steps[np.unique(np.linspace(0, len(steps) - 1, _MORE).astype(int))]
        return Curve(steps, np.stack([seed.at(steps) for seed in self.seeds]))


@dataclass
class Section:
    """What stands in one table: tasks of one family, with the same options, under one protocol."""

    family: str
    options: str  # how its tasks are played, as names say it: sticky=0.25
    protocol: Protocol
    tasks: dict[str, dict[str, Group]] = field(default_factory=dict)  # by task, then label
    # scores that count as 0 and as 1, by task, and what they are; none: the range seen
    anchors: dict[str, tuple[float, float]] = field(default_factory=dict)
    anchored: str = ""

    @property
    def name(self) -> str:
        return f"{self.family}?{self.options}" if self.options else self.family

    @property
    def title(self) -> str:
        return f"{self.name}: {self.protocol}"

    @property
    def of_atari(self) -> bool:
        """All its tasks are games with a human's score."""
        return all(game_of(task) for task in self.tasks)

    @property
    def per_step(self) -> int:
        """Units in a step."""
        return self._unit[1]

    @property
    def length(self) -> int:
        """How far its runs go, in its unit."""
        return self.protocol.steps * self.per_step

    @property
    def unit(self) -> str:
        name, _ = self._unit
        return "steps of each seed" if name == "steps" else name

    @property
    def _unit(self) -> tuple[str, int]:
        """What its runs say that they are counted in. Atari's games are counted in frames, also
        those of runs that do not say."""
        if self.of_atari:
            return "frames", FRAMES_PER_STEP
        labels = (group for groups in self.tasks.values() for group in groups.values())
        units = {record.unit for group in labels for record in group.records}
        return units.pop() if len(units) == 1 else ("steps", 1)

    def labels(self) -> dict[str, Group]:
        """Each label once, with one of its groups to take the look from."""
        return {label: group for groups in self.tasks.values() for label, group in groups.items()}

    def common(self) -> list[str]:
        """Tasks that every agent has played: what may be averaged over."""
        return [task for task, groups in self.tasks.items() if len(groups) == len(self.labels())]


def sections(records: Sequence[Record]) -> tuple[list[Section], list[LeftOut]]:
    """Sorted by family, options and protocol, and the runs that repeat seeds of others."""
    left_out: list[LeftOut] = []
    found: list[Section] = []
    sorted_in: dict[tuple, dict[str, list[Record]]] = {}
    for record in sorted(records, key=lambda r: (r.env, r.agent, str(r.path))):
        task, options = _task(record.env)
        key = (family_of(task), options, _protocol(record.config))
        sorted_in.setdefault(key, {}).setdefault(task, []).append(record)
    for key, by_task in sorted(sorted_in.items()):
        section = Section(*key)
        said = _Said(by_task.values())
        variants: dict[str, list[str]] = {}
        for task, mine in sorted(by_task.items()):
            section.tasks[task] = _groups(mine, said, variants, left_out)
        found.append(section)
    return found, left_out


def _task(env: str) -> tuple[str, str]:
    """The name with its options in one order, and those that keep it apart from others."""
    path, _, query = env.partition("?")
    given = sorted(filter(None, query.split("&")))
    apart = [option for option in given if option.partition("=")[0] not in LEVELS]
    return "?".join(filter(None, (path, "&".join(given)))), "&".join(apart)


def _protocol(config: dict[str, Any]) -> Protocol:
    evaluation = config["evaluation"]
    return Protocol(
        int(config["training"]["steps"]), int(evaluation["every_steps"]), int(evaluation["steps"])
    )


class _Said:
    """What is said of an agent's settings: those that differ on any one task, so that it is called
    the same on all of them. Settings that differ only between tasks are as the tasks need them, and
    so are those of a task that has one of an agent, unless they are among those told apart
    elsewhere."""

    def __init__(self, tasks: Iterable[list[Record]]):
        self._differ: dict[str, set[str]] = {}
        by_task = [self._by_agent(records) for records in tasks]
        for agents in by_task:
            for agent, mine in agents.items():
                every = set().union(*mine)
                differ = {n for n in every if len({str(one.get(n)) for one in mine}) > 1}
                self._differ.setdefault(agent, set()).update(differ)
        self._apart: dict[str, set[str]] = {}
        for agents in by_task:
            for agent, mine in agents.items():
                found = {self._words(agent, one) for one in mine}
                self._apart.setdefault(agent, set()).update(found if len(found) > 1 else ())

    @staticmethod
    def _by_agent(records: list[Record]) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for record in records:
            found.setdefault(record.agent, []).append(_flat(record.config))
        return found

    def _words(self, agent: str, settings: dict[str, Any]) -> str:
        return ", ".join(f"{n}={settings.get(n, 'unset')}" for n in sorted(self._differ[agent]))

    def __call__(self, record: Record) -> str:
        told = self._words(record.agent, _flat(record.config))
        return told if told in self._apart[record.agent] else ""


def _groups(
    records: list[Record], settings: _Said, variants: dict[str, list[str]], left_out: list[LeftOut]
) -> dict[str, Group]:
    """Runs of one task by agent, and by what is `said` of its settings. `variants` of an agent seen
    so far: each is drawn alike on all tasks."""
    groups: dict[str, Group] = {}
    for record in sorted(records, key=lambda record: record.agent):
        agent, said = record.agent, settings(record)
        seen = variants.setdefault(agent, [])
        if said not in seen:
            seen.append(said)
        label = words.name(f"{agent} ({said})", _LONGEST) if said else agent
        drawn = look(agent, seen.index(said))
        _join(groups.setdefault(label, Group(label, agent, drawn)), record, left_out)
    return groups


def _join(group: Group, record: Record, left_out: list[LeftOut]) -> None:
    """A seed counts once: of a run that repeats some, the others."""
    here = {seed.seed: seed.run for seed in group.seeds}
    again = [seed.seed for seed in record.seeds if seed.seed in here]
    if again:
        why, in_part = _repeats(again, here, len(record.seeds)), len(again) < len(record.seeds)
        left_out.append(LeftOut(record.path, why, in_part))
        record = record.without(again)
    if record.seeds:
        group.seeds += record.seeds
        group.records.append(record)


def _repeats(again: list[int], here: dict[int, Path], of: int) -> str:
    """Why a run, or some of its seeds, are left out."""
    runs = ", ".join(sorted({words.name(here[seed].name) for seed in again}))
    if len(again) == 1:
        told = f"it repeats seed {again[0]} of {runs}, which counts once"
    else:
        shown = ", ".join(map(str, again[:_SEEDS_NAMED])) + ", …" * (len(again) > _SEEDS_NAMED)
        told = f"it repeats seeds {shown} of {runs}, which count once"
    return f"{told}." if len(again) == of else f"{told}; its other seeds count too."


def _flat(config: dict[str, Any], where: str = "") -> dict[str, Any]:
    """Settings by dotted name, without those that decide nothing of what is compared."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if (where, key) in _OWN:
            continue
        name = f"{where}.{key}" if where else key
        flat |= _flat(value, name) if isinstance(value, dict) else {name: value}
    return flat
