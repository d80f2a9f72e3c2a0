"""A study on a Ray cluster of two nodes: workers, nodes, the driver and the head are killed, and
every run ends up as in the same study that nothing happened to, packed the same way."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from driver import check_valid, difference

from idrl.sweep.folder import StudyFolder

ray = pytest.importorskip("ray")

STEPS = 12_000
STUDY = f"""
name = "small"
agents = ["dqn", "ddqn"]
envs = ["deep_sea/{{4,5}}"]
seeds = 2
steps = {STEPS}
resources = {{cpus = 1, pack = 2}}
[settings]
trunk.hidden = [8]
heads.q.hidden = [8]
learning.learning_starts_steps = 20
learning.replay_capacity = 500
training.log_every_steps = 500
evaluation.every_steps = 500
evaluation.steps = 40
"""
LONGEST_S = 600


def start(folder, *arguments):
    """A driver in a process of its own."""
    with open(folder / "out", "ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "idrl.cli", "sweep", *arguments],
            cwd=folder, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip


def wait(condition, seconds=LONGEST_S):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    pytest.fail("waited in vain")


def processes_of(folder):
    """Of runs that are going: their numbers by the names of the runs."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode().split("\0") if _number(entry) else []
            places = [Path(w) for w in words if w.startswith(str(folder / "small" / "runs"))]
            if "train" in words and places:
                found[places[0].name] = int(entry.name)
    return found


def _number(path):
    return path.name.isdecimal()


def in_the_middle(folder, driver, count=1):
    """Runs with a checkpoint whose process is going, not at their end, once there are so many."""
    runs = folder / "small" / "runs"

    def begun(name):
        made = sorted(runs.joinpath(name, "checkpoints").glob("step-*"))
        return made and int(made[-1].name.removeprefix("step-")) < STEPS

    def going():
        assert driver.poll() is None, (folder / "out").read_text()
        found = {n: p for n, p in processes_of(folder).items() if begun(n)}
        return found if len(found) >= count else None

    return wait(going)


def parent_of(number):
    return int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    (folder / "small.toml").write_text(STUDY)
    driver = start(folder, "small.toml", "--out", "small", "--engine", "processes")
    assert driver.wait(LONGEST_S) == 0, (folder / "out").read_text()
    return folder / "small"


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield made
    made.shutdown()


def check_same(folder, whole, tally, fault, kills, *, losses=None):
    """All runs are there, as in the undisturbed study; each was begun once and gone on with after
    each loss, and none was run again once it was finished."""
    study = StudyFolder.open(str(folder / "small"))
    outcomes = study.outcomes()
    assert {o.status for o in outcomes.values()} == {"done"}
    assert not any(o.failures for o in outcomes.values())
    if losses is not None:
        lost = sum(o.losses for o in outcomes.values())
        assert lost in losses
        assert sum(o.attempts for o in outcomes.values()) == len(outcomes) + lost
    assert (folder / "small" / "report" / "index.html").exists()
    lost = bits = 0
    for name in outcomes:
        run = folder / "small" / "runs" / name
        check_valid(run)
        found = difference(run, whole / "runs" / name)
        lost, bits = lost + found.lost, bits + found.bits
    tally(fault, kills, kills, lost, bits)


def test_a_worker_and_then_a_node_are_killed(cluster, whole, tmp_path, tally):
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    (tmp_path / "small.toml").write_text(STUDY)
    driver = start(tmp_path, "small.toml", "--out", "small", "--address", cluster.address)
    name, number = next(iter(in_the_middle(tmp_path, driver).items()))
    worker = parent_of(number)
    os.kill(worker, signal.SIGKILL)
    wait(lambda: not Path(f"/proc/{number}").exists(), 20)  # the run went with its worker
    wait(lambda: StudyFolder.open(str(tmp_path / "small")).outcome(name).losses == 1)
    in_the_middle(tmp_path, driver, 2)
    cluster.remove_node(node, allow_graceful=False)
    assert driver.wait(LONGEST_S) == 0, (tmp_path / "out").read_text()
    # It takes a node a moment to die, in which its run may come to its end.
    check_same(tmp_path, whole, tally, "sweep: worker and node killed", 2, losses=(1, 2))


def test_a_worker_is_killed_while_its_run_writes_a_checkpoint(cluster, whole, tmp_path, tally):
    (tmp_path / "small.toml").write_text(STUDY)
    driver = start(tmp_path, "small.toml", "--out", "small", "--address", cluster.address)
    kills = 0
    while kills < 2:
        name, number = next(iter(in_the_middle(tmp_path, driver).items()))
        worker, place = parent_of(number), tmp_path / "small" / "runs" / name / "checkpoints"
        while Path(f"/proc/{number}").exists():
            if any(inside.startswith(".draft-") for inside in os.listdir(place)):
                os.kill(worker, signal.SIGKILL)
                kills += 1
                break
        wait(lambda number=number: not Path(f"/proc/{number}").exists(), 60)
    assert driver.wait(LONGEST_S) == 0, (tmp_path / "out").read_text()
    check_same(tmp_path, whole, tally, "sweep: worker killed in a checkpoint", 2, losses=(2,))


@pytest.mark.parametrize("engine", ["ray", "processes"])
def test_the_driver_is_killed(engine, whole, tmp_path, tally):
    (tmp_path / "small.toml").write_text(STUDY)
    driver = start(tmp_path, "small.toml", "--out", "small", "--engine", engine)
    running = in_the_middle(tmp_path, driver)
    driver.kill()
    driver.wait()
    for number in running.values():
        wait(lambda number=number: not Path(f"/proc/{number}").exists(), 60)
    again = start(tmp_path, "--resume", "small", "--engine", engine)
    assert again.wait(LONGEST_S) == 0, (tmp_path / "out").read_text()
    check_same(tmp_path, whole, tally, f"sweep: driver killed, {engine}", 1)


def test_the_head_is_restarted(whole, tmp_path, tally):
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 2, "include_dashboard": False}
    first = Cluster(initialize_head=True, head_node_args=head)
    (tmp_path / "small.toml").write_text(STUDY)
    driver = start(tmp_path, "small.toml", "--out", "small", "--address", first.address)
    in_the_middle(tmp_path, driver)
    first.remove_node(first.head_node, allow_graceful=False)
    status = driver.wait(LONGEST_S)
    first.shutdown()
    assert status != 0
    done = {n for n, o in _outcomes(tmp_path).items() if o.over}
    second = Cluster(initialize_head=True, head_node_args=head)
    again = start(tmp_path, "--resume", "small", "--address", second.address)
    assert again.wait(LONGEST_S) == 0, (tmp_path / "out").read_text()
    second.shutdown()
    for name in done:
        assert _outcomes(tmp_path)[name].attempts == 1
    check_same(tmp_path, whole, tally, "sweep: head restarted", 1)


def _outcomes(folder):
    return StudyFolder.open(str(folder / "small")).outcomes()


def test_more_than_the_cluster_has_is_refused(cluster, tmp_path):
    text = STUDY.replace("cpus = 1", "cpus = 7")
    (tmp_path / "small.toml").write_text(text)
    driver = start(tmp_path, "small.toml", "--out", "small", "--address", cluster.address)
    assert driver.wait(120) == 2
    told = (tmp_path / "out").read_text()
    assert "asks for 7 cores where the largest machine has 1" in told
    assert not (tmp_path / "small").exists()


def test_an_address_that_is_no_cluster_is_given_up_after_ten_seconds(tmp_path):
    import socket

    (tmp_path / "small.toml").write_text(STUDY)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        start_s = time.monotonic()
        port = deaf.getsockname()[1]
        driver = start(tmp_path, "small.toml", "--address", f"127.0.0.1:{port}")
        assert driver.wait(120) == 2
        assert time.monotonic() - start_s < 90  # ten seconds, and Python's on a busy machine
    told = (tmp_path / "out").read_text()
    assert json.dumps(told).count("within 10 s") == 1
