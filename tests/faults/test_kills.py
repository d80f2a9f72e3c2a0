"""kill -9 at any instant, also while something is written: the finished run is the same."""

import random
import time

import pytest
from driver import AGENTS, LOOPS, check_valid, difference


def start(nursery, victim, reference, **order):
    folder = victim.parent
    if victim.exists():
        return nursery.start("train", "--resume", victim.name, folder=folder, **order)
    return nursery.start(*reference.arguments, "--out", victim.name, folder=folder, **order)


def finish(nursery, victim, reference):
    child = start(nursery, victim, reference)
    assert child.wait() == 0, child.err
    return difference(victim, reference.path)


def check_kills(nursery, folder, whole, tally, fault, kill):
    """`kill` starts or resumes a run and ends it somehow, until that was done five times. A run
    that was quicker is compared as it is, and another one begun."""
    kills, lost, bits, number = 0, 0, 0, 0
    for _ in range(12):
        victim = folder / f"victim-{number}"
        status = kill(victim)
        check_valid(victim)
        kills += status == -9
        if status == 0 or kills == 5:
            more = finish(nursery, victim, whole)
            lost, bits, number = lost + more.lost, bits + more.bits, number + 1
        if kills == 5:
            break
    tally(fault, kills, kills, lost, bits)
    assert kills == 5


@pytest.mark.parametrize("loop", LOOPS)
def test_killed_at_random_moments(loop, nursery, reference, tmp_path, tally):
    chance, whole = random.Random(f"moments {loop}"), reference(loop)
    longest = whole.seconds

    def kill(victim):
        nonlocal longest
        child = start(nursery, victim, whole)
        time.sleep(chance.uniform(0.05, 1.0) * longest)
        child.signal()
        if child.wait() == 0:
            longest *= 0.7  # a resumed run is shorter, and the machine may be idle now
        return child.status

    check_kills(nursery, tmp_path, whole, tally, f"kill -9, {loop}", kill)


@pytest.mark.parametrize("loop", LOOPS)
def test_killed_while_writing(loop, nursery, reference, tmp_path, tally):
    """At the n-th fsync, rename, truncation, deletion, or in the middle of a row or an array."""
    chance, whole = random.Random(f"writes {loop}"), reference(loop)

    def kill(victim):
        die = chance.randrange(1, max(2, whole.writes // 4))
        return start(nursery, victim, whole, die=die).wait()

    check_kills(nursery, tmp_path, whole, tally, f"kill -9 in a write, {loop}", kill)


@pytest.mark.parametrize("loop", [*AGENTS, "atari-2"])
def test_killed_after_a_checkpoint(loop, nursery, reference, tmp_path, tally):
    """Three times, each time after the run got further than the last."""
    chance, whole, victim = random.Random(f"after {loop}"), reference(loop), tmp_path / "victim"
    kills, seen = 0, set()
    for _ in range(3):
        child = start(nursery, victim, whole)
        while not {p.name for p in victim.glob("checkpoints/step-*")} - seen:
            assert time.monotonic() - child.started < 300
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.1))
        child.signal()
        kills += child.wait() == -9
        check_valid(victim)
        seen |= {p.name for p in victim.glob("checkpoints/step-*")}
        if child.status == 0:
            break
    assert kills
    tally(f"kill -9 after a checkpoint, {loop}", kills, kills, *finish(nursery, victim, whole))
