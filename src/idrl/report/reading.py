"""Run folders as a report needs them: finished and whole, or named with the reason they are not."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from idrl.errors import IdrlError
from idrl.storage import files
from idrl.storage.folder import RunFolder
from idrl.storage.records import numbers, read_distributions, read_table
from idrl.system import words

BANDS = ("p0", "p5", "p25", "p50", "p75", "p95", "p100")


class Seed(NamedTuple):
    """The evaluations of one seed."""

    run: Path
    seed: int
    steps: np.ndarray
    returns: np.ndarray  # NaN where no episode was completed

    @property
    def best(self) -> float:
        """The best-agent protocol: the highest evaluation."""
        return float(np.nanmax(self.returns))

    def at(self, steps: np.ndarray) -> np.ndarray:
        """Its returns at these steps, NaN where it was not evaluated."""
        place = np.minimum(np.searchsorted(self.steps, steps), len(self.steps) - 1)
        return np.where(self.steps[place] == steps, self.returns[place], np.nan)


class Record(NamedTuple):
    """What a finished run leaves."""

    path: Path
    config: dict[str, Any]
    seeds: list[Seed]
    distributions: list[dict[str, str]]  # empty where none were recorded
    unit: tuple[str, int] = ("steps", 1)  # what it is counted in, and how many are a step
    frozen: dict[int, int] = {}  # seeds whose numbers stopped being finite, and at which step

    @property
    def agent(self) -> str:
        """As it can be shown, as is `env`: both are names out of a file."""
        return words.name(self.config["agent"])

    @property
    def env(self) -> str:
        return words.name(self.config["env"])

    def without(self, seeds: Sequence[int]) -> Record:
        """As if it had not trained these seeds."""
        return self._replace(
            seeds=[seed for seed in self.seeds if seed.seed not in seeds],
            distributions=[row for row in self.distributions if int(row["seed"]) not in seeds],
            frozen={seed: step for seed, step in self.frozen.items() if seed not in seeds},
        )


class LeftOut(NamedTuple):
    path: Path
    why: str
    in_part: bool = False  # some of its seeds count

    @property
    def shown(self) -> tuple[str, str]:
        """Both, as anybody may be shown them."""
        return shown_path(self.path), words.sentence(self.why)


def shown_path(path: Path) -> str:
    return words.name(path, 1_000)


def frozen_seeds(records: Sequence[Record]) -> list[str]:
    """A remark on the frozen seeds among those of `records`, if there are any."""
    told = [
        f"seed {number} of {record.agent} on {record.env} ({shown_path(record.path)}) at step "
        f"{step:,}"
        for record in records
        for number, step in sorted(record.frozen.items())
    ]
    if not told:
        return []
    return [
        "Frozen, because their numbers stopped being finite, and scored by their evaluations until "
        f"then; curves beyond are of the other seeds: {'; '.join(told)}."
    ]


def read_runs(paths: Sequence[str | Path]) -> tuple[list[Record], list[LeftOut]]:
    """Every run in `paths`, which are run folders or folders of them."""
    records, left_out = [], []
    for path in find_runs(paths):
        try:
            records.append(read_run(path))
        except IdrlError as error:
            left_out.append(LeftOut(path, str(error)))
    if not records:
        first = left_out[0]
        many = f"none of the {len(left_out)} runs" if len(left_out) > 1 else "the run"
        cannot = (
            "can be reported, the first because" if len(left_out) > 1 else "cannot be reported:"
        )
        raise IdrlError(f"{many} {cannot} {first.path.name}: {first.why}")
    return records, left_out


def find_runs(paths: Sequence[str | Path]) -> list[Path]:
    if not paths:
        raise IdrlError("no runs are named; name run folders, or a folder of them.")
    found: dict[Path, Path] = {}  # by what they really are: named twice, counted once
    for path in map(Path, paths):
        if not path.is_dir():
            raise IdrlError(
                f"there is no folder {str(path)!r}; name run folders, or a folder of them."
            )
        inside = [path] if (path / "run.json").exists() or (path / "config.toml").exists() else []
        inside = inside or _runs_in(path)
        if not inside:
            raise IdrlError(f"{str(path)!r} holds no run folders.")
        found |= {run.resolve(): run for run in inside}
    return list(found.values())


def _runs_in(folder: Path) -> list[Path]:
    """Of a linked folder it may be that one, or those in it: further in, links may lead in circles
    or to the whole disk. One that leads back up is not followed."""
    real = folder.resolve()
    own: list[Path] = []
    linked: list[Path] = []
    for place, folders, names in os.walk(folder):
        if "run.json" in names:
            own.append(Path(place))
        for link in (Path(place, name) for name in folders):
            if link.is_symlink() and not real.is_relative_to(link.resolve()):
                linked += [*link.glob("run.json"), *link.glob("*/run.json")]
    # The last name of a run is the one that is kept: its own, not a link's.
    return [*sorted(file.parent for file in linked), *sorted(own)]


def read_run(path: Path) -> Record:
    """Refuses a run that is unfinished or damaged, with the reason."""
    folder = RunFolder.open(path)
    config, about = folder.read_config(), folder.read_about()
    first, count, wanted = _shape(config)
    rows = read_table(path / "evaluations.csv", ("seed", "steps"), ("return_mean",))
    if not rows:
        raise IdrlError("it has no evaluations yet.")
    stopped = read_table(path / "frozen.csv", ("seed", "steps"))
    frozen = {int(row["seed"]): int(row["steps"]) for row in stopped}
    if count > len(rows) + len(frozen):
        raise IdrlError(f"it is unfinished: {len(rows)} evaluations of {count} seeds.")
    by_seed = defaultdict(list)
    for row in rows:
        by_seed[int(row["seed"])].append(row)
    seeds = [_seed(path, seed, by_seed[seed]) for seed in range(first, first + count)]
    going = [seed for seed in seeds if seed.seed not in frozen] or seeds  # to the end
    done = min(int(seed.steps[-1]) if seed.steps.size else 0 for seed in going)
    if done < wanted:
        raise IdrlError(f"it is unfinished: {done:,} of {wanted:,} steps evaluated.")
    for seed in seeds:
        if not np.isfinite(seed.returns).any():
            before = f" before it froze at step {frozen[n]:,}" if (n := seed.seed) in frozen else ""
            raise IdrlError(f"no evaluation of seed {seed.seed} completed an episode{before}.")
    unit = (about.get("unit", "steps"), about.get("unit_per_step", 1))
    return Record(path, config, seeds, read_distributions(path), unit, frozen)


def _shape(config: dict[str, Any]) -> tuple[int, int, int]:
    """First seed, number of seeds, steps; all that grouping relies on is checked to be there."""
    what = "its config.toml is damaged: it"
    whole = {"steps": files.count(2**31), "every_steps": files.count(2**31)}
    wanted: dict[str, dict[str, files.Fits]] = {
        "": {"agent": files.text(2**20), "env": files.text(2**20), "seed": files.count(2**31),
             "seeds": lambda x: files.count()(x) and x > 0},
        "training": {"steps": whole["steps"]}, "evaluation": whole,
    }  # fmt: skip
    for where, entries in wanted.items():
        table = config.get(where) if where else config
        if not isinstance(table, dict) or not set(entries) <= set(table):
            raise IdrlError(f"{what} does not say {', '.join(entries)} of {where or 'the run'}.")
        files.check_entries(table, entries, what)
    return config["seed"], config["seeds"], config["training"]["steps"]


def _seed(path: Path, seed: int, mine: list[dict[str, str]]) -> Seed:
    steps, returns = (np.array(numbers(mine, name)) for name in ("steps", "return_mean"))
    order = np.argsort(steps, kind="stable")
    returns = np.where(np.isfinite(returns), returns, np.nan)
    return Seed(path, seed, steps[order].astype(int), returns[order])
