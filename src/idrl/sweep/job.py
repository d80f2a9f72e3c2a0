"""One run of a study, and the machines that it must fit on. Workers load this: no JAX in here."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, NamedTuple

from idrl.errors import IdrlError
from idrl.storage.files import Fits, check_entries, count, number, text
from idrl.storage.older import in_todays_words
from idrl.system import words


@dataclass(frozen=True)
class Job:
    """One run folder: what it trains, and what it takes up meanwhile."""

    name: str
    agent: str
    env: str
    seed: int
    seeds: int
    steps: int
    variant: dict[str, Any]
    config: dict[str, Any]
    cpus: int = 1
    gpus: float = 0.0
    memory_gb: float = 0.0
    cost_s: float = 0.0  # roughly: who is longest goes first, and what is left to do

    @classmethod
    def read(cls, data: Any) -> Job:
        """Out of a file, which may say anything: IdrlError where that is no run."""
        what = "jobs.json"
        known = {f.name for f in fields(cls)}
        if not isinstance(data, dict) or not set(data) <= known:
            raise IdrlError(f"{what} holds {words.value(data)}, which is not a run.")
        check_entries(data, _ENTRIES, what)
        missing = [f.name for f in fields(cls) if f.default is MISSING and f.name not in data]
        if missing:
            raise IdrlError(f"{what} does not say {missing[0]} of a run.")
        job, training = cls(**data), data["config"].get("training")
        steps = training.get("steps") if isinstance(training, dict) else None
        for name, said in (("steps", steps), *((n, job.config.get(n)) for n in _TWICE)):
            if said != getattr(job, name):
                ours, theirs = words.value(getattr(job, name)), words.value(said)
                raise IdrlError(
                    f"{what} says {name} = {ours} of {job.name}, and its config {theirs}."
                )
        return job

    def today(self, version: int) -> Job:
        """In the words of this idrl, if they were those of run folders of format `version`."""
        config = in_todays_words(self.config, version)
        return replace(self, config=config, env=config["env"])

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Plugins(NamedTuple):
    """Modules that the runs of a study import, and where another process finds them."""

    names: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    @property
    def options(self) -> list[str]:
        """For the command line of `idrl train`."""
        return [word for name in self.names for word in ("--plugin", name)]

    def environment(self) -> dict[str, str]:
        """Of a process that is to find them."""
        env = dict(os.environ)
        if self.places:
            before = [env["PYTHONPATH"]] if env.get("PYTHONPATH") else []
            env["PYTHONPATH"] = os.pathsep.join([*before, *self.places])
        return env


NONE = Plugins()


def is_name(text: Any) -> bool:
    """Whether it may name a folder within a study's, and files beside it."""
    return isinstance(text, str) and bool(
        re.fullmatch(r"[A-Za-z0-9_=][A-Za-z0-9_.=-]{0,199}", text)
    )


_TWICE = ("agent", "env", "seed", "seeds")  # in a run's config too
_ENTRIES: dict[str, Fits] = {
    "name": is_name, "agent": text(1_000), "env": text(1_000), "seed": count(2**31),
    "seeds": lambda x: count(2**31)(x) and x > 0, "steps": count(2**31),
    "variant": lambda x: isinstance(x, dict), "config": lambda x: isinstance(x, dict),
    "cpus": lambda x: count(2**20)(x) and x > 0,
    **{name: lambda x: number(x) and x >= 0 for name in ("gpus", "memory_gb", "cost_s")},
}  # fmt: skip


class Node(NamedTuple):
    """A machine's resources."""

    cpus: int
    gpus: float = 0.0
    memory: float = 0.0  # bytes; 0 where nobody said


class Capacity(NamedTuple):
    nodes: tuple[Node, ...]
    gpu_memory: float = 0.0  # bytes of one; 0 where it is not known

    @property
    def cpus(self) -> int:
        return sum(node.cpus for node in self.nodes)

    @property
    def gpus(self) -> float:
        return sum(node.gpus for node in self.nodes)

    def check(self, job: Job) -> None:
        """Refuse what no machine has room for, since it would wait for ever."""
        if any(_fits(job, node) for node in self.nodes):
            return
        best = [max((n[i] for n in self.nodes), default=0) for i in range(3)]
        wanted = (job.cpus, job.gpus, job.memory_gb * 1e9)
        scale = ("cores", 1.0), ("GPUs", 1.0), ("GB of memory", 1e-9)
        missing = [
            f"{want * by:g} {what} where the largest machine has {have * by:g}"
            for want, have, (what, by) in zip(wanted, best, scale, strict=True)
            if want > have
        ]
        told = " and ".join(missing) or "a combination of cores and GPUs that no machine has"
        raise IdrlError(f"the run {job.name} asks for {told}; lower [resources] of the study.")


def _fits(job: Job, node: Node) -> bool:
    room = not (job.memory_gb and node.memory) or job.memory_gb * 1e9 <= node.memory
    return job.cpus <= node.cpus and job.gpus <= node.gpus and room


def parts(run: Sequence[int], size: int) -> list[Sequence[int]]:
    """As even as they can be, none longer than `size`."""
    count = -(-len(run) // size)
    edges = [len(run) * i // count for i in range(count + 1)]
    return [run[a:b] for a, b in itertools.pairwise(edges)]


def seeds_named(seeds: Sequence[int]) -> str:
    return f"s{seeds[0]}" if len(seeds) == 1 else f"s{seeds[0]}-{seeds[-1]}"


def lowered(job: Job) -> list[Job]:
    """What runs instead of a run that memory was too small for; nothing where it cannot be less."""
    if job.seeds > 1:
        base = job.name.removesuffix(seeds_named(range(job.seed, job.seed + job.seeds)))
        halves = parts(range(job.seed, job.seed + job.seeds), (job.seeds + 1) // 2)
        return [
            replace(
                job, name=base + seeds_named(part), seed=part[0], seeds=len(part),
                config=job.config | {"seed": part[0], "seeds": len(part)},
                cpus=min(job.cpus, len(part)), cost_s=job.cost_s * len(part) / job.seeds,
            )
            for part in halves
        ]  # fmt: skip
    if 0 < job.gpus < 1:
        return [replace(job, gpus=min(1.0, 2 * job.gpus))]
    return []
