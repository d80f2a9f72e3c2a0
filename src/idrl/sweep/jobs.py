"""What a study runs: its combinations, their configs, and how seeds are packed into runs."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from idrl.config import RunConfig, resolve
from idrl.envs import find, on_host
from idrl.errors import IdrlError
from idrl.schema import nested, to_dict
from idrl.sweep.job import Capacity, Job, parts, seeds_named
from idrl.sweep.study import Resources, Study, StudyGroup
from idrl.sweep.work import memory_of

_LONGEST = 120  # letters of a name; folders may have 255, and files beside them add to theirs
MOST_RUNS = 20_000  # each has a folder, and a driver looks at all of them
_MOST_ON_A_GPU = 4  # nobody has measured more


class Combination(NamedTuple):
    """An agent on an environment with some settings, for all of its seeds."""

    name: str
    config: RunConfig  # of the first seed
    seeds: tuple[int, ...]
    variant: dict[str, Any]
    packable: bool


def combinations(study: Study) -> list[Combination]:
    """Every one with its whole config; what cannot be is refused here, before anything starts."""
    found: list[Combination] = []
    taken: dict[str, set[int]] = {}  # seeds by name
    short = _short({name for group in study.groups for v in group.variants for name in v})
    searched = set(study.search.space) if study.search else set()
    for group in study.groups:
        _check_free(group, searched)
        for agent in group.agents:
            for env in group.envs:
                for variant in group.variants:
                    found.append(_combination(group, agent, env, variant, short, taken))
    return found


def _check_free(group: StudyGroup, searched: set[str]) -> None:
    """Refuse settings that the study's own keys override: its runs would be others than named."""
    settings = searched.union(group.fixed, *group.variants)
    for name in ("seed", "seeds"):
        if name in settings:
            raise IdrlError(
                f"{name} is no setting of a study's runs: write seeds = 4, or a list of seeds, "
                "beside agents and envs."
            )
    length = "steps" if group.steps else "frames"
    if "training.steps" in settings and (group.steps or group.frames):
        raise IdrlError(f"training.steps and {length} both say how long to train: omit one.")


def _short(settings: set[str]) -> dict[str, str]:
    """By setting the end of its name that no other shares: `lam`, but `q.hidden`, `z.hidden`."""

    def ends(name: str) -> list[str]:
        words = name.split(".")
        return [".".join(words[i:]) for i in reversed(range(len(words)))]

    uses = Counter(end for name in settings for end in ends(name))
    return {name: next((end for end in ends(name) if uses[end] == 1), name) for name in settings}


def _combination(group: StudyGroup, agent: str, env: str, variant, short, taken) -> Combination:
    config = configure(group, agent, env, variant)
    family = find(env)
    if family is not None:
        family.check_argument(family.parse(env).argument)
    name = name_of(config, {short[setting]: value for setting, value in variant.items()})
    again = taken.setdefault(name, set()).intersection(group.seeds)
    if again:
        raise IdrlError(
            f"two runs would be called {name} with seed {min(again)}; name each agent, environment "
            "and variant once."
        )
    taken[name].update(group.seeds)
    return Combination(name, config, group.seeds, variant, not on_host(config.env))


def configure(group: StudyGroup, agent: str, env: str, variant: dict[str, Any]) -> RunConfig:
    changes = [nested(group.fixed), nested(variant), {"seed": group.seeds[0]}]
    if group.steps is not None:
        changes.append({"training": {"steps": group.steps}})
    return resolve(agent, env, changes=changes, named=group.preset, frames=group.frames)


def name_of(config: RunConfig, variant: dict[str, Any]) -> str:
    words = [config.agent, config.env]
    for setting, value in variant.items():
        shown = json.dumps(value) if isinstance(value, (list, dict)) else value
        words.append(f"{setting}={shown}")
    whole = "-".join(map(str, words))
    name = re.sub(r"[^A-Za-z0-9_.=-]+", "-", whole).strip("-.")
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
    return name


def pack(
    found: Iterable[Combination], wanted: Resources, capacity: Capacity, *, whole: bool = False
) -> list[Job]:
    """Runs: seeds in a row of the same combination side by side, where it is a JAX environment,
    but in no fewer runs than there are places to run them at once. `whole`: all seeds of a
    combination in one run, whatever it is."""
    found = list(found)
    runs = [(c, run) for c in found for run in _in_a_row(c.seeds)]
    if whole:
        return [_job(c, run, wanted, capacity, len(runs)) for c, run in runs]
    places = capacity.gpus if capacity.gpus and wanted.gpus else capacity.cpus // (wanted.cpus or 1)
    size = wanted.pack or max(len(run) for _, run in runs)
    while not wanted.pack and size > 1 and _count(runs, size) < places:
        size = (size + 1) // 2
    if _count(runs, size) > MOST_RUNS:
        raise IdrlError(
            f"the study would be {_count(runs, size):,} run folders, where {MOST_RUNS:,} are the "
            "most: split it."
        )
    cut = [(c, part) for c, run in runs for part in parts(run, size if c.packable else 1)]
    return [_job(c, part, wanted, capacity, len(cut)) for c, part in cut]


def _count(runs, size: int) -> int:
    return sum(len(parts(run, size if c.packable else 1)) for c, run in runs)


def _in_a_row(seeds: Sequence[int]) -> list[Sequence[int]]:
    cuts = [i for i in range(1, len(seeds)) if seeds[i] != seeds[i - 1] + 1]
    edges = [0, *cuts, len(seeds)]
    return [seeds[a:b] for a, b in itertools.pairwise(edges)]


def _job(c: Combination, seeds, wanted: Resources, capacity: Capacity, jobs: int) -> Job:
    config = to_dict(c.config) | {"seed": seeds[0], "seeds": len(seeds)}
    job = Job(
        f"{c.name}-{seeds_named(seeds)}", c.config.agent, c.config.env, seeds[0], len(seeds),
        c.config.training.steps, c.variant, config, memory_gb=wanted.memory_gb,
    )  # fmt: skip
    gpus = wanted.gpus
    if gpus < 0:
        gpus = _share(memory_of(c.config) * len(seeds), capacity) if capacity.gpus else 0.0
    cpus = wanted.cpus
    if not cpus and gpus:  # the cores of a machine are shared out as its GPUs are
        shares = [int(n.cpus * min(gpus / n.gpus, 1)) for n in capacity.nodes if n.gpus]
        cpus = min(shares, default=1)
    elif not cpus:
        cpus = min(capacity.cpus // jobs, max(n.cpus for n in capacity.nodes))
        cpus = min(cpus, len(seeds)) if c.packable else cpus  # a device has a seed at least
    return replace(job, cpus=max(cpus, 1), gpus=gpus)


def _share(need: float, capacity: Capacity) -> float:
    """Of a GPU: as many runs on one as its memory holds twice over, and no more than a few."""
    runs = int(capacity.gpu_memory / (2 * need)) if capacity.gpu_memory else 1
    return 1.0 / max(min(runs, _MOST_ON_A_GPU), 1)
