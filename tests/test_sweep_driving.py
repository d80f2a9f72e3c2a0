"""Driving a study over processes: retries, memory, stopping, going on. The stub trains nothing."""

import contextlib
import csv
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from idrl.cli.app import main
from idrl.errors import IdrlError
from idrl.report.reading import find_runs
from idrl.sweep import attempt as attempts
from idrl.sweep.driving import Grid, SweepStopped, drive
from idrl.sweep.engines import Ended
from idrl.sweep.folder import Outcome, StudyFolder, write_outcome
from idrl.sweep.ray_engine import RayEngine
from idrl.sweep.searching import Trials

STUB = [sys.executable, str(Path(__file__).with_name("sweep_stub.py"))]
STUDY = """
agents = ["dqn", "ddqn"]
envs = ["deep_sea/{4,5}"]
seeds = 2
steps = 100
resources.pack = 2
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(attempts, "RUN", STUB)
    monkeypatch.setattr("idrl.report.writing.make_report", pretend_report)
    (tmp_path / "small.toml").write_text(STUDY)
    return tmp_path


def pretend_report(runs, out):
    """The real one takes longer than all else here; it has tests of its own."""
    assert list(find_runs(runs))
    out.mkdir(exist_ok=True)
    (out / "index.html").touch()


def sweep(*arguments):
    return main(["sweep", *arguments, *([] if "--status" in arguments else PROCESSES)])


PROCESSES = ["--engine", "processes"]
RESUME = "idrl sweep --resume"


@contextlib.contextmanager
def stopped_once(*runs):
    """SIGTERM to ourselves as soon as all `runs` are going; none is left over for another test."""
    over = threading.Event()

    def watch():
        while not over.wait(0.05):
            if all((run / "evaluations.csv").exists() for run in runs):
                os.kill(os.getpid(), signal.SIGTERM)
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def tries(folder, name):
    return (folder / "runs" / name / "attempts").read_text().split()


def test_a_study_runs_to_its_end_and_is_never_run_again(here, capsys):
    assert sweep("small.toml") == 0
    told = capsys.readouterr().out
    assert "4 runs done" in told
    folder = here / "runs" / "small"
    assert (folder / "report" / "index.html").exists()
    rows = (folder / "runs.csv").read_text().splitlines()
    assert len(rows) == 1 + 8
    assert {row.split(",")[4] for row in rows[1:]} == {"done"}
    assert sweep("small.toml") == 2  # it is there
    assert "--resume" in capsys.readouterr().err
    assert sweep("--resume", "runs/small") == 0
    assert tries(folder, "dqn-deep_sea-4-s0-1") == ["--config"]
    assert sweep("--status", "runs/small", "--table", "all.csv") == 0
    assert "queued 0   running 0   done 4   failed 0" in capsys.readouterr().out
    assert (here / "all.csv").read_text().splitlines() == rows
    assert sweep("--status", "runs/small", "--table", "all.xls") == 2


def test_a_seed_that_never_scored_has_empty_cells(here, capsys):
    assert sweep("small.toml") == 0
    path = here / "runs/small/runs/dqn-deep_sea-4-s0-1/evaluations.csv"
    path.write_text("seed,steps,return_mean,best\n0,100,,-inf\n1,100,,0.5\n")
    assert sweep("--status", "runs/small", "--table", "all.csv") == 0
    with open(here / "all.csv", newline="") as file:
        found = [row for row in csv.DictReader(file) if row["run"] == "dqn-deep_sea-4-s0-1"]
    cells = [(row["last"], row["best"], row["steps"]) for row in found]
    assert cells == [("", "", "100"), ("", "0.5", "100")]


def test_without_ray_processes_run_it_and_the_extra_is_named(here, monkeypatch, capsys):
    monkeypatch.setattr("idrl.sweep.engines.has_ray", lambda: False)
    assert main(["sweep", "small.toml", "--engine", "ray"]) == 2
    assert "Ray is not installed: pip install 'idrl[sweep]'." in capsys.readouterr().err
    assert not (here / "runs").exists()
    assert main(["sweep", "small.toml"]) == 0
    told = capsys.readouterr().out
    assert "Ray is not installed (pip install 'idrl[sweep]')" in told
    assert "4 runs done" in told


def test_a_table_in_parquet_where_pyarrow_is_installed(here, capsys):
    assert sweep("small.toml") == 0
    if find_spec("pyarrow") is None:
        assert sweep("--status", "runs/small", "--table", "all.parquet") == 2
        assert "Parquet needs pyarrow" in capsys.readouterr().err
        return
    import pyarrow.parquet

    assert sweep("--status", "runs/small", "--table", "all.parquet") == 0
    table = pyarrow.parquet.read_table("all.parquet")
    assert table.num_rows == 8
    assert set(table.column("status").to_pylist()) == {"done"}


def test_failures_are_tried_again_and_then_set_aside(here, monkeypatch, capsys):
    script = {"ddqn-deep_sea-4": ["fail", "kill"], "dqn-deep_sea-5": ["fail"] * 9}
    monkeypatch.setenv("SWEEP_SCRIPT", json.dumps(script))
    # "ddqn-deep_sea-5" holds "dqn-deep_sea-5" too: both are set aside
    assert sweep("small.toml") == 1
    told = capsys.readouterr().out
    assert "2 runs done, 0 ended early, 2 set aside" in told
    assert "set aside after 3 attempts: the dice fell off the table." in told
    assert "its process was ended by SIGKILL" in told
    folder = here / "runs" / "small"
    assert tries(folder, "ddqn-deep_sea-4-s0-1") == ["--config", "--resume", "--resume"]
    sweep("--status", "runs/small")
    assert "Set aside: dqn-deep_sea-5-s0-1: the dice" in capsys.readouterr().out
    assert sweep("--resume", "runs/small") == 1
    assert len(tries(folder, "dqn-deep_sea-5-s0-1")) == 3
    monkeypatch.setenv("SWEEP_SCRIPT", "{}")
    assert sweep("--resume", "runs/small", "--retry") == 0


def test_only_a_finished_folder_is_done(here, monkeypatch, capsys):
    """An environment that ends its process leaves the status of a run that is done."""
    script = {"dqn-deep_sea-4": ["leave"], "ddqn-deep_sea-5": ["leave"] * 9}
    monkeypatch.setenv("SWEEP_SCRIPT", json.dumps(script))
    assert sweep("small.toml") == 1
    told = capsys.readouterr().out
    assert "3 runs done, 0 ended early, 1 set aside" in told
    assert "its process ended with status 0 before the run was finished" in told


def test_too_little_memory_lowers_the_packing_and_says_so(here, monkeypatch, capsys):
    monkeypatch.setenv("SWEEP_SCRIPT", json.dumps({"dqn-deep_sea-4-s0-1": ["memory"]}))
    assert sweep("small.toml") == 0
    told = capsys.readouterr().out
    assert "dqn-deep_sea-4-s0-1: memory was too small for 2 seeds in one run; now 1 and 1" in told
    assert "6 runs done" in told
    runs = {path.name for path in (here / "runs" / "small" / "runs").iterdir()}
    assert "dqn-deep_sea-4-s0" in runs
    assert "dqn-deep_sea-4-s0-1" not in runs


def test_a_study_may_go_environment_by_environment(here, monkeypatch):
    (here / "ordered.toml").write_text('order = "envs"\n' + STUDY)
    monkeypatch.setenv("SWEEP_SCRIPT", json.dumps({"dqn-deep_sea-4-s0-1": ["memory"]}))
    assert sweep("ordered.toml") == 0
    folder = StudyFolder.open("runs/ordered")
    folder.outcomes = lambda: dict.fromkeys(folder.jobs, Outcome())  # as if none were over
    names = [job.name for job in Grid(folder).begin()]
    # both agents' runs were split, and stay where they were
    assert ["deep_sea-4" in name for name in names] == [True] * 4 + [False] * 2


def test_a_signal_stops_all_runs_and_the_study_goes_on(here, monkeypatch, capsys):
    monkeypatch.setenv("SWEEP_SCRIPT", json.dumps({"dqn": ["wait"]}))
    start = time.monotonic()
    runs = here / "runs" / "small" / "runs"
    with stopped_once(*(runs / f"{agent}-deep_sea-5-s0-1" for agent in ("dqn", "ddqn"))):
        assert sweep("small.toml") == 130
    assert time.monotonic() - start < 20
    assert "Stopped. Runs continue from their last checkpoints" in capsys.readouterr().out
    folder = StudyFolder.open("runs/small")
    assert folder.counts()["stopped"] == len(os.sched_getaffinity(0))
    monkeypatch.setenv("SWEEP_SCRIPT", "{}")
    assert sweep("--resume", "runs/small") == 0
    assert all(name.over for name in folder.outcomes().values())


def test_commands_to_copy_are_quoted(here, monkeypatch, capsys):
    def stopped(*how):
        raise SweepStopped

    monkeypatch.setattr("idrl.sweep.driving.drive", stopped)
    assert sweep("small.toml", "--out", "study ü 1") == 130
    assert f"idrl sweep --resume '{here}/study ü 1'\n" in capsys.readouterr().out
    assert sweep("small.toml", "--out", "study ü 1") == 2
    assert "continue with idrl sweep --resume 'study ü 1', or" in capsys.readouterr().err


def test_a_run_whose_end_nobody_wrote_down_is_not_run_again(here):
    assert sweep("small.toml") == 0
    folder = StudyFolder.open("runs/small")
    name = "dqn-deep_sea-4-s0-1"
    write_outcome(folder.store, name, Outcome(status="running", attempts=1))
    folder.store.remove(f"progress/{name}.json")
    assert sweep("--resume", "runs/small") == 0
    assert folder.progress(name)["evaluations"] == [[100, 1.0]]  # of which searches make scores
    assert tries(here / "runs" / "small", name) == ["--config"]
    assert folder.outcome(name).status == "done"


def test_the_status_says_that_the_driver_is_gone(here, capsys):
    assert sweep("small.toml") == 0
    folder = StudyFolder.open("runs/small")
    write_outcome(folder.store, "dqn-deep_sea-4-s0-1", Outcome(status="running", attempts=1))
    told = (
        f"Its driver is gone, and its runs with it; they continue with: idrl sweep --resume {here}"
    )
    for locked in (True, False):
        folder.lock() if locked else folder.unlock()
        capsys.readouterr()
        assert sweep("--status", "runs/small") == 0
        assert (told in capsys.readouterr().out) is not locked
    for node, is_told in (("another", False), (os.uname().nodename, True)):
        elsewhere = Outcome(status="running", attempts=1, node=node)
        write_outcome(folder.store, "dqn-deep_sea-4-s0-1", elsewhere)
        assert sweep("--status", "runs/small") == 0
        assert (told in capsys.readouterr().out) is is_told


def test_a_study_without_its_runs_is_refused(tmp_path):
    data = {"agents": ["dqn"], "envs": ["deep_sea/4"], "seeds": 1}
    StudyFolder.create(str(tmp_path / "study"), data, "study", [])
    (tmp_path / "study" / "jobs.json").unlink()
    with pytest.raises(IdrlError, match="jobs.json is missing, or names no run"):
        StudyFolder.open(str(tmp_path / "study"))


def test_one_driver_at_a_time(here, capsys):
    assert sweep("small.toml") == 0
    folder = StudyFolder.open("runs/small")
    name, aside = "dqn-deep_sea-4-s0-1", Outcome("aside", 3, 3, error="the dice")
    write_outcome(folder.store, name, aside)
    folder.lock()
    assert sweep("--resume", "runs/small", "--retry") == 2
    assert "is being run already" in capsys.readouterr().err
    assert folder.outcome(name) == aside
    folder.unlock()
    assert sweep("--resume", "runs/small", "--retry") == 0


def test_what_is_tried_again_must_fit_too(here, capsys):
    assert sweep("small.toml") == 0
    folder = StudyFolder.open("runs/small")
    name, aside = "dqn-deep_sea-4-s0-1", Outcome("aside", 3, 3, error="the dice")
    folder.save_jobs([replace(job, cpus=4_096) for job in folder.jobs.values()])
    write_outcome(folder.store, name, aside)
    assert sweep("--resume", "runs/small") == 1  # nothing is left to run
    assert sweep("--resume", "runs/small", "--retry") == 2
    assert f"{name} asks for 4096 cores" in capsys.readouterr().err
    assert folder.outcome(name) == aside


def is_going(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and " Z " not in stat.read_text()


def test_a_run_dies_with_its_worker():
    code = (
        "import os, subprocess, sys, time\n"
        "p = subprocess.Popen([sys.executable, '-m', 'idrl.sweep.child', str(os.getpid()), '0',"
        " 'bandit', 'regret', '--seeds', '2000'])\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    child = int(worker.stdout.readline())
    time.sleep(0.5)
    worker.kill()
    worker.wait()
    end = time.monotonic() + 5
    while is_going(child) and time.monotonic() < end:
        time.sleep(0.05)
    going = is_going(child)
    if going:
        os.kill(child, signal.SIGKILL)
    assert not going


def test_results_can_live_at_an_address(here, monkeypatch, capsys):
    pytest.importorskip("fsspec")
    monkeypatch.setenv("IDRL_SCRATCH", str(here / "scratch"))
    monkeypatch.setenv("SWEEP_SCRIPT", json.dumps({"ddqn-deep_sea-4": ["kill"]}))
    address = f"file://{here}/kept"
    assert sweep("small.toml", "--out", address) == 0
    assert "4 runs done" in capsys.readouterr().out
    kept = here / "kept"
    assert (kept / "runs" / "dqn-deep_sea-4-s0-1" / "evaluations.csv").exists()
    assert len((kept / "runs.csv").read_text().splitlines()) == 9
    assert sweep("--status", address) == 0
    assert "done 4" in capsys.readouterr().out


class Lossy:
    """An engine whose first attempts are lost with their workers."""

    name = "lossy"

    def __init__(self, losses):
        self.losses, self.jobs = losses, []

    def begin(self, where, session, plugins): ...

    def submit(self, job):
        self.jobs.append(job)

    def running(self):
        return len(self.jobs)

    def capacity(self):
        from idrl.sweep.job import Capacity, Node

        return Capacity((Node(2),))

    def wait(self, seconds):
        job = self.jobs.pop(0)
        self.losses -= 1
        if self.losses >= 0:
            return [Ended(job, None, "lost", "the node died")]
        return [Ended(job, Outcome(status="done"))]


@pytest.mark.parametrize(("losses", "last"), [(5, "done"), (99, "aside")])
def test_a_lost_worker_is_no_failure_of_the_run_unless_it_goes_on_for_ever(here, losses, last):
    assert sweep("small.toml") == 0
    folder = StudyFolder.open("runs/small")
    folder.save_jobs([folder.jobs["dqn-deep_sea-4-s0-1"]])
    write_outcome(folder.store, "dqn-deep_sea-4-s0-1", Outcome(failures=2))
    told = []
    drive(folder, Lossy(losses), Grid(folder), told.append, lambda: None)
    assert ("done" in told[-1]) == (last == "done")
    assert ("set aside" in told[-1]) == (last == "aside")


def test_a_search_finds_the_better_setting_and_goes_on(here, monkeypatch, capsys):
    pytest.importorskip("optuna")
    (here / "search.toml").write_text(
        'agents = ["dqn-ids"]\nenvs = ["deep_sea/4"]\nseeds = 2\nsteps = 100\n'
        '[search]\ntrials = 4\nstop = "asha"\nspace.explore.lam = {low = 0.1, high = 10.0}\n'
    )
    monkeypatch.setenv("SWEEP_SCRIPT", json.dumps({"trial-0002": ["wait"]}))
    with stopped_once(here / "runs" / "search" / "runs" / "trial-0002"):
        first = sweep("search.toml")
    assert first in (130, 0)  # 0: Optuna ended the slow one before we did
    assert sweep("--resume", "runs/search") == 0
    told = capsys.readouterr().out
    assert "Best of" in told
    folder = StudyFolder.open("runs/search")
    assert sorted(folder.jobs) == [f"trial-{i:04d}" for i in range(4)]
    assert all(outcome.over for outcome in folder.outcomes().values())
    rows = (here / "runs" / "search" / "runs.csv").read_text().splitlines()
    assert "explore.lam" in rows[0]
    assert len(rows) == 1 + 8


SEARCH = (
    'agents = ["dqn-ids"]\nenvs = ["deep_sea/4"]\nseeds = 2\nsteps = 100\n'
    "[search]\ntrials = 4\nspace.explore.lam = {low = 0.1, high = 10.0}\n"
)


def test_a_search_may_choose_among_lists(here, capsys):
    pytest.importorskip("optuna")
    (here / "search.toml").write_text(
        'agents = ["dqn-ids"]\nenvs = ["deep_sea/4"]\nsteps = 100\n'
        "[search]\ntrials = 2\nspace.trunk.hidden = {choices = [[16], [32, 32]]}\n"
    )
    assert sweep("search.toml") == 0
    told = capsys.readouterr()
    assert "Best of 2 finished trials" in told.out
    assert "categorical" not in told.err  # Optuna would warn
    jobs = StudyFolder.open("runs/search").jobs.values()
    assert all(job.config["trunk"]["hidden"] in ([16], [32, 32]) for job in jobs)


def test_a_failed_trial_that_is_retried_runs_and_counts(here, monkeypatch, capsys):
    pytest.importorskip("optuna")
    (here / "search.toml").write_text(SEARCH)
    monkeypatch.setenv("SWEEP_SCRIPT", json.dumps({"trial-0001": ["fail"] * 3 + ["wait"]}))
    assert sweep("search.toml") == 1
    search = here / "runs" / "search"
    assert sweep("--resume", "runs/search") == 1
    assert len(tries(search, "trial-0001")) == 3  # not unless it is asked for
    with stopped_once(search / "runs" / "trial-0001"):
        assert sweep("--resume", "runs/search", "--retry") == 130
    capsys.readouterr()
    assert sweep("--resume", "runs/search") == 0
    told = capsys.readouterr().out
    assert "4 runs done, 0 ended early, 0 set aside" in told
    assert "Best of 4 finished trials" in told
    assert tries(search, "trial-0001") == ["--config", *["--resume"] * 4]
    assert sorted(StudyFolder.open("runs/search").jobs) == [f"trial-{i:04d}" for i in range(4)]


def test_a_retried_trial_that_is_refused_by_now_is_set_aside(here, monkeypatch, capsys):
    pytest.importorskip("optuna")
    (here / "search.toml").write_text(SEARCH)
    monkeypatch.setenv("SWEEP_SCRIPT", json.dumps({"trial-0001": ["fail"] * 3}))
    assert sweep("search.toml") == 1

    def refuse(trials, name, params):
        raise IdrlError("it takes no λ any more.")

    monkeypatch.setattr(Trials, "_job", refuse)
    assert sweep("--resume", "runs/search", "--retry") == 1
    assert "Trials that were no config: 1, one: it takes no λ" in capsys.readouterr().out
    aside = StudyFolder.open("runs/search").outcome("trial-0001")
    assert (aside.status, aside.error) == ("aside", "it takes no λ any more.")


def test_settings_that_exclude_each_other_cost_a_search_a_trial_and_no_more(here, capsys):
    pytest.importorskip("optuna")
    (here / "search.toml").write_text(
        'agents = ["c51-ids"]\nenvs = ["deep_sea/4"]\nsteps = 100\n[search]\ntrials = 8\n'
        "space.heads.z.v_min = {choices = [-10.0, 5.0]}\n"
        "space.heads.z.v_max = {choices = [10.0, 0.0]}\n"
    )
    assert sweep("search.toml") == 0
    told = capsys.readouterr().out
    assert "Trials that were no config: " in told
    jobs = StudyFolder.open("runs/search").jobs
    assert 0 < len(jobs) < 8
    assert f"Best of {len(jobs)} finished trials" in told


def test_an_address_that_does_not_answer_is_named(here, capsys):
    pytest.importorskip("ray")
    with pytest.raises(ValueError, match="no Ray cluster answers at '127.0.0.1:9': Connection ref"):
        RayEngine("127.0.0.1:9")


@pytest.mark.parametrize(
    ("answer", "told"),
    [(None, "within 0 s; is it running"), (b"HTTP/1.1 400", "is not a Ray cluster")],
)
def test_what_answers_must_be_a_cluster(answer, told, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr("idrl.sweep.ray_engine.ANSWER_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            line, _ = server.accept()
            if answer:
                line.sendall(answer)
            time.sleep(0.6)
            line.close()

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(ValueError, match=told):
            RayEngine(f"127.0.0.1:{server.getsockname()[1]}")
