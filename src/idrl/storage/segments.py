"""Rows of frames in files that are written once: a checkpoint names those it needs.

Rows come one at a time, in order. A thread compresses and writes every full piece while training
goes on; where it cannot keep up, whoever appends waits, so that memory stays bounded. A piece lies
there environment by environment: a frame compresses to little beside the one before it.

Every piece is there twice: older ones are named by all checkpoints that are kept, so a single
damaged file would be the end of the run. Whichever of the two is damaged is rebuilt from the other.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import os
import queue
import shutil
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zstandard

from idrl.storage.files import open_plain, sync

PIECE_BYTES = 64 * 2**20  # of frames before they are compressed
_WAITING = 2  # pieces that may wait for the writer
_LEVEL = 3
_SAID = 3  # damaged files that are named; more are counted
_LARGEST = 2**30  # bytes in a piece, of whatever version wrote it


class Segment(NamedTuple):
    """Rows `first` to `end` - 1, in a file of so many bytes."""

    first: int
    end: int
    bytes: int
    sha256: str

    @property
    def name(self) -> str:
        return f"rows-{self.first:012d}-{self.end - 1:012d}.zst"

    @property
    def copy(self) -> str:
        """The name of the second file with the same bytes."""
        return self.name.replace(".zst", ".copy.zst")


class Segments:
    """What is written while a run goes. `known`: what its checkpoint named, up to row `start`."""

    def __init__(self, folder: Path, known: Iterable[Segment] = (), start: int = 0):
        self.folder, self.next = folder, start
        self.known = list(known)
        self._rows: list[np.ndarray] = []
        self._error: Exception | None = None
        self._queue: queue.Queue[tuple[int, list[np.ndarray]] | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def append(self, t: int, row: np.ndarray) -> None:
        """Row `t`, which nobody writes to again. One that is there already is left out: where a
        block is played again, its frames are the same."""
        self._check()
        if t < self.next:
            return
        assert t == self.next, f"row {t} after {self.next - 1}"
        self._rows.append(row)
        self.next += 1
        if len(self._rows) * row.nbytes >= PIECE_BYTES:
            self._hand_over()

    def seal(self, oldest: int) -> list[Segment]:
        """All rows so far are on the disk: the segments that hold those from `oldest` on."""
        self._hand_over()
        self._queue.join()
        self._check()
        if self.known:
            sync(self.folder)
        self.known = [segment for segment in self.known if segment.end > oldest]
        return list(self.known)

    def close(self) -> None:
        """Without what was not sealed."""
        self._queue.put(None)
        self._thread.join()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _hand_over(self) -> None:
        if self._rows:
            self._queue.put((self.next - len(self._rows), self._rows))
            self._rows = []

    def _work(self) -> None:
        while (piece := self._queue.get()) is not None:
            try:
                if self._error is None:
                    self.known.append(_write(self.folder, *piece))
            except Exception as error:  # raised by the next append, where a run can be ended
                self._error = error
            finally:
                del piece  # or it would be held until the next one comes
                self._queue.task_done()


def _write(folder: Path, first: int, rows: list[np.ndarray]) -> Segment:
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    packed = compressor.compress(np.stack(rows, axis=1).data)
    digest = hashlib.sha256(packed).hexdigest()
    segment = Segment(first, first + len(rows), len(packed), digest)
    folder.mkdir(exist_ok=True)
    for name in (segment.name, segment.copy):
        with _whole(folder / name) as draft:
            draft.write_bytes(packed)
    return segment


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A draft to write to, which is then there in its place, or not at all."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        yield draft
        sync(draft)
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)  # it may be what fills the disk
        raise


def parse(said: Any) -> list[Segment]:
    """Out of a manifest, which may say anything: ValueError where that cannot be."""
    wrong = ValueError("its manifest names segments that cannot be")
    if not isinstance(said, list) or not all(isinstance(s, list) and len(s) == 4 for s in said):
        raise wrong
    segments = [Segment(*s) for s in said]
    for s in segments:
        if not all(type(n) is int and 0 <= n < 2**63 for n in s[:3]) or s.first >= s.end:
            raise wrong
        if not isinstance(s.sha256, str):
            raise wrong
    if any(a.end != b.first for a, b in itertools.pairwise(segments)):
        raise wrong
    return segments


def check(folder: Path, segments: Iterable[Segment]) -> None:
    """Every byte, without unpacking them: ValueError where both files of a segment are wrong."""
    for segment in segments:
        why = _wrong(folder, segment, segment.name)
        if why and _wrong(folder, segment, segment.copy):
            raise ValueError(f"{folder.name}/{segment.name} {why} and has no intact copy")


def _wrong(folder: Path, segment: Segment, name: str) -> str:
    """Why a file is not the segment's; empty where it is."""
    path = folder / name
    if not path.exists():
        return "is missing"
    with open_plain(path) as file:
        same = os.fstat(file.fileno()).st_size == segment.bytes
        same = same and hashlib.file_digest(file, "sha256").hexdigest() == segment.sha256
    return "" if same else "does not match its checksum"


def repair(folder: Path, segments: Iterable[Segment]) -> str:
    """Rebuild what `check` lets pass: in words what was damaged, or nothing. Folders of earlier
    versions have no copies at all, which is not damage: they get them."""
    segments = list(segments)
    single = not any((folder / segment.copy).exists() for segment in segments)
    said = []
    for segment in segments:
        names = (segment.name, segment.copy)
        wrong = {name: why for name in names if (why := _wrong(folder, segment, name))}
        for name, why in wrong.items():
            (intact,) = set(names) - set(wrong)
            with _whole(folder / name) as draft:
                _copy(folder / intact, draft)
            if not (single and name == segment.copy):
                said.append(f"{folder.name}/{name} {why}")
    if segments:
        sync(folder)
    more = [f"and {len(said) - _SAID} more"] if len(said) > _SAID else []
    return ", ".join(said[:_SAID] + more)


def _copy(source: Path, target: Path) -> None:
    with open_plain(source) as intact, target.open("wb") as file:
        shutil.copyfileobj(intact, file)


def read(folder: Path, segment: Segment, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Its rows of `shape` `[N, ...]`, as `[rows, N, ...]`; ValueError where it is not as said."""
    path, count = folder / segment.name, segment.end - segment.first
    row = math.prod(shape) * np.dtype(dtype).itemsize
    wrong = ValueError(f"{folder.name}/{segment.name} does not hold {count} rows of {shape}")
    # Nothing is allocated that the config does not ask for, whatever a file says.
    if count * row > max(_LARGEST, row):
        raise wrong
    try:
        with open_plain(path) as file:
            packed = file.read(2 * count * row + 1024)
        if zstandard.frame_content_size(packed) != count * row:
            raise wrong
        data = zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError:
        raise wrong from None
    return np.frombuffer(data, dtype).reshape(shape[0], count, *shape[1:]).swapaxes(0, 1)


def prune(folder: Path, kept: Iterable[Segment]) -> None:
    """Delete what is not kept: old rows, and what a process that died left behind."""
    names = {name for segment in kept for name in (segment.name, segment.copy)}
    for path in [*folder.glob("rows-*.zst"), *folder.glob(".rows-*.draft")]:
        if path.name not in names:
            path.unlink()
