"""Scores out of `evaluations.csv`, as a section of a report: statistics, tables and figures are
those that `idrl report` makes of run folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.claim.collecting import read
from idrl.errors import IdrlError
from idrl.report.grouping import Group, Section, sections
from idrl.report.reading import Record, Seed
from idrl.report.style import look
from idrl.sweep.jobs import combinations
from idrl.sweep.study import find, parse

PROTOCOL = ("run_steps", "every_steps", "window_steps")
RANDOM = Path(__file__).with_name("random.csv")
ANCHORED = (
    "normalised: 0 is random play, 1 the mean score of the agent that is best in the game here"
)


def section_of(file: Path) -> Section:
    """What was collected, normalised."""
    records = records_of(read(file))
    if not records:
        raise IdrlError(f"{str(file)!r} has no evaluations; collect a study first.")
    found, _ = sections(records)
    if len(found) > 1:
        told = "; ".join(section.title for section in found)
        raise IdrlError(f"{str(file)!r} has runs that cannot share a table: {told}.")
    (section,) = found
    for groups in section.tasks.values():
        for group in groups.values():
            agent, _, variant = group.agent.partition(" (")
            group.look = look(agent, bool(variant))
    if not section.of_atari:
        anchor(section)
    return section


def records_of(rows: Sequence[dict[str, str]]) -> list[Record]:
    """One record for each agent in each game; of seeds that were not trained or evaluated alike,
    one for each way, which `sections` keeps apart."""
    runs: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        key = (row["env"], row["agent"], *(row[name] for name in PROTOCOL))
        runs.setdefault(key, []).append(row)
    return [_record(*key[:2], mine) for key, mine in runs.items()]


def _record(env: str, agent: str, rows: list[dict[str, str]]) -> Record:
    path = Path(f"{agent}-{env}")
    first, numbers = rows[0], sorted({int(row["seed"]) for row in rows})
    seeds = []
    for number in numbers:
        mine = sorted((int(r["steps"]), r["return_mean"]) for r in rows if int(r["seed"]) == number)
        steps, texts = zip(*mine, strict=True)
        returns = np.array([float(text or "nan") for text in texts])
        seeds.append(Seed(path, number, np.array(steps), returns))
    config = {
        "agent": agent, "env": env, "seed": numbers[0], "seeds": len(numbers),
        "training": {"steps": int(first["run_steps"])},
        "evaluation": {
            "every_steps": int(first["every_steps"]), "steps": int(first["window_steps"]),
        },
    }  # fmt: skip
    per_step = int(first["frames"]) // int(first["steps"])
    return Record(path, config, seeds, [], ("frames", per_step))


def anchor(section: Section) -> None:
    """Random play is 0, the best agent's mean 1. No published table has MinAtar's scores after so
    many frames, and a scale by `dqn` would be ruled by the game in which it learns least."""
    random = {row["env"]: float(row["random"]) for row in read(RANDOM)}
    for task, groups in section.tasks.items():
        zero = random.get(task.partition("?")[0])
        best = max(float(group.scores().mean()) for group in groups.values())
        if zero is None or best <= zero:
            raise IdrlError(f"no agent is above random play in {task}: it cannot be normalised.")
        section.anchors[task] = zero, best
    section.anchored = ANCHORED


def not_run(study: str, section: Section) -> list[str]:
    """What of the study is missing, a line for each game, and one where its runs are shorter."""
    wanted: dict[str, dict[str, int]] = {}
    steps = 0
    for c in combinations(parse(find(study)[1], study)):
        wanted.setdefault(c.config.env, {})[c.config.agent] = len(c.seeds)
        steps = max(steps, c.config.training.steps)
    lines = []
    if section.protocol.steps < steps:
        lines.append(f"all runs: {section.protocol.steps:,} of {steps:,} steps")
    for env, agents in wanted.items():
        there = {group.agent: group for group in section.tasks.get(env, {}).values()}
        missing = []
        for agent, count in agents.items():
            lacks = _lacks(there[agent], count, section.protocol.steps) if agent in there else []
            if lacks or agent not in there:
                missing.append(f"`{agent}`" + (f" ({', '.join(lacks)})" if lacks else ""))
        if missing:
            told = "all agents" if not there else ", ".join(missing)
            lines.append(f"`{env}`: {told}")
    return lines


def _lacks(group: Group, count: int, steps: int) -> list[str]:
    """Seeds that were not run, and those that froze on the way, which count as far as they came."""
    here = len(group.seeds)
    short = [seed for seed in group.seeds if seed.steps[-1] < steps]
    return [
        *([f"{here} of {count} seeds"] if here < count else []),
        *(f"seed {seed.seed} to step {seed.steps[-1]:,}" for seed in short),
    ]
