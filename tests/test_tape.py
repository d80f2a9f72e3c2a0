"""Runs whose frames go to segments: what a checkpoint leaves out comes back bit for bit."""

import shutil
import time

import jax
import numpy as np
import pytest
from displays import Dies
from films import Film

import idrl
from idrl.config import resolve
from idrl.errors import RunFailed
from idrl.runs import saving
from idrl.runs.session import make_program
from idrl.storage import checkpoint, segments
from idrl.storage.segments import Segments
from idrl.training.loop import train

SETTINGS = {
    "seeds": 2,
    "heads": {"q": {"hidden": [8]}},
    "learning": {
        "learning_starts_steps": 40, "replay_capacity": 100, "target_every_steps": 50,
        "batch_size": 4, "update_every_steps": 2,
    },
    "training": {"steps": 400, "envs": 2, "log_every_steps": 100},
    "evaluation": {"every_steps": 100, "steps": 30, "envs": 3},
}  # fmt: skip


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(segments, "PIECE_BYTES", 20 * 4 * 64)


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(saving, "CHECKPOINT_SECONDS", 0)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run that was saved after every block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saving, "CHECKPOINT_SECONDS", 0)
        patch.setattr(segments, "PIECE_BYTES", 20 * 4 * 64)
        path = tmp_path_factory.mktemp("whole") / "run"
        return idrl.train("dqn", Film, settings=SETTINGS, out=path).path


@pytest.fixture
def copy(run, tmp_path):
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy"


def named(place):
    return segments.parse(checkpoint.read_meta(place)["segments"])


def check_same(path, whole):
    for name in ("evaluations.csv", "episodes.csv", "metrics.csv"):
        assert (path / name).read_bytes() == (whole / name).read_bytes(), name
    places = [checkpoint.listed(p / "checkpoints")[-1] for p in (path, whole)]
    assert len({(place / checkpoint.ARRAYS).read_bytes() for place in places}) == 1
    ours, theirs = (
        [segments.read(place.parents[1] / "replay", s, (4, 8, 8), np.uint8) for s in named(place)]
        for place in places
    )
    length = 50  # rows of the replay
    assert np.array_equal(np.concatenate(ours)[-length:], np.concatenate(theirs)[-length:])
    kept = [s for place in checkpoint.listed(path / "checkpoints") for s in named(place)]
    assert {name for s in kept for name in (s.name, s.copy)} == {
        p.name for p in (path / "replay").iterdir()
    }


@pytest.mark.slow
def test_what_is_shed_comes_back(tmp_path):
    config = resolve("dqn", "film", changes=[SETTINGS], obs_shape=Film.obs_shape)
    program, fresh = (make_program(config, Film()) for _ in range(2))
    tape = Segments(tmp_path)
    program.frames.tape = tape.append
    for progress in train(program, None, 0, program.seed_keys(0)):
        oldest, written, told = program.frames.span(progress.iteration)
        if 0 < progress.iteration < program.cadence.total:
            continue
        shape, dtype = program.frames.row
        assert (shape, dtype) == ((4, 8, 8), np.uint8)
        known = tape.seal(oldest)
        assert known[-1].end == told
        state = jax.device_get(program.frames.without(progress.state))
        assert state.replay.obs is None
        pieces = ((s.first, segments.read(tmp_path, s, shape, dtype)) for s in known)
        again = fresh.frames.refill(fresh.place(state), progress.iteration, pieces)
        rows = np.arange(oldest, written) % program.replay_rows
        obs = np.asarray(progress.state.replay.obs)
        assert np.array_equal(np.asarray(again.replay.obs)[:, rows], obs[:, rows])
        assert again.replay.obs.sharding == progress.state.replay.obs.sharding
        assert (oldest > 0) == (progress.iteration > 0)  # before and after the ring was full
    tape.close()


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_bits(run, tmp_path, often):
    path = tmp_path / "killed"
    with pytest.raises(MemoryError):
        idrl.train("dqn", Film, settings=SETTINGS, out=path, display=Dies(320))
    (path / "replay" / ".rows-1-2.zst.draft").write_bytes(b"half")
    idrl.train(resume=path, env=Film)
    check_same(path, run)


@pytest.mark.slow
def test_checkpoints_are_made_by_the_clock(run, tmp_path):
    """Not at evaluations: they are few, and what stands in them is the same."""
    path = tmp_path / "run"
    with pytest.raises(MemoryError):
        idrl.train("dqn", Film, settings=SETTINGS, out=path, display=Dies(220))
    assert checkpoint.listed(path / "checkpoints") == []
    idrl.train(resume=path, env=Film)
    # The end, and where a longer run would go on.
    assert [p.name[-3:] for p in checkpoint.listed(path / "checkpoints")] == ["300", "400"]
    check_same(path, run)


def test_a_checkpoint_counts_what_was_there_when_it_was_made(tmp_path, often, monkeypatch):
    """Training goes on, and counts on, while a thread writes it."""
    write = checkpoint.write_arrays

    def slowly(*args):
        time.sleep(0.3)
        return write(*args)

    monkeypatch.setattr(checkpoint, "write_arrays", slowly)
    run = idrl.train("dqn", Film, settings=SETTINGS, out=tmp_path / "run")
    places = checkpoint.listed(run.path / "checkpoints")
    assert len(places) == 2
    for place in places:
        meta = checkpoint.read_meta(place)
        table = (run.path / "episodes.csv").read_bytes()[: meta["sizes"]["episodes"]]
        assert sum(meta["episodes"]) == len(table.splitlines()) - 1 > 0


def flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def test_a_damaged_segment_is_rebuilt_from_its_copy(copy, run, often):
    """Also one that both checkpoints name."""
    oldest = named(checkpoint.listed(copy / "checkpoints")[-1])[0]
    checkpoint.discard(checkpoint.listed(copy / "checkpoints")[-1])
    flip(copy / "replay" / oldest.name)
    says = rf"replay/{oldest.name} does not match its checksum \(in .*rebuilt from the other copy"
    with pytest.warns(UserWarning, match=says):
        idrl.train(resume=copy, env=Film)
    check_same(copy, run)


@pytest.mark.slow
def test_a_segment_without_an_intact_copy_damages_its_checkpoint(copy, run, often):
    before, newest = (set(named(p)) for p in checkpoint.listed(copy / "checkpoints"))
    lost = (newest - before).pop()
    (copy / "replay" / lost.name).unlink()
    flip(copy / "replay" / lost.copy)
    says = f"damaged: replay/{lost.name} is missing and has no intact copy.*going on from step-"
    with pytest.warns(UserWarning, match=says):
        idrl.train(resume=copy, env=Film)
    check_same(copy, run)


def test_without_its_frames_a_run_is_refused_but_its_weights_are_used(copy):
    shutil.rmtree(copy / "replay")
    with pytest.raises(idrl.IdrlError, match=r"is missing.*no checkpoint is intact"):
        idrl.train(resume=copy, env=Film, steps=600)
    score = idrl.evaluate(copy, env=Film, episodes=3)
    assert score.episodes.tolist() == [3, 3]
    assert idrl.load(copy).predict(np.zeros((8, 8, 4), np.uint8)) in range(3)


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_it_goes_on(run, tmp_path, often, monkeypatch):
    path, write = tmp_path / "run", segments._write

    def full(folder, first, rows):
        if first > 60:
            raise OSError(28, "No space left on device")
        return write(folder, first, rows)

    with monkeypatch.context() as patch:
        patch.setattr(segments, "_write", full)
        says = "could not be written.*No space left.*it continues from step"
        with pytest.raises(RunFailed, match=says):
            idrl.train("dqn", Film, settings=SETTINGS, out=path)
    idrl.train(resume=path, env=Film)
    check_same(path, run)
