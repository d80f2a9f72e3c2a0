"""Ctrl-C, SIGTERM, SIGHUP at any moment: within ten seconds, a checkpoint, and how to go on."""

import os
import pty
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from driver import LOOPS, SMALL, check_valid, difference

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def check_obeyed(child, number, victim) -> bool:
    """Whether the signal came before the run's end."""
    asked = time.monotonic()
    child.signal(number)
    status = child.wait()
    assert time.monotonic() - asked < 10
    check_valid(victim)
    if status == 0:
        return False
    # before its handlers are there, a process ends as any other
    assert status in (130, -number), child.err
    if status == 130 and "Stopped" in child.out:
        assert f"idrl train --resume {victim.name}" in child.out
    return True


@pytest.mark.parametrize("loop", LOOPS)
def test_signals_at_random_moments(loop, nursery, reference, tmp_path, tally):
    chance, whole, victim = random.Random(f"signals {loop}"), reference(loop), tmp_path / "victim"
    tries = 0
    for number in (*NUMBERS, signal.SIGINT):
        if victim.exists():
            child = nursery.start("train", "--resume", "victim", folder=tmp_path)
        else:
            child = nursery.start(*whole.arguments, "--out", "victim", folder=tmp_path)
        time.sleep(chance.uniform(0.1, 0.9) * whole.seconds)
        tries += check_obeyed(child, number, victim)
    child = nursery.run("train", "--resume", "victim", folder=tmp_path)
    assert child.status == 0, child.err
    tally(f"SIGINT, SIGTERM and SIGHUP, {loop}", tries, tries, *difference(victim, whole.path))


LONG = {  # what is slow, and after how many steps it has surely begun
    "warm-up": ("learning.learning_starts_steps=100000", 100),
    "evaluation": ("evaluation.steps=100000", 300),
}


def wait_for_steps(folder, count) -> None:
    """Of the slow environment: 64 examples, 200 steps of training, then the evaluation."""
    file = folder / "steps"
    while not file.exists() or file.stat().st_size < count:
        time.sleep(0.05)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("what", LONG)
def test_in_the_middle_of_what_takes_minutes(what, number, nursery, tmp_path, tally):
    setting, begun = LONG[what]
    arguments = ["--steps", "200", "--out", "victim", *SMALL, setting]
    child = nursery.start("train", "dqn", "odd-slow", *arguments, folder=tmp_path)
    wait_for_steps(tmp_path, begun)
    assert check_obeyed(child, number, tmp_path / "victim")
    assert "Continue with: idrl train --resume victim" in child.out, child.err
    where = "Stopped at step 2" if what == "evaluation" else "Stopped before its first checkpoint"
    assert where in child.out
    tally(f"signal in a long {what}", 1, 1)


def test_an_evaluation_that_was_cut_short_is_made_anew(nursery, tmp_path, tally):
    """The slow environment computes what the plain one does."""
    arguments = ["--steps", "200", *SMALL, "evaluation.steps=600"]
    child = nursery.run("train", "dqn", "odd-plain", "--out", "plain", *arguments, folder=tmp_path)
    assert child.status == 0, child.err
    child = nursery.start("train", "dqn", "odd-slow", "--out", "slow", *arguments, folder=tmp_path)
    wait_for_steps(tmp_path, 300)
    assert check_obeyed(child, signal.SIGINT, tmp_path / "slow")
    assert "Stopped at step 2" in child.out, child.err
    child = nursery.run("train", "--resume", "slow", folder=tmp_path)
    assert child.status == 0, child.err
    tally("evaluation cut short", 1, 1, *difference(tmp_path / "slow", tmp_path / "plain"))


def test_nohup(nursery, reference, tmp_path, tally):
    whole = reference("compiled-1")
    child = nursery.start(*whole.arguments, "--out", "run", folder=tmp_path, ignore=["SIGHUP"])
    for _ in range(5):
        time.sleep(whole.seconds / 8)
        child.signal(signal.SIGHUP)
    assert child.wait() == 0, child.err
    tally("SIGHUP under nohup", 5, 5, *difference(tmp_path / "run", whole.path))


def test_ctrl_c_while_modules_are_imported(tmp_path, tally):
    """An exception is printed there as ignored, with a traceback, or as another one's cause."""
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from idrl.cli import main; sys.exit(main())"  # as `idrl` does, wherever tests run
    )
    command = [sys.executable, "-c", code, "train", "dqn", "deep_sea/4", "--out", "run"]
    chance, tries, silent = random.Random("imports"), 12, 0
    for _ in range(tries):
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        maps = Path(f"/proc/{process.pid}/maps")
        while process.poll() is None and "_multiarray_umath" not in maps.read_text():
            time.sleep(0.001)  # until it is NumPy's turn, which is among the first
        time.sleep(chance.uniform(0, 0.8))
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert time.monotonic() - asked < 10
        silent += (process.returncode, said) == (130, "")
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
    tally("Ctrl-C while modules are imported", tries, silent)


def test_a_terminal_that_closes(tmp_path, tally):
    """What cannot be shown ends nothing, and the run leaves a checkpoint."""
    arguments = ["dqn", "deep_sea/4", "--steps", "10000000", "--out", str(tmp_path / "run")]
    command = [sys.executable, "-m", "idrl.cli", "train", *arguments, *SMALL]
    number, terminal = pty.fork()
    if number == 0:
        errors = os.open(tmp_path / "err", os.O_WRONLY | os.O_CREAT)
        os.dup2(errors, 2)
        os.execv(sys.executable, command)
    end = time.monotonic() + 120
    while not list((tmp_path / "run").glob("checkpoints/step-*")):
        assert time.monotonic() < end
        if select.select([terminal], [], [], 0.1)[0]:
            os.read(terminal, 10_000)
    os.close(terminal)
    asked = time.monotonic()
    status = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    assert time.monotonic() - asked < 10
    assert status == 130
    assert "Traceback" not in (tmp_path / "err").read_text()
    check_valid(tmp_path / "run")
    tally("terminal that closes", 1, 1)


def test_stopped_and_continued(nursery, tmp_path, tally):
    """For longer than an environment may take: that it was stopped is no fault of its own."""
    arguments = ["--steps", "300", *SMALL, "training.env_timeout_s=1"]
    child = nursery.run("train", "dqn", "odd-plain", "--out", "plain", *arguments, folder=tmp_path)
    assert child.status == 0, child.err
    child = nursery.start("train", "dqn", "odd-slow", "--out", "slow", *arguments, folder=tmp_path)
    for steps in (100, 300):
        wait_for_steps(tmp_path, steps)
        child.signal(signal.SIGSTOP)
        time.sleep(3)
        child.signal(signal.SIGCONT)
    assert child.wait() == 0, child.err
    tally("SIGSTOP and SIGCONT", 2, 2, *difference(tmp_path / "slow", tmp_path / "plain"))


def test_the_clock_is_set_back(nursery, reference, tmp_path, tally):
    whole = reference("hosted-2")
    how = {"folder": tmp_path, "clock_back_s": 3600}
    child = nursery.start(*whole.arguments, "--out", "run", **how)
    while not list((tmp_path / "run").glob("checkpoints/step-*")):
        time.sleep(0.01)
    child.signal()
    child.wait()
    child = nursery.run("train", "--resume", "run", **how)
    assert child.status == 0, child.err
    tally("clock set back", 1, 1, *difference(tmp_path / "run", whole.path))
