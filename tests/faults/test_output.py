"""Output that cannot be written, or not all of it: a sentence, a status, and no run is lost."""

import os
import subprocess
import sys

import pytest

from idrl.cli.app import main
from idrl.system.printing import Printer

TRAIN = [
    "train", "dqn", "deep_sea/4", "--steps", "300", "--out", "run", "--set", "trunk.hidden=8",
    "heads.q.hidden=8", "learning.learning_starts_steps=20", "learning.replay_capacity=200",
    "evaluation.every_steps=100", "evaluation.steps=20",
]  # fmt: skip


def idrl(*arguments, folder, shell="", **env):
    """The command in a process of its own, its output handed to `shell`."""
    line = [sys.executable, "-m", "idrl.cli", *arguments]
    return subprocess.run(
        ["bash", "-c", f'"$@" {shell}; echo "${{PIPESTATUS[0]}}" > status', "bash", *line],
        cwd=folder, env=os.environ | env, capture_output=True, text=True, encoding="latin-1",
        timeout=300,
    )  # fmt: skip


def status(folder) -> int:
    return int((folder / "status").read_text())


def test_a_full_disk_behind_the_output(tmp_path, tally):
    for words in (["list"], ["--help"], ["paper", "--games"]):
        done = idrl(*words, folder=tmp_path, shell="> /dev/full")
        assert status(tmp_path) == 1
        assert done.stderr.startswith("idrl: the output could not be written: ")
        assert done.stderr.count("\n") == 1
    tally("output: full", 3, 3)


def test_a_reader_that_left(tmp_path, tally):
    for words in (["list"], ["paper", "--games"]):
        done = idrl(*words, folder=tmp_path, shell="| true")
        assert (status(tmp_path), done.stderr) == (141, "")
    tally("output: closed", 2, 2)


@pytest.mark.parametrize("shell", ["> /dev/full", "| head -1", ">&-"])
def test_a_run_goes_on_without_its_output(tmp_path, shell, tally):
    done = idrl(*TRAIN, folder=tmp_path, shell=shell)
    wanted = {"> /dev/full": 1, "| head -1": 141, ">&-": 0}[shell]
    assert status(tmp_path) == wanted, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == (wanted != 0)
    assert (tmp_path / "run" / "curve.png").exists()
    tally("output: a run goes on", 1, 1)


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_other_encodings(tmp_path, encoding, tally):
    done = idrl("list", "rules", folder=tmp_path, PYTHONIOENCODING=encoding)
    assert (status(tmp_path), done.stderr) == (0, "")
    assert "?" not in done.stdout
    tally("output: other encodings", 1, 1)


def test_a_run_told_in_ascii(tmp_path, tally):
    spread = ["dqn-ids" if word == "dqn" else word for word in TRAIN]  # dqn has no σ to tell of
    done = idrl(*spread, folder=tmp_path, PYTHONIOENCODING="ascii")
    assert (status(tmp_path), done.stderr) == (0, "")
    assert "sigma" in done.stdout
    assert done.stdout.isascii()
    tally("output: other encodings", 1, 1)


def test_a_terminal_gets_no_orders(capsys):
    """Neither in what is refused nor in what is shown."""
    assert main(["train", "\x1b[2J\x1b]0;title\x07"]) == 2
    assert main(["evaluate", "a\nb\r[/red]"]) == 2
    Printer().print("\x1b[31m[/red]\x9b\u202e")
    told = capsys.readouterr()
    assert all(c.isprintable() or c == "\n" for c in told.out + told.err)
    assert told.err.count("\n") == 2
    assert r"\x1b[31m[/red]\x9b\u202e" in told.out


def test_a_sentence_has_an_end(capsys):
    assert main(["train", "x" * 500_000]) == 2
    assert len(capsys.readouterr().err) < 3_000
