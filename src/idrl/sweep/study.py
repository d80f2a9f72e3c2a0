"""A study as it is written down: a TOML file, every key of it checked before anything starts."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from idrl.errors import IdrlError, nearest
from idrl.schema import build, flat
from idrl.storage.files import read_toml
from idrl.storage.older import in_todays_words
from idrl.sweep.job import is_name
from idrl.system import words

STOPS = ("none", "median", "asha")
ORDERS = ("longest", "envs")
MOST = 5_000  # combinations of agents, environments and settings
MOST_SEEDS = 1_000_000  # of all combinations together
_LARGEST_END = 1e15  # of a range that is searched; Optuna counts its whole numbers by floats
_MOST_BRACES = 16  # pairs in one name


@dataclass(frozen=True)
class Resources:
    """Of one run; 0 leaves a number to what there is."""

    cpus: int = 0
    gpus: float = -1.0  # a share such as 0.25, or whole ones; -1: as many runs on one as have room
    pack: int = 0  # seeds trained side by side in one run
    memory_gb: float = 0.0  # Ray keeps so much of a node free for a run

    def check(self, where: str) -> None:
        for name in ("cpus", "pack", "memory_gb"):
            if getattr(self, name) < 0:
                raise IdrlError(f"{where}.{name} is {getattr(self, name)}; it must be at least 0.")
        if self.gpus != -1 and (self.gpus < 0 or (self.gpus > 1 and self.gpus % 1)):
            raise IdrlError(
                f"{where}.gpus is {self.gpus:g}; it must be a share up to 1, whole GPUs, 0 for "
                "none, or -1 to leave it open."
            )


@dataclass(frozen=True)
class Search:
    """Optuna's: how many trials, and which may be ended early by their evaluations so far."""

    trials: int = 20
    stop: str = "none"
    seed: int = 0  # of the sampler
    score: str = "best"  # evaluation of a run, or "last"; the mean over its seeds is maximised
    space: dict[str, dict[str, Any]] = field(default_factory=dict)

    def check_space(self) -> None:
        if self.trials < 1:
            raise IdrlError(f"search.trials is {self.trials}; it must be at least 1.")
        for name, value, known in (
            ("stop", self.stop, STOPS), ("score", self.score, ("best", "last")),
        ):  # fmt: skip
            if value not in known:
                raise IdrlError(f"search.{name} is {value!r}; {nearest(value, known)}")
        if not self.space:
            raise IdrlError("search.space is empty; name settings to search, with low and high.")
        for name, axis in self.space.items():
            _check_axis(name, axis)


def _check_axis(name: str, axis: dict[str, Any]) -> None:
    where = f"search.space.{name}"
    for key in axis:
        if key not in ("low", "high", "log", "choices"):
            hint = nearest(key, ("low", "high", "log", "choices"))
            raise IdrlError(f"unknown key {key!r} of {where}; {hint}")
    if "choices" in axis:
        if len(axis) > 1 or not isinstance(axis["choices"], list) or not axis["choices"]:
            raise IdrlError(f"{where} has a list of choices, not empty and nothing else.")
        return
    low, high = axis.get("low"), axis.get("high")
    numbers = all(type(x) in (int, float) for x in (low, high))
    if not numbers or not low < high:  # type: ignore[operator]
        raise IdrlError(f"{where} needs low and high, two numbers with low < high, or choices.")
    for end in ("low", "high"):
        if abs(axis[end]) > _LARGEST_END:
            raise IdrlError(
                f"{where}.{end} is {words.value(axis[end])}; it must be finite, up to 1e15."
            )
    if axis.get("log") and low <= 0:  # type: ignore[operator]
        raise IdrlError(f"{where}.low is {low}; on a logarithmic scale it is positive.")


@dataclass(frozen=True)
class StudyGroup:
    """Every agent on every environment with every variant of the settings, for all seeds."""

    agents: tuple[str, ...]
    envs: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    steps: int | None = None
    frames: int | None = None
    preset: str | None = None
    variants: tuple[dict[str, Any], ...] = ({},)  # flat names of settings, with their values
    fixed: dict[str, Any] = field(default_factory=dict)  # settings that all variants share


@dataclass(frozen=True)
class Study:
    name: str
    groups: tuple[StudyGroup, ...]
    resources: Resources = field(default_factory=Resources)
    search: Search | None = None
    # of its runs: the longest first, so that short ones fill the gaps at the end; or environment
    # by environment, so that a study that is stopped has whole ones
    order: str = "longest"

    def today(self, version: int) -> Study:
        """In the words of this idrl, if they were those of run folders of format `version`."""

        def names(envs: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(in_todays_words({"env": env}, version)["env"] for env in envs)

        groups = (replace(group, envs=names(group.envs)) for group in self.groups)
        return replace(self, groups=tuple(groups))


_GROUP_KEYS = (
    "agents", "envs", "seeds", "seed", "steps", "frames", "preset", "settings", "grid", "variant",
)  # fmt: skip
_KEYS = ("name", "about", "order", "resources", "search", "group", *_GROUP_KEYS)


def built_in() -> dict[str, str]:
    """The studies that come along, with what each says of itself."""
    found = {}
    for file in sorted(resources.files("idrl.sweep").joinpath("studies").iterdir(), key=str):
        name = file.name.removesuffix(".toml")
        found[name] = read_toml(Path(str(file)), named=True).get("about", "")
    return found


def find(name: str) -> tuple[str, dict[str, Any]]:
    """The study called `name`, built in or a file, as its table."""
    path = Path(name)
    if path.suffix != ".toml" and not path.exists():
        known = built_in()
        if name not in known:
            raise IdrlError(
                f"there is no study {name!r}; {nearest(name, known)} A file's name ends in .toml."
            )
        path = Path(str(resources.files("idrl.sweep").joinpath("studies", f"{name}.toml")))
    return path.stem, read_toml(path, f"study {str(path)!r}", named=True)


def parse(data: dict[str, Any], default_name: str = "study") -> Study:
    """Refuses what is no study, with what would be right."""
    _check_keys(data, _KEYS, "the study")
    shared = {key: data[key] for key in _GROUP_KEYS if key in data}
    tables = data.get("group", [{}])
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables) or not tables:
        raise IdrlError("group is written [[group]], with agents, envs, … in each.")
    groups = []
    for table in tables:
        _check_keys(table, _GROUP_KEYS, "a [[group]]")
        both = [given.get("settings", {}) for given in (shared, table)]
        for given in both:
            if not isinstance(given, dict):
                raise IdrlError(f"settings is a table, not {words.value(given)}.")
        settings = flat(both[0]) | flat(both[1])
        groups.append(_group(shared | table | {"settings": settings}))
    name = data.get("name", default_name)
    if not is_name(name):
        raise IdrlError(
            f"name is {words.value(name)}{'' if 'name' in data else ', after the file'}; it names "
            "a folder, by at most 200 letters a to z or A to Z, digits, _ . = and -, and does not "
            "begin with . or -: write name = ... in the study."
        )
    _check_size(groups)
    order = data.get("order", ORDERS[0])
    if order not in ORDERS:
        raise IdrlError(f"order is {words.value(order)}; {nearest(str(order), ORDERS)}")
    study = Study(
        name, tuple(groups), build(Resources, data.get("resources", {}), "resources"),
        _search(data["search"]) if "search" in data else None, order,
    )  # fmt: skip
    if study.search and any(len(g.variants) > 1 for g in study.groups):
        raise IdrlError("a study has a search or a grid, not both: put its settings into one.")
    if study.search and "order" in data:
        raise IdrlError("a search runs its trials as it draws them: omit order.")
    if study.search and study.resources.pack:
        raise IdrlError("a trial of a search is one run of all its seeds: omit pack.")
    return study


def _check_size(groups: list[StudyGroup]) -> None:
    """Refuse more than can be looked at one by one, before it is."""
    sizes = [len(g.agents) * len(g.envs) * len(g.variants) for g in groups]
    if sum(sizes) > MOST:
        raise _too_many(f"{sum(sizes):,} combinations of agents, environments and settings")
    seeds = sum(size * len(g.seeds) for size, g in zip(sizes, groups, strict=True))
    if seeds > MOST_SEEDS:
        raise _too_many(f"{seeds:,} seeds in all, where {MOST_SEEDS:,} are the most", "")


def _too_many(what: str, most: str = f", where {MOST:,} are the most") -> IdrlError:
    return IdrlError(f"the study has {what}{most}: split it.")


def _search(table: Any) -> Search:
    _check_keys(table, [f.name for f in fields(Search)], "search")
    space = table.get("space", {})
    if not isinstance(space, dict):
        raise IdrlError("search.space is a table of settings.")
    search = build(Search, {k: v for k, v in table.items() if k != "space"}, "search")
    axes: dict[str, dict[str, Any]] = {}
    for name, value in flat(space).items():  # explore.lam.low = 0.1 → explore.lam: {low: 0.1}
        setting, _, key = name.rpartition(".")
        axes.setdefault(setting, {})[key] = value
    search = replace(search, space=axes)
    search.check_space()
    return search


def _check_keys(table: Any, known, where: str) -> None:
    if not isinstance(table, dict):
        raise IdrlError(f"{where} is a table, not {table!r}.")
    for key in table:
        if key not in known:
            raise IdrlError(f"unknown key {key!r} of {where}; {nearest(key, known)}")


def _group(table: dict[str, Any]) -> StudyGroup:
    agents, envs = (_words(table, key) for key in ("agents", "envs"))
    counts = {key: _count(table, key) for key in ("steps", "frames")}
    if None not in counts.values():
        raise IdrlError("steps and frames both say how long to train: omit one.")
    preset = table.get("preset")
    if preset is not None and not isinstance(preset, str):
        raise IdrlError(f"preset is {preset!r}; it must be a word such as 'paper'.")
    each = (name for env in envs for name in _spread(env))
    envs = tuple(itertools.islice(each, MOST + 1))
    if len(envs) > MOST:
        raise _too_many(f"more than {MOST:,} environments in its braces", "")
    return StudyGroup(
        agents, envs, _seeds(table), counts["steps"], counts["frames"], preset, _variants(table),
        table["settings"],
    )  # fmt: skip


def spread(text: str) -> list[str]:
    """deep_sea/{10,20} → deep_sea/10, deep_sea/20."""
    return list(_spread(text))


def _spread(text: str) -> Iterator[str]:
    if text.count("{") > _MOST_BRACES or len(text) > 10_000:
        raise IdrlError(
            f"{words.value(text)} has more than {_MOST_BRACES} pairs of braces, or 10,000 letters."
        )
    found = re.search(r"\{([^{}]*)\}", text)
    if not found:
        if "{" in text or "}" in text:
            raise IdrlError(f"{text!r} has an unmatched brace.")
        yield text
        return
    parts = [part.strip() for part in found[1].split(",")]
    if not all(parts):
        raise IdrlError(f"{text!r} has an empty item in its braces.")
    before, after = text[: found.start()], text[found.end() :]
    for part in parts:
        yield from _spread(before + part + after)


def _words(table: dict[str, Any], key: str) -> tuple[str, ...]:
    words = table.get(key)
    words = [words] if isinstance(words, str) else words
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise IdrlError(f"{key} is a list of names; the study has {words!r}.")
    if not words:
        raise IdrlError(f"{key} is empty; name at least one.")
    if not all(map(str.strip, words)):  # it would mean the default of `idrl train`
        raise IdrlError(f"{key} has an empty name; write a name, or omit it.")
    return tuple(words)


def _count(table: dict[str, Any], key: str) -> int | None:
    value = table.get(key)
    if value is not None and (type(value) is not int or value <= 0):
        raise IdrlError(f"{key} is {value!r}; it must be a positive whole number.")
    return value


def _seeds(table: dict[str, Any]) -> tuple[int, ...]:
    """`seeds` is how many, from `seed` on, or a list of them."""
    first, seeds = table.get("seed", 0), table.get("seeds", 1)
    if isinstance(seeds, list):
        if "seed" in table:
            raise IdrlError("seeds is a list, which says the first too: omit seed.")
        found = seeds
    else:
        if type(first) is not int or first < 0:
            raise IdrlError(f"seed is {words.value(first)}; it must be a whole number from 0 on.")
        if type(seeds) is not int or seeds < 1:
            raise IdrlError(
                f"seeds is {seeds!r}; it must be a count, 1 or more, or a list of them."
            )
        if seeds > MOST_SEEDS:
            raise _too_many(f"{words.value(seeds)} seeds, where {MOST_SEEDS:,} are the most", "")
        found = list(range(first, first + seeds))
    if not found:
        raise IdrlError("seeds is empty; name at least one.")
    if not all(type(seed) is int and 0 <= seed < 2**31 for seed in found):
        raise IdrlError(f"seeds is {words.value(found)}; seeds are whole numbers from 0 on.")
    if len(set(found)) < len(found):
        raise IdrlError(f"seeds names one twice: {words.value(found)}.")
    return tuple(sorted(found))


def _variants(table: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Every combination of the grid with every entry of the list."""
    if not isinstance(table.get("grid", {}), dict):
        raise IdrlError("grid is a table of settings, each with a list of values.")
    grid = flat(table.get("grid", {}))
    for name, values in grid.items():
        if not isinstance(values, list):
            raise IdrlError(f"grid.{name} is {values!r}; it must be a list of values.")
        if not values:
            raise IdrlError(f"grid.{name} is empty; give it values, or omit it.")
    listed = table.get("variant", [{}])
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise IdrlError("variant is written [[variant]], with settings in each.")
    if not listed:
        raise IdrlError("variant is empty; give it settings, or omit it.")
    size = len(listed) * math.prod(map(len, grid.values()))
    if size > MOST:
        raise _too_many(f"{words.value(size)} variants of its settings")
    cells = [dict(zip(grid, c, strict=True)) for c in itertools.product(*grid.values())]
    return tuple(cell | flat(entry) for entry in listed for cell in cells)
