"""Writes a run's checkpoints, and the frames of its replay where these have a tape of their own."""

from __future__ import annotations

import contextlib
import copy
import shlex
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np

from idrl.errors import IdrlError, RunFailed
from idrl.storage import checkpoint, segments
from idrl.storage.folder import RunFolder
from idrl.storage.segments import Segment, Segments
from idrl.training.loop import Progress
from idrl.training.program import Frames, RunProgram

CHECKPOINT_SECONDS = 300


class Saver:
    """Of a run that goes on from `meta`'s checkpoint, or begins where that is empty.

    With a tape a checkpoint is written by a thread, from a copy in the host's memory: of large
    networks there are hundreds of megabytes a seed, and training is not to wait for the disk.
    """

    def __init__(self, folder: RunFolder, program: RunProgram, meta: dict[str, Any]):
        self.folder, self.program = folder, program
        self.steps: int | None = None  # of the newest checkpoint
        if meta:
            self.steps = program.cadence.steps_at(meta["iteration"])
        self.tape: Segments | None = None
        self.named: dict[str, list[Segment]] = {}  # by the checkpoints that are kept
        self.thread = ThreadPoolExecutor(1)
        self.writing: tuple[Future[Path], int, list[Segment]] | None = None
        if program.frames is not None:
            self._open_tape(program.frames, meta)

    def _open_tape(self, frames: Frames, meta: dict[str, Any]) -> None:
        places = checkpoint.listed(self.folder.checkpoints)
        self.named = {place.name: _named(place) for place in places}
        with disk(self.folder, self.steps):
            self._prune()
        known = segments.parse(meta.get("segments", []))
        start = frames.span(meta["iteration"])[2] if meta else 0
        self.tape = Segments(self.folder.replay, known, start)
        frames.tape = self._append

    def _append(self, t: int, row: np.ndarray) -> None:
        assert self.tape is not None
        with disk(self.folder, self.steps):
            self.tape.append(t, row)

    def refill(self, state: Any, iteration: int) -> Any:
        """The state of the checkpoint with the frames that its segments hold."""
        frames = self.program.frames
        if self.tape is None or frames is None:
            return state
        oldest, _, told = frames.span(iteration)
        shape, dtype = frames.row
        known = self.tape.known
        if not known or known[0].first > oldest or known[-1].end != told:
            raise IdrlError(f"the segments of {str(self.folder.path)!r} are of another config.")
        replay = self.folder.replay
        pieces = ((s.first, segments.read(replay, s, shape, dtype)) for s in known)
        try:
            return frames.refill(state, iteration, pieces)
        except (ValueError, OSError) as error:
            raise IdrlError(f"{error}, though its checksum fits.") from None

    def is_due(self, progress: Progress, seconds: float) -> bool:
        """A checkpoint with segments is made by the clock and at the end, not at every evaluation:
        a resumed run makes those again, and finds the same best weights. One is made before a last
        block that is none of a longer run, which goes on from there."""
        c = self.program.cadence
        at_score = self.program.frames is None or progress.iteration >= c.total
        before_end = c.cut and progress.iteration == c.last
        due = before_end or (at_score and progress.score is not None)
        return due or seconds > CHECKPOINT_SECONDS

    def save(self, progress: Progress, meta: dict[str, Any]) -> None:
        """With a tape it is there when `finish` returns."""
        self.finish()
        place, steps = self.folder.checkpoints, progress.steps
        with disk(self.folder, self.steps):
            frames = self.program.frames
            if self.tape is None or frames is None:
                checkpoint.save(place, steps, progress.state, meta)
                self.steps = steps
                return
            named = self.tape.seal(frames.span(progress.iteration)[0])
            self._prune(named)
        # Copies: training uses the arrays of a state up, and counts on.
        state = jax.tree.map(np.array, frames.without(progress.state))
        meta = copy.deepcopy(meta | {"segments": named})
        future = self.thread.submit(checkpoint.save, place, steps, state, meta)
        self.writing = future, steps, named

    def finish(self) -> None:
        """Wait for the checkpoint that is being written."""
        if self.writing is None:
            return
        (future, steps, named), self.writing = self.writing, None
        with disk(self.folder, self.steps):
            self.named[future.result().name] = named
        self.steps = steps

    def _prune(self, fresh: Iterable[Segment] = ()) -> None:
        """Only what a checkpoint names stays, of all that are kept: one may prove damaged."""
        places = checkpoint.listed(self.folder.checkpoints)
        self.named = {p.name: self.named[p.name] for p in places}
        kept = [s for named in self.named.values() for s in named]
        segments.prune(self.folder.replay, [*kept, *fresh])

    def end(self) -> None:
        """All is written, and what nobody names any more is gone."""
        self.finish()
        if self.tape is not None:
            with disk(self.folder, self.steps):
                self._prune()

    def close(self) -> None:
        """Whatever happened: nothing is written after this."""
        if self.program.frames is not None:
            self.program.frames.tape = None
        self.thread.shutdown()
        if self.tape is not None:
            self.tape.close()


def repair_frames(folder: RunFolder, meta: dict[str, Any]) -> str:
    """Rebuild damaged files of the frames that a checkpoint names: which, in words, or nothing."""
    return segments.repair(folder.replay, segments.parse(meta.get("segments", [])))


def _named(place: Path) -> list[Segment]:
    """What a checkpoint names; nothing where it is damaged, since nobody will go on from it."""
    try:
        return segments.parse(checkpoint.read_manifest(place)["meta"].get("segments", []))
    except (ValueError, OSError):
        return []


@contextlib.contextmanager
def disk(folder: RunFolder, steps: int | None = None) -> Iterator[None]:
    """What the disk refuses ends the run with a sentence."""
    try:
        yield
    except OSError as error:
        begin = "it begins again" if steps is None else f"it continues from step {steps:,}"
        raise RunFailed(
            f"{str(folder.path)!r} could not be written: {error}. Once it can, {begin} with "
            f"idrl train --resume {shlex.quote(str(folder.path))}"
        ) from None
