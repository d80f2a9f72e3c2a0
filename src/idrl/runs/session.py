"""One training run on the disk: feeds the loop's progress to records, checkpoints and display."""

from __future__ import annotations

import shlex
import time
import warnings
from collections.abc import Callable
from typing import Any, Protocol

from idrl.actions import actions_of
from idrl.agents import make_agent
from idrl.config import RunConfig
from idrl.envs import Env, HostEnv
from idrl.errors import IdrlError, Interrupted, TrainingDiverged
from idrl.runs.callbacks import CallbackFailed, Watchers
from idrl.runs.cautions import Cautions
from idrl.runs.keeping import Keeper, discard_after, evaluated
from idrl.runs.recording import Recorder
from idrl.runs.resuming import Found, check_step, damage, find, load_state
from idrl.runs.saving import Saver, disk, repair_frames
from idrl.schema import to_dict
from idrl.storage import checkpoint
from idrl.storage.folder import RunFolder
from idrl.storage.sinks import Sinks
from idrl.system.devices import keep_memory
from idrl.system.signals import signals
from idrl.training.compiled import Compiled
from idrl.training.doing import RESUMING, Doing
from idrl.training.health import describe_failure
from idrl.training.hosted.program import Hosted
from idrl.training.loop import Progress, train
from idrl.training.program import RunProgram, Stopped
from idrl.training.survey import Survey


class Display(Protocol):
    """What shows a run while it goes. It may also have `busy(doing, config)`, which is told of what
    takes long on the way."""

    def start(self) -> None: ...

    def update(self, progress: Progress, config: RunConfig) -> None: ...


def prepare_memory(config: RunConfig) -> None:
    """Before JAX is first used: the networks whose programs are large on a CPU."""
    if config.trunk.large_programs:
        keep_memory()


def make_program(config: RunConfig, env: Env | HostEnv, **how: Any) -> RunProgram:
    """`how`: see `Learner`."""
    agent = make_agent(config.spec, env.obs_shape, actions_of(env), env.name)
    rest = config.training, config.evaluation, config.seeds
    if isinstance(env, HostEnv):
        return Hosted(agent, env, *rest, **how)
    return Compiled(agent, env, *rest, **how)


def run_session(
    folder: RunFolder,
    config: RunConfig,
    env: Env | HostEnv,
    *,
    sinks: Callable[[], Sinks],
    watchers: Watchers,
    display: Display | None = None,
    until: Callable[[], bool] | None = None,
    debug_nans: bool = False,
    keep: bool = False,
) -> None:
    """Train from the newest checkpoint, or from the beginning, to the end, or to where `until` or
    a callback says so: they are asked whenever new rows are in the records. `sinks` opens the run's
    sinks, once the folder is this process's own; `keep`: write the config down."""
    folder.lock()
    program = told = saver = None
    try:
        with disk(folder):
            told = sinks()
        with signals() as stop:
            with disk(folder):
                found = _resume_from(folder, config, keep)
            place, meta = found.place, found.meta
            program = make_program(config, env, debug=debug_nans, block=meta.get("block"))
            if place is not None:
                check_step(program, place, meta)
            program.ahead(place is None, meta.get("iteration", 0))
            state = None if place is None else load_state(program, place)
            # Not before: by now it is known that the run can go on.
            with disk(folder):
                _cut_back(folder, config, keep, found)
            saver = Saver(folder, program, meta)
            if place is not None:
                state = saver.refill(state, meta["iteration"])
            recorder = Recorder(folder, config, env, Survey(program.agent, env), told, meta)
            _train(
                program,
                state,
                meta,
                saver,
                recorder,
                Keeper(folder, config, evaluated(program, state, meta)),
                folder,
                config,
                watchers,
                display,
                stop,
                until,
            )
    finally:
        if saver is not None:
            saver.close()
        if program is not None:
            program.close()
        if told is not None:
            told.close()
        folder.unlock()


def _resume_from(folder: RunFolder, config: RunConfig, keep: bool) -> Found:
    """The checkpoint to go on from. Nothing is changed yet."""
    found = find(folder, config)
    made = _made(found)
    if keep and made > config.training.steps:
        raise IdrlError(
            f"the run has made {made:,} steps already, more than {config.training.steps:,}."
        )
    if found.damaged and found.place is None:
        raise IdrlError(
            f"{damage(folder, found.damaged)}; no checkpoint is intact. A new run with --config "
            f"{shlex.quote(str(folder.config))} repeats this one."
        )
    return found


def _cut_back(folder: RunFolder, config: RunConfig, keep: bool, found: Found) -> None:
    """The records as they were at the checkpoint."""
    if found.damaged and found.place is not None:
        checkpoint.set_aside(folder.checkpoints, list(found.damaged))
        told = damage(folder, found.damaged)
        warnings.warn(f"{told}; going on from {found.place.name}.", stacklevel=2)
    if rebuilt := repair_frames(folder, found.meta):
        warnings.warn(f"{rebuilt} (in {folder.path}); rebuilt from the other copy.", stacklevel=2)
    if found.differs:
        warnings.warn(
            f"the run will not equal one that has {config.training.steps:,} steps from the "
            f"beginning: {found.differs}.",
            stacklevel=2,
        )
    if keep:  # before the end of the shorter run goes, which only the longer one passes over
        folder.write_config(to_dict(config))
    if found.ended is not None:
        checkpoint.discard(found.ended)
    discard_after(folder, _made(found))
    sizes = found.meta.get("sizes", {})
    for name, table in folder.tables.items():
        table.cut(sizes.get(name, 0))


def _made(found: Found) -> int:
    return 0 if found.place is None else checkpoint.steps_of(found.place)


def _train(
    program, state, meta, saver, recorder, keeper, folder, config, watchers, display, stop, until
) -> None:  # fmt: skip
    show = getattr(display, "busy", None)  # a display of one's own need not have it

    def tell(doing: Doing | None) -> bool:
        if show is not None and doing is not None:
            show(doing, config)
        return stop.is_set()

    def between(doing: Doing | None = None, /) -> None:
        if tell(doing):
            raise Stopped

    def save(progress: Progress) -> None:
        if not progress.alive.any():  # the run goes on from before
            return
        meta = {
            "iteration": progress.iteration,
            "pending": progress.pending,
            "block": program.cadence.block,
            "cut": program.cadence.cut and progress.iteration >= program.cadence.total,
            "sizes": {name: table.size() for name, table in folder.tables.items()},
            "episodes": recorder.episodes,
            "regret": recorder.regret,
            "returns": recorder.returns,
            "config": to_dict(config),
        }
        saver.save(progress, meta)

    watchers.start()
    if display is not None:
        display.start()
    c = program.cadence
    if state is not None and meta["iteration"] < c.total:
        tell(Doing(RESUMING, c.steps_at(meta["iteration"]), c.steps_at(c.total)))
    saved, cautions = time.monotonic(), Cautions(config.explore)
    clock = saved
    for progress in train(
        program, state, meta.get("iteration", 0), program.seed_keys(config.seed),
        pending=meta.get("pending", False), between=between, tell=tell,
    ):  # fmt: skip
        _check_alive(progress, config)
        cautions.check(progress)
        now = time.monotonic()
        with disk(folder, saver.steps):
            episodes = recorder.record(progress, now - clock)
            keeper.keep(progress)
        clock = now
        if display is not None:
            display.update(progress, config)
        # A run whose last seed has failed says so next: nobody may stop it before. One that has all
        # its steps has its last evaluations, too, as where training waits for them.
        ended = progress.iteration >= c.total and progress.pending
        ignored = ended or not progress.alive.any()
        enough = until is not None and until() and not ignored
        due = enough or stop.is_set() or saver.is_due(progress, now - saved)
        if due:
            save(progress)
            saved = time.monotonic()
        failed: CallbackFailed | None = None
        try:
            enough = (not watchers.tell(progress, episodes) and not ignored) or enough
        except CallbackFailed as error:
            failed = error
        if (enough or failed or stop.is_set()) and not due:
            save(progress)
        if failed is not None:
            saver.end()
            kept = "Nothing is saved yet; begin it again"  # where the last seed has failed
            if saver.steps is not None:
                kept = f"The run is saved at step {saver.steps:,}; continue it"
            raise CallbackFailed(
                f"{failed}. {kept} with idrl.train(resume={str(folder.path)!r})."
            ) from failed.__cause__
        if stop.is_set() or enough:
            break
    saver.end()
    if stop.is_set():
        raise Interrupted(folder.path, saver.steps)


def _check_alive(progress: Progress, config: RunConfig) -> None:
    """A run ends with its last seed; one of several is frozen, and recorded."""
    if not progress.failures:
        return
    told = " ".join(describe_failure(f, config.seed) for f in progress.failures)
    if progress.alive.any():
        warnings.warn(f"{told} It is frozen there; the other seeds continue.", stacklevel=2)
        return
    raise TrainingDiverged(
        f"{told} No seed is left; the last checkpoint is from before. A smaller optimiser.lr often "
        f"helps{'' if progress.failures[0].operation else '; --debug-nans names the operation'}."
    )
