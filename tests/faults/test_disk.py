"""A disk that is full or read-only: a sentence, a clean end, and the run goes on when it can."""

import contextlib
import os
import subprocess

import pytest
from driver import check_valid, difference


def check_stopped(child, victim) -> None:
    assert child.status == 1, child.err
    assert child.err.count("\n") == 1, child.err
    assert "could not be written" in child.err
    assert "with idrl train --resume" in child.err
    check_valid(victim)


@pytest.mark.parametrize("loop", ["compiled-2", "hosted-1", "frames-1"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_no_room_for_a_larger_file(loop, share, nursery, reference, tmp_path, tally):
    """RLIMIT_FSIZE: the file that grows the largest hits the limit first, whichever it is."""
    whole, victim = reference(loop), tmp_path / "victim"
    grown = max(p.stat().st_size for p in whole.path.glob("*.csv"))
    arrays = max(p.stat().st_size for p in whole.path.rglob("*.safetensors"))
    size = int(share * arrays) if share < 0.9 else int(share * grown) + 1
    child = nursery.run(
        *whole.arguments, "--out", "victim", folder=tmp_path, largest_file=max(size, 8_000)
    )
    check_stopped(child, victim)
    child = nursery.run("train", "--resume", "victim", folder=tmp_path)
    assert child.status == 0, child.err
    tally("disk full (file size limit)", 1, 1, *difference(victim, whole.path))


@contextlib.contextmanager
def mounted(folder, size):
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True
    )
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("loop", ["compiled-2", "hosted-2"])
def test_a_full_and_a_read_only_file_system(loop, nursery, reference, tmp_path, tally):
    whole, disk = reference(loop), tmp_path / "disk"
    with mounted(disk, "2m"):
        filler = disk / "filler"
        arrays = max(p.stat().st_size for p in whole.path.rglob("*.safetensors"))
        filler.write_bytes(b"\1" * (2 * 2**20 - int(2.5 * arrays) - 2**14))
        victim = disk / "victim"
        child = nursery.run(
            *whole.arguments, "--out", "disk/victim", folder=tmp_path
        )  # two checkpoints fit, a third beside them does not
        check_stopped(child, victim)
        filler.unlink()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        child = nursery.run("train", "--resume", "disk/victim", folder=tmp_path)
        assert child.status == 2
        assert "cannot be written to" in child.err
        assert child.err.count("\n") == 1
        child = nursery.run(*whole.arguments, "--out", "disk/new", folder=tmp_path)
        assert child.status == 2
        assert "cannot be made" in child.err
        subprocess.run(["mount", "-o", f"remount,rw,size={8 * 2**20}", str(disk)], check=True)
        child = nursery.run("train", "--resume", "disk/victim", folder=tmp_path)
        assert child.status == 0, child.err
        tally("disk full, then read-only (tmpfs)", 1, 1, *difference(victim, whole.path))
        assert os.path.ismount(disk)
