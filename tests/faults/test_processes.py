"""Two processes on one folder, and what a dead process leaves in the cache of compiled programs."""

import fcntl
import subprocess
import time

import pytest
from driver import Nursery, difference
from test_damage import contents

import idrl
from idrl.cli.app import main
from idrl.storage.folder import RunFolder
from idrl.sweep.attempt import is_finished


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


@pytest.mark.parametrize("loop", ["compiled-2", "hosted-2", "frames-2"])
def test_a_folder_copied_while_it_runs(loop, nursery, reference, tmp_path, tally):
    """File by file, as `cp -r` does, so no instant of it: both go on to the same end."""
    whole = reference(loop)
    child = nursery.start(*whole.arguments, "--out", "run", folder=tmp_path)
    copies = 0
    while copies < 3:
        time.sleep(whole.seconds / 10)
        if len(list((tmp_path / "run").glob("checkpoints/step-*"))) == 2:
            command = ["cp", "-r", "run", f"copy-{copies}"]  # what goes meanwhile it complains of
            subprocess.run(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
            copies += 1
    assert child.wait() == 0, child.err
    lost, bits = difference(tmp_path / "run", whole.path)
    for number in range(copies):
        child = nursery.run("train", "--resume", f"copy-{number}", folder=tmp_path)
        assert child.status == 0, child.err
        found = difference(tmp_path / f"copy-{number}", whole.path)
        lost, bits = lost + found.lost, bits + found.bits
    tally(f"folder copied while it runs, {loop}", copies, copies, lost, bits)


def test_killed_while_it_draws(nursery, reference, tmp_path, tally):
    """The last moments of a run: it is finished, and going on draws it anew."""
    whole, pictures = reference("iqn-ids"), ("curve.png", "distributions.png", "regret.png")
    for number in range(3):
        run = tmp_path / f"run-{number}"
        die = whole.writes - number
        child = nursery.run(*whole.arguments, "--out", run.name, folder=tmp_path, die=die)
        assert child.status == -9
        assert is_finished(run)
        assert nursery.run("train", "--resume", run.name, folder=tmp_path).status == 0
        for name in pictures:
            assert (run / name).read_bytes() == (whole.path / name).read_bytes()
    tally("kill -9 while drawing", 3, 3, *difference(run, whole.path))


def test_a_report_and_an_evaluation_are_killed(nursery, reference, tmp_path, tally):
    runs = [str(reference(loop).path) for loop in ("compiled-1", "hosted-2")]
    before = [contents(reference(loop).path) for loop in ("compiled-1", "hosted-2")]
    make = ["report", *runs, "-o"]
    child = nursery.run(*make, "whole", folder=tmp_path, log=str(tmp_path / "writes"))
    assert child.status == 0, child.err
    moments = int((tmp_path / "writes").read_text())
    assert moments > 10
    kills = [*range(1, moments + 1, 2)]
    for die in kills:
        assert nursery.run(*make, "report", folder=tmp_path, die=die).status == -9
    child = nursery.run(*make, "report", folder=tmp_path)
    assert child.status == 0, child.err
    ours, theirs = (contents(tmp_path / name) for name in ("report", "whole"))
    assert set(ours) == set(theirs)
    assert all(ours[p] == theirs[p] for p in ours if p.suffix in (".md", ".csv", ".toml", ".png"))
    # so many episodes on the host take minutes on any machine
    for run, wait_s in ((runs[0], 0.1), (runs[1], 0.5), (runs[1], 1.0)):
        child = nursery.start("evaluate", run, "--episodes", "1000000", folder=tmp_path)
        time.sleep(wait_s)
        child.signal()
        assert child.wait() == -9
    assert [contents(reference(loop).path) for loop in ("compiled-1", "hosted-2")] == before
    tally("kill -9 of a report and an evaluation", len(kills) + 3, len(kills) + 3)
