"""Going on with a run: which checkpoint, and whether it still belongs to the config."""

from __future__ import annotations

from typing import Any

import numpy as np

from idrl.config import RunConfig
from idrl.errors import IdrlError
from idrl.runs import checkpoint, segments
from idrl.runs.files import Fits, check_entries, count, flag, number
from idrl.runs.folder import RunFolder
from idrl.schema import build, flat, merge, to_dict
from idrl.training.health import FINE
from idrl.training.program import Program

# What a run may be resumed with in another way: none of it changes what a step computes.
MAY_CHANGE = ("training.steps", "training.log_every_steps", "training.env_timeout_s")


def changed(old: RunConfig, changes: list[dict[str, Any]]) -> RunConfig:
    """`old` with what may change changed; anything else is refused with the difference."""
    data = to_dict(old)
    for change in changes:
        data = merge(data, change)
    new = build(RunConfig, data)
    check_same(to_dict(old), to_dict(new), "the run has", "not")
    return new


def check_same(old: dict[str, Any], new: dict[str, Any], has: str, wanted: str) -> None:
    """Refuse two configs that differ in more than may change, with what differs."""
    before, after = flat(old), flat(new)
    names = [n for n in {**before, **after} if n not in MAY_CHANGE]
    wrong = [n for n in names if before.get(n) != after.get(n)]
    if wrong:
        shown = "; ".join(
            f"{has} {n} = {before.get(n)!r}, {wanted} {after.get(n)!r}" for n in wrong
        )
        raise IdrlError(f"{shown}. Only {', '.join(MAY_CHANGE)} may change in a resumed run.")


def find(folder: RunFolder, config: RunConfig) -> tuple[Any, dict[str, Any], dict[str, str]]:
    """The newest checkpoint to go on from with its meta, or None, and what was passed over."""

    def check(meta: dict[str, Any]) -> None:
        _check_meta(meta, config)
        for name, size in meta["sizes"].items():
            table = folder.tables.get(name)
            if table is not None and table.length() < size:
                raise ValueError(f"{table.path.name} is shorter than when it was written")
        segments.check(folder.replay, segments.parse(meta.get("segments", [])))

    place, damaged = checkpoint.newest(folder.checkpoints, check)
    if place is None:
        return None, {}, damaged
    meta = checkpoint.read_meta(place)
    if "config" in meta:
        check_same(
            # as this version reads it: settings that are new since have what they had always been
            to_dict(build(RunConfig, meta["config"])), to_dict(config),
            f"{place.name} was made with", "config.toml says",
        )  # fmt: skip
    return place, meta, damaged


def restore_state(program: Program, folder: RunFolder) -> tuple[Any, dict, dict[str, str]]:
    """The newest intact checkpoint's state and meta, or None, and what was passed over."""
    place, damaged = checkpoint.newest(folder.checkpoints)
    if place is None:
        return None, {}, damaged
    return load_state(program, place), checkpoint.read_meta(place), damaged


def check_step(program: Program, place: Any, meta: dict[str, Any]) -> None:
    """Refuse a checkpoint whose count of iterations is not that of its steps."""
    steps = program.cadence.steps_at(meta["iteration"])
    if steps != checkpoint.steps_of(place):
        raise IdrlError(
            f"{place.name} is forged: its {meta['iteration']:,} iterations are {steps:,} steps."
        )


def load_state(program: Program, place: Any) -> Any:
    """Without what the program's tape keeps: who only looks at weights needs none of it."""
    like = program.shed(program.like())
    # Checkpoints from before seeds could be frozen.
    absent = {"failed": np.full(like.failed.shape, FINE, np.int32)}
    return program.place(checkpoint.restore(place, like, absent=absent))


def damage(folder: RunFolder, damaged: dict[str, str]) -> str:
    """A sentence on what was passed over."""
    shown = "; ".join(f"{name} is damaged: {why}" for name, why in damaged.items())
    return f"{shown} (in {folder.checkpoints})"


def _check_meta(meta: dict[str, Any], config: RunConfig) -> None:
    """Types and ranges, since a file of unknown origin may say anything."""

    def by_seed(fits: Fits) -> Fits:
        return lambda x: isinstance(x, list) and len(x) == config.seeds and all(map(fits, x))

    def sizes(x: Any) -> bool:
        return isinstance(x, dict) and all(map(count(), x.values()))

    def any_number(x: Any) -> bool:
        return isinstance(x, float) or number(x)  # of a return that is none, none

    wanted: dict[str, Fits] = {
        # counters are of 32 bits; `cadence` knows better which blocks can be
        "iteration": count(2**31), "block": count(max(config.evaluation.every_steps, 2**16) + 1),
        "sizes": sizes, "episodes": by_seed(count()), "regret": by_seed(any_number),
        "pending": flag, "config": lambda x: isinstance(x, dict),
    }  # fmt: skip
    for name in ("iteration", "sizes", "episodes"):
        if name not in meta:
            raise ValueError(f"{checkpoint.MANIFEST} does not say {name}")
    check_entries(meta, wanted, checkpoint.MANIFEST)
