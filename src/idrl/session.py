"""One training run on the disk: feeds the loop's progress to records, checkpoints and display."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from idrl.agents import Agent
from idrl.config import RunConfig
from idrl.envs import Env, HostEnv
from idrl.errors import IdrlError, RunFailed, TrainingDiverged
from idrl.resuming import damage, find, load_state
from idrl.runs import checkpoint
from idrl.runs.folder import RunFolder
from idrl.runs.records import Sink
from idrl.schema import to_dict
from idrl.stopping import signals
from idrl.training.compiled import Compiled
from idrl.training.health import describe_failure
from idrl.training.hosted import Hosted
from idrl.training.loop import Progress, train
from idrl.training.program import Program, Stopped

CHECKPOINT_SECONDS = 300


class Display(Protocol):
    """What shows a run while it goes."""

    def start(self) -> None: ...

    def update(self, progress: Progress, config: RunConfig) -> None: ...


class Interrupted(Exception):
    """Ctrl-C or SIGTERM; the run is safe and can be resumed."""

    def __init__(self, path: Path, steps: int | None):
        done = "before its first checkpoint" if steps is None else f"at step {steps:,}"
        super().__init__(f"Stopped {done}; nothing is lost.")
        self.path = path


def make_program(config: RunConfig, env: Env | HostEnv, **how: Any) -> Program:
    """`how`: see `Learner`."""
    agent = Agent(config.spec, env.obs_shape, env.num_actions)
    rest = config.training, config.evaluation, config.seeds
    if isinstance(env, HostEnv):
        return Hosted(agent, env, *rest, **how)
    return Compiled(agent, env, *rest, **how)


def run_session(
    folder: RunFolder,
    config: RunConfig,
    env: Env | HostEnv,
    *,
    sinks: list[Sink],
    display: Display | None = None,
    until: Callable[[], bool] | None = None,
    debug_nans: bool = False,
    keep: bool = False,
) -> None:
    """Train from the newest checkpoint, or from the beginning, to the end, or to where `until`
    says so: it is asked whenever new rows are in the records. `keep`: write the config down."""
    folder.lock()
    program = None
    try:
        with signals() as stop:
            with _disk(folder):
                place, meta = _resume_from(folder, config, keep)
            program = make_program(config, env, debug=debug_nans, block=meta.get("block"))
            state = None if place is None else load_state(program, place)
            _train(program, state, meta, folder, config, sinks, display, stop, until)
    finally:
        if program is not None:
            program.close()
        for sink in sinks:
            sink.close()
        folder.unlock()


def _resume_from(folder: RunFolder, config: RunConfig, keep: bool):
    """The checkpoint to go on from, with the records cut back to it. Nothing is deleted before it
    is known that the run can go on."""
    place, meta, damaged = find(folder, config)
    made = 0 if place is None else int(place.name.removeprefix("step-"))
    if keep and made > config.training.steps:
        raise IdrlError(
            f"the run has made {made:,} steps already, more than {config.training.steps:,}."
        )
    if damaged:
        told = damage(folder, damaged)
        if place is None:
            raise IdrlError(
                f"{told}; no checkpoint is intact. A new run with --config {folder.config} "
                "repeats this one."
            )
        checkpoint.set_aside(folder.checkpoints, list(damaged))
        warnings.warn(f"{told}; going on from {place.name}.", stacklevel=2)
    sizes = meta.get("sizes", {})
    for name, table in folder.tables.items():
        table.cut(sizes.get(name, 0))
    if keep:
        folder.write_config(to_dict(config))
    return place, meta


def _train(program, state, meta, folder, config, sinks, display, stop, until) -> None:
    def between() -> None:
        if stop.is_set():
            raise Stopped

    if display is not None:
        display.start()
    recorder = _Recorder(folder, config, sinks, meta.get("episodes", [0] * config.seeds))
    saved = clock = time.monotonic()
    steps = None if state is None else program.cadence.steps_at(meta["iteration"])
    for progress in train(
        program, state, meta.get("iteration", 0), program.seed_keys(config.seed),
        pending=meta.get("pending", False), between=between,
    ):  # fmt: skip
        _check_alive(progress, config)
        now = time.monotonic()
        with _disk(folder, steps):
            recorder.record(progress, now - clock)
        clock = now
        if display is not None:
            display.update(progress, config)
        enough = until is not None and until()
        due = enough or progress.score is not None or now - saved > CHECKPOINT_SECONDS
        if due or stop.is_set():
            meta = {
                "iteration": progress.iteration,
                "pending": progress.pending,
                "block": program.cadence.block,
                "sizes": {name: table.size() for name, table in folder.tables.items()},
                "episodes": recorder.episodes,
                "config": to_dict(config),
            }
            with _disk(folder, steps):
                checkpoint.save(folder.checkpoints, progress.steps, progress.state, meta)
            saved, steps = now, progress.steps
        if stop.is_set() or enough:
            break
    if stop.is_set():
        raise Interrupted(folder.path, steps)


@contextlib.contextmanager
def _disk(folder: RunFolder, steps: int | None = None) -> Iterator[None]:
    """What the disk refuses ends the run with a sentence."""
    try:
        yield
    except OSError as error:
        begin = "it begins again" if steps is None else f"it goes on from step {steps:,}"
        raise RunFailed(
            f"{str(folder.path)!r} could not be written: {error}. Once it can, {begin} with "
            f"idrl train --resume {folder.path}"
        ) from None


class _Recorder:
    """Writes what a block brought; keeps nothing that a checkpoint would not hold."""

    def __init__(self, folder: RunFolder, config: RunConfig, sinks: list[Sink], episodes):
        self.tables, self.config, self.sinks = folder.tables, config, sinks
        self.episodes: list[int] = list(episodes)
        self.alive = np.ones(config.seeds, bool)
        self.seconds = 0.0  # since the last row of timings

    def record(self, progress: Progress, seconds: float) -> None:
        self.alive = progress.alive
        self.tables["frozen"].append(self._frozen_rows(progress))
        self.tables["episodes"].append(self._episode_rows(progress))
        if progress.log:
            self._metrics(progress)
        if progress.score is not None:
            self._evaluations(progress)
        self.seconds += seconds
        if progress.log:
            row = {"steps": progress.steps, "seconds": round(self.seconds, 3)}
            self.tables["timings"].append([row])
            self.seconds = 0.0

    def _episode_rows(self, progress: Progress) -> Iterator[dict[str, Any]]:
        done = progress.episodes
        for i, index in enumerate(done.seed.tolist()):
            if not self.alive[index]:
                continue
            self.episodes[index] += 1
            yield {
                "seed": self.config.seed + index,
                "episode": self.episodes[index],
                "steps": int(done.steps[i]),
                "return": float(done.returns[i]),
                "length": int(done.lengths[i]),
                **{name: float(values[i]) for name, values in done.info.items()},
            }

    def _frozen_rows(self, progress: Progress) -> Iterator[dict[str, Any]]:
        for failure in progress.failures:
            yield {
                "seed": self.config.seed + failure.seed,
                "steps": failure.steps,
                "what": failure.what,
                "operation": failure.operation,
            }

    def _metrics(self, progress: Progress) -> None:
        rows = []
        for index in np.flatnonzero(self.alive).tolist():
            mine = progress.episodes.returns[progress.episodes.seed == index]
            mean = float(mine.mean()) if mine.size else float("nan")
            assert progress.metrics is not None
            values = {name: float(v[index]) for name, v in progress.metrics.items()}
            rows.append(self._row(index, progress.steps, {"episode_return": mean, **values}))
        self.tables["metrics"].append(rows)

    def _evaluations(self, progress: Progress) -> None:
        score, best = progress.score, np.asarray(progress.state.best.score)
        assert score is not None
        rows = []
        for index in np.flatnonzero(self.alive).tolist():
            values = {
                "episodes": int(score.episodes[index]),
                "return_mean": float(score.return_mean[index]),
                "best": float(best[index]),
                "return_std": float(score.return_std[index]),
                "length_mean": float(score.length_mean[index]),
                **{name: float(v[index]) for name, v in score.info.items()},
            }
            rows.append(self._row(index, progress.steps, values, "evaluation/"))
        self.tables["evaluations"].append(rows)

    def _row(self, index: int, steps: int, values: dict[str, Any], tag: str = "train/"):
        seed = self.config.seed + index
        for sink in self.sinks:
            sink.scalars(seed, steps, {tag + name: float(v) for name, v in values.items()})
        return {"seed": seed, "steps": steps, **values}


def _check_alive(progress: Progress, config: RunConfig) -> None:
    """A run ends with its last seed; one of several is frozen, and recorded."""
    if not progress.failures:
        return
    told = " ".join(describe_failure(f, config.seed) for f in progress.failures)
    if progress.alive.any():
        warnings.warn(f"{told} It is frozen there; the other seeds go on.", stacklevel=2)
        return
    raise TrainingDiverged(
        f"{told} No seed is left; the last checkpoint is from before. A smaller optimiser.lr often "
        f"helps{'' if progress.failures[0].operation else '; --debug-nans names the operation'}."
    )
