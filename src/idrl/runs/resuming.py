"""Going on with a run: which checkpoint, and whether it still belongs to the config."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jax import ShapeDtypeStruct

from idrl.config import RunConfig
from idrl.errors import IdrlError
from idrl.schema import build, current_names, flat, merge, to_dict
from idrl.storage import checkpoint, segments
from idrl.storage.files import Fits, check_entries, count, flag, number
from idrl.storage.folder import RunFolder, versions
from idrl.system.devices import sharing
from idrl.training.health import FINE
from idrl.training.program import Judged, RunProgram, playing_view

# What a run may be resumed with in another way: none of it changes what a step computes.
MAY_CHANGE = (
    *(
        f"training.{name}"
        for name in ("steps", "log_every_steps", "env_timeout_s", "env_processes", "keep_weights")
    ),
    "evaluation.beside",
)

# What may be shown of what a file says.
_DEVICE = re.compile(r"[1-9][0-9]{0,5} × [\w .()/+-]{1,60}")
_PLAIN = re.compile(r"[\w .()/+×-]{1,80}")


def changed(old: RunConfig, changes: list[dict[str, Any]]) -> RunConfig:
    """`old` with what may change changed; anything else is refused with the difference."""
    data = to_dict(old)
    for change in changes:
        data = merge(data, current_names(change))
    new = build(RunConfig, data).settled(old.learning.precision)
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


def differences(about: dict[str, Any], device: str, seeds: int) -> str:
    """What a run's folder says it was begun with, and what it goes on with, where they differ: in
    words, or nothing. Another version rounds otherwise, and so do other devices, and seeds that
    are laid over another number of them."""
    then, now = about.get("versions"), versions()
    pairs = [(f"{n} ", then.get(n), now[n]) for n in now] if isinstance(then, dict) else []
    before = about.get("device")
    if isinstance(before, str) and _DEVICE.fullmatch(before):
        counts, kinds = zip(*(text.split(" × ") for text in (before, device)), strict=True)
        used = {sharing(seeds, min(int(count), seeds)) for count in counts}
        if len(used) > 1 or len(set(kinds)) > 1:
            pairs.append(("", before, device))
    return ", ".join(
        f"{name}{old} (now {new})"
        for name, old, new in pairs
        if isinstance(old, str) and _PLAIN.fullmatch(old) and old != new
    )


class Found(NamedTuple):
    """What a run goes on from."""

    place: Path | None  # the newest checkpoint that will do; None begins again
    meta: dict[str, Any]
    damaged: dict[str, str]  # what was passed over, and why
    ended: Path | None = None  # the end of the shorter run, which is no state of the longer one
    differs: str = ""  # why a run of another length will not equal one that had it from the start


def find(folder: RunFolder, config: RunConfig) -> Found:
    """The checkpoint to go on from. A run that is made longer goes on from before its last block
    where that, or the evaluation after it, was of its length alone."""

    def check(meta: dict[str, Any]) -> None:
        _check_meta(meta, config)
        for name, size in meta["sizes"].items():
            table = folder.tables.get(name)
            if table is not None and table.length() < size:
                raise ValueError(f"{table.path.name} is shorter than when it was written")
        segments.check(folder.replay, segments.parse(meta.get("segments", [])))

    place, damaged = checkpoint.newest(folder.checkpoints, check)
    if place is None:
        return Found(None, {}, damaged)
    meta = checkpoint.read_meta(place)
    made_for = _length(folder, place, meta, config)
    if config.training.steps == made_for:
        return Found(place, meta, damaged)
    ended, why = None, []
    if meta.get("cut") and config.training.steps > made_for:
        before, _ = checkpoint.newest(folder.checkpoints, check, place)
        if before is None:
            why.append("the checkpoint from before its last block is damaged or gone")
        else:
            place, meta, ended = before, checkpoint.read_meta(before), place
            _length(folder, place, meta, config)
    if "cut" not in meta:
        why.append("it was begun by an earlier version")
    if config.learning.priority > 0 and config.learning.importance < 1:
        why.append("β of its prioritised replay rises to 1 over the length of a run")
    return Found(place, meta, damaged, ended, " and ".join(why))


def _length(folder: RunFolder, place: Path, meta: dict[str, Any], config: RunConfig) -> int:
    """How many steps the run had when a checkpoint was made, whose config must be this one."""
    if "config" not in meta:  # of the first form
        return config.training.steps
    # as this version reads it: settings that are new since have what they had always been
    old = build(RunConfig, folder.today(meta["config"]))
    check_same(to_dict(old), to_dict(config), f"{place.name} was made with", "config.toml says")
    return old.training.steps


def restore_state(program: RunProgram, folder: RunFolder) -> tuple[Any, dict, dict[str, str]]:
    """The newest intact checkpoint's state, as far as playing needs it, and meta, or None, and what
    was passed over."""
    place, damaged = checkpoint.newest(folder.checkpoints)
    if place is None:
        return None, {}, damaged
    state = program.place(checkpoint.restore(place, playing_view(program.like())))
    return state, checkpoint.read_meta(place), damaged


def check_step(program: RunProgram, place: Any, meta: dict[str, Any]) -> None:
    """Refuse a checkpoint whose count of iterations is not that of its steps."""
    steps = program.cadence.steps_at(meta["iteration"])
    if steps != checkpoint.steps_of(place):
        raise IdrlError(
            f"{place.name} is forged: its {meta['iteration']:,} iterations are {steps:,} steps."
        )


def load_state(program: RunProgram, place: Any) -> Any:
    """To go on from; without what the program's tape keeps."""
    like = program.like()
    if program.frames is not None:
        like = program.frames.without(like)
    stored = checkpoint.shape(place, "replay/facts")
    if program.masked and stored is not None and stored[-1] < like.replay.facts.shape[-1]:
        file = shlex.quote(str(place.parent.parent / "config.toml"))
        raise IdrlError(
            f"{place.name} is of a run whose replay does not say which actions were allowed, as "
            "runs on tasks with action masks have since they learn by them; it can be played and "
            f"evaluated, but not resumed. idrl train --config {file} begins it again."
        )
    if program.beside is not None and checkpoint.shape(place, "judged/iteration") is not None:
        seeds = like.failed.shape
        judged = Judged(ShapeDtypeStruct(seeds, np.int32), ShapeDtypeStruct(seeds, bool), None)
        like = like._replace(judged=judged._replace(params=like.agent.params))
    # Checkpoints from before seeds could be frozen.
    absent = {"failed": np.full(like.failed.shape, FINE, np.int32)}
    state = checkpoint.restore(place, like, absent=absent)
    judged, steps = state.judged, checkpoint.steps_of(place)
    if judged is not None and not _is_possible(judged, steps, program):
        raise IdrlError(f"{place.name} is forged: it judges weights of a step that is to come.")
    return program.place(state)


def _is_possible(judged: Judged, steps: int, program: RunProgram) -> bool:
    iteration = judged.iteration
    same = bool((iteration == iteration[0]).all()) and iteration[0] > 0
    return same and program.cadence.steps_at(int(iteration[0])) <= steps


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

    def returns(x: Any) -> bool:  # their sum, and how many
        return isinstance(x, list) and len(x) == 2 and any_number(x[0]) and count()(x[1])

    wanted: dict[str, Fits] = {
        # counters are of 32 bits; `cadence` knows better which blocks can be
        "iteration": count(2**31), "block": count(max(config.evaluation.every_steps, 2**16) + 1),
        "sizes": sizes, "episodes": by_seed(count()), "regret": by_seed(any_number),
        "returns": by_seed(returns), "pending": flag, "cut": flag,
        "config": lambda x: isinstance(x, dict),
    }  # fmt: skip
    for name in ("iteration", "sizes", "episodes"):
        if name not in meta:
            raise ValueError(f"{checkpoint.MANIFEST} does not say {name}")
    check_entries(meta, wanted, checkpoint.MANIFEST)
