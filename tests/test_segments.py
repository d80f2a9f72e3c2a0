"""Frames in files that are written once: what is read is what was told, or it is refused."""

import threading

import numpy as np
import pytest
import zstandard

from idrl.storage import segments
from idrl.storage.segments import Segment, Segments

SHAPE = (3, 4, 5)  # three environments
ROW = 3 * 4 * 5


def frames(count, first=0):
    return [
        np.random.default_rng(t).integers(0, 256, SHAPE, np.uint8)
        for t in range(first, first + count)
    ]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(segments, "PIECE_BYTES", 10 * ROW)


@pytest.fixture
def tape(tmp_path):
    tape = Segments(tmp_path / "replay")
    yield tape
    tape.close()


def tell(tape, rows, first=0):
    for t, row in enumerate(rows, first):
        tape.append(t, row)


def whole(tape, named):
    return np.concatenate([segments.read(tape.folder, s, SHAPE, np.uint8) for s in named])


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def files(named):
    return [name for s in named for name in (s.name, s.copy)]


def test_what_is_read_is_what_was_told(tape):
    rows = frames(47)
    tell(tape, rows[:25])
    first = tape.seal(0)
    assert [(s.first, s.end) for s in first] == [(0, 10), (10, 20), (20, 25)]
    before = {p: p.read_bytes() for p in tape.folder.iterdir()}
    tell(tape, rows[20:], 20)  # five of them were told before
    named = tape.seal(12)
    assert [(s.first, s.end) for s in named] == [(10, 20), (20, 25), (25, 35), (35, 45), (45, 47)]
    assert np.array_equal(whole(tape, named), rows[10:])
    assert all(p.read_bytes() == data for p, data in before.items())  # each is written once
    segments.check(tape.folder, named)
    assert segments.parse([list(s) for s in named]) == named
    assert tape.seal(12) == named


def test_a_resumed_tape_goes_on_behind_what_its_checkpoint_named(tape):
    tell(tape, frames(15))
    named = tape.seal(0)
    tell(tape, frames(12, 15), 15)  # as of a process that is killed now
    again = Segments(tape.folder, named, 15)
    tell(again, frames(9, 15), 15)
    assert [(s.first, s.end) for s in again.seal(0)] == [(0, 10), (10, 15), (15, 24)]
    assert np.array_equal(whole(again, again.known), frames(24))
    again.close()
    with pytest.raises(AssertionError):
        again.append(30, frames(1)[0])


def test_only_what_is_named_stays(tape):
    tell(tape, frames(30))
    named = tape.seal(15)
    (tape.folder / ".rows-1-2.zst.draft").write_bytes(b"half")
    (tape.folder / "notes.txt").write_text("somebody's own")
    segments.prune(tape.folder, named)
    assert names(tape.folder) == sorted(["notes.txt", *files(named)])
    segments.prune(tape.folder / "nowhere", [])


def damages(data):
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    return (None, b"", data[:-1], data + b"\0", bytes(flipped))


def put(file, data):
    file.unlink(missing_ok=True) if data is None else file.write_bytes(data)


def test_every_byte_counts(tape):
    tell(tape, frames(20))
    named = tape.seal(0)
    file, copy = tape.folder / named[1].name, tape.folder / named[1].copy
    copy.unlink()
    for damage in damages(file.read_bytes()):
        put(file, damage)
        why = "is missing" if damage is None else "does not match its checksum"
        with pytest.raises(ValueError, match=f"replay/{file.name} {why} and has no intact copy"):
            segments.check(tape.folder, named)


def test_any_one_damaged_file_is_rebuilt(tape):
    tell(tape, frames(30))
    named = tape.seal(0)
    whole = {p: p.read_bytes() for p in tape.folder.iterdir()}
    assert names(tape.folder) == sorted(files(named))
    for file, data in whole.items():
        for damage in damages(data):
            put(file, damage)
            segments.check(tape.folder, named)
            why = "is missing" if damage is None else "does not match its checksum"
            assert segments.repair(tape.folder, named) == f"replay/{file.name} {why}"
            assert {p: p.read_bytes() for p in tape.folder.iterdir()} == whole
    assert segments.repair(tape.folder, named) == ""
    for segment in named:  # one of each pair
        put(tape.folder / segment.copy, b"")
    assert segments.repair(tape.folder, named).count("does not match") == 3


def test_folders_of_before_there_were_copies_get_them(tape):
    tell(tape, frames(20))
    named = tape.seal(0)
    for segment in named:
        (tape.folder / segment.copy).unlink()
    segments.check(tape.folder, named)
    assert segments.repair(tape.folder, named) == ""
    assert names(tape.folder) == sorted(files(named))


def test_a_file_that_unpacks_to_more_is_refused_before_it_is(tape):
    tell(tape, frames(10))
    (segment,) = tape.seal(0)
    path = tape.folder / segment.name
    for forged in (b"", b"no zstd", zstandard.compress(bytes(2**20))):
        path.write_bytes(forged)
        with pytest.raises(ValueError, match=r"does not hold 10 rows of \(3, 4, 5\)"):
            segments.read(tape.folder, segment, SHAPE, np.uint8)
    with pytest.raises(ValueError, match="does not hold"):
        segments.read(tape.folder, segment._replace(end=2**60), SHAPE, np.uint8)


@pytest.mark.parametrize(
    "said",
    [None, {}, [1], [[0, 1, 2]], [[0, "1", 2, ""]], [[0, 1, 2, None]], [[3, 3, 2, ""]],
     [[-1, 3, 2, ""]], [[0, True, 1, ""]], [[0, 2**64, 1, ""]],
     [[0, 3, 2, ""], [4, 5, 2, ""]], [[0, 3, 2, ""], [0, 3, 2, ""]]],
)  # fmt: skip
def test_a_manifest_may_say_anything(said):
    with pytest.raises(ValueError, match="segments that cannot be"):
        segments.parse(said)
    assert Segment(1, 9, 0, "").name == "rows-000000000001-000000000008.zst"


def test_what_the_disk_refuses_is_told_to_who_appends(tape, monkeypatch):
    def full(path, data):
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(segments.Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        tell(tape, frames(200))
    with pytest.raises(OSError, match="No space left"):
        tape.seal(0)
    assert names(tape.folder) == []


def test_who_appends_waits_for_a_slow_disk(tape, monkeypatch):
    go, write, told = threading.Event(), segments._write, []

    def slow(*args):
        go.wait()
        return write(*args)

    monkeypatch.setattr(segments, "_write", slow)

    def teller():
        for t, row in enumerate(frames(100)):
            tape.append(t, row)
            told.append(t)

    thread = threading.Thread(target=teller)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    assert len(told) < 10 * (1 + segments._WAITING + 1)
    go.set()
    thread.join()
    assert np.array_equal(whole(tape, tape.seal(0)), frames(100))
