"""Two processes on one folder, and what a dead process leaves in the cache of compiled programs."""

import fcntl
import time

import pytest
from driver import Nursery, difference

import idrl
from idrl.cli import main
from idrl.runs.folder import RunFolder

pytestmark = pytest.mark.faults


def test_the_second_process_is_refused(nursery, reference, tmp_path, tally, capsys):
    whole = reference("compiled-2")
    child = nursery.start(*whole.arguments, "--out", "run", folder=tmp_path)
    lock = tmp_path / "run" / ".lock"
    refused = 0
    for _ in range(2000):
        if lock.exists() and _held(lock):
            refused += main(["train", "--resume", str(tmp_path / "run")]) == 2
            break
        time.sleep(0.005)
    assert "is in use by another process" in capsys.readouterr().err
    assert child.wait() == 0, child.err
    tally("two processes on one run", 1, refused, *difference(tmp_path / "run", whole.path))


def _held(path) -> bool:
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def test_a_lock_goes_with_its_process(tmp_path):
    folder = RunFolder.create(tmp_path / "run", {}, {})
    folder.lock()
    with pytest.raises(idrl.IdrlError, match="in use"):
        RunFolder(tmp_path / "run").lock()
    folder.unlock()
    again = RunFolder(tmp_path / "run")
    again.lock()
    again.unlock()


def test_a_damaged_compilation_cache_is_compiled_anew(reference, tmp_path, tally):
    """A kill may fall into its writing too."""
    whole = reference("compiled-1")
    cache = tmp_path / "xla"
    cache.mkdir()
    nursery = Nursery(cache)
    assert nursery.run(*whole.arguments, "--out", "first", folder=tmp_path).status == 0
    files = [p for p in cache.rglob("*") if p.is_file() and p.stat().st_size]
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    child = nursery.run(*whole.arguments, "--out", "second", folder=tmp_path)
    nursery.close()
    assert child.status == 0, child.err
    tally("damaged compilation cache", 1, 1, *difference(tmp_path / "second", whole.path))
