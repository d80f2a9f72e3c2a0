"""Writes a run's checkpoints, and the frames of its replay where these have a tape of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from idrl.errors import IdrlError, RunFailed
from idrl.runs import checkpoint, segments
from idrl.runs.folder import RunFolder
from idrl.runs.segments import Segment, Segments
from idrl.training.loop import Progress
from idrl.training.program import Program

CHECKPOINT_SECONDS = 300


class Saver:
    """Of a run that goes on from `meta`'s checkpoint, or begins where that is empty."""

    def __init__(self, folder: RunFolder, program: Program, meta: dict[str, Any]):
        self.folder, self.program = folder, program
        self.steps: int | None = None  # of the newest checkpoint
        if meta:
            self.steps = program.cadence.steps_at(meta["iteration"])
        self.tape: Segments | None = None
        if program.taped:
            self._open_tape(meta)

    def _open_tape(self, meta: dict[str, Any]) -> None:
        places = checkpoint.listed(self.folder.checkpoints)
        self.named = {place.name: _named(place) for place in places}
        with disk(self.folder, self.steps):
            self._prune()
        known = segments.parse(meta.get("segments", []))
        start = self.program.span(meta["iteration"])[2] if meta else 0
        self.tape = Segments(self.folder.replay, known, start)
        self.program.tape = self._append

    def _append(self, t: int, row: np.ndarray) -> None:
        assert self.tape is not None
        with disk(self.folder, self.steps):
            self.tape.append(t, row)

    def refill(self, state: Any, iteration: int) -> Any:
        """The state of the checkpoint with the frames that its segments hold."""
        if self.tape is None:
            return state
        oldest, _, told = self.program.span(iteration)
        shape, dtype = self.program.row
        known = self.tape.known
        if not known or known[0].first > oldest or known[-1].end != told:
            raise IdrlError(f"the segments of {str(self.folder.path)!r} are of another config.")
        replay = self.folder.replay
        pieces = ((s.first, segments.read(replay, s, shape, dtype)) for s in known)
        try:
            return self.program.refill(state, iteration, pieces)
        except (ValueError, OSError) as error:
            raise IdrlError(f"{error}, though its checksum fits.") from None

    def is_due(self, progress: Progress, seconds: float) -> bool:
        """A checkpoint with segments is made by the clock and at the end, not at every evaluation:
        a resumed run makes those again, and finds the same best weights."""
        c = self.program.cadence
        at_score = not self.program.taped or progress.iteration >= c.total
        return seconds > CHECKPOINT_SECONDS or (at_score and progress.score is not None)

    def save(self, progress: Progress, meta: dict[str, Any]) -> None:
        with disk(self.folder, self.steps):
            named: list[Segment] = []
            if self.tape is not None:
                named = self.tape.seal(self.program.span(progress.iteration)[0])
                meta = meta | {"segments": named}
            state = self.program.shed(progress.state)
            place = checkpoint.save(self.folder.checkpoints, progress.steps, state, meta)
            if self.tape is not None:
                self.named[place.name] = named
                self._prune()
        self.steps = progress.steps

    def _prune(self) -> None:
        """Only what a checkpoint names stays, all of them: one of them may prove damaged."""
        places = checkpoint.listed(self.folder.checkpoints)
        self.named = {p.name: self.named[p.name] for p in places}
        segments.prune(self.folder.replay, [s for named in self.named.values() for s in named])

    def close(self) -> None:
        self.program.tape = None
        if self.tape is not None:
            self.tape.close()


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
        begin = "it begins again" if steps is None else f"it goes on from step {steps:,}"
        raise RunFailed(
            f"{str(folder.path)!r} could not be written: {error}. Once it can, {begin} with "
            f"idrl train --resume {folder.path}"
        ) from None
