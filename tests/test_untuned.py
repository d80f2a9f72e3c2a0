"""The suites of untuned tasks: what is in them, how a command goes on, and their table on scores
that are made up."""

import csv
import re
import sys

import numpy as np
import pytest
from benchmarks.untuned import AGENTS, COLUMNS, SUITES, Job, Task, main
from benchmarks.untuned_table import holm, normalised, p_worse, score, table

from idrl.config import resolve
from idrl.envs import make_env
from idrl.envs.naming import path_of
from idrl.schema import parse_assignment

OPEN = Task("open", 100, -1_000.0, -10.0, endless=True)
SHORT = Task("short", 100, 0.0, 2.0, sparse=True)


def rows(task, agent, returns, of=100, seed=0):
    """Evaluations at equal distances up to the end."""
    steps = np.linspace(0, of, len(returns) + 1).astype(int)[1:]
    return [
        dict(zip(COLUMNS, map(str, (task.name, agent, seed, step, of, x, 1)), strict=True))
        for step, x in zip(steps, returns, strict=True)
    ]


# -- the suites -----------------------------------------------------------------------------------


def test_the_suites_have_no_task_in_common():
    development, report = ({path_of(t.name) for t in SUITES[name]} for name in SUITES)
    assert not development & report
    assert min(len(development), len(report)) >= 10
    for suite in SUITES.values():
        assert 3 <= sum(task.sparse for task in suite) < len(suite)
        assert all(task.best > task.low for task in suite)


@pytest.mark.parametrize("task", [t for s in SUITES.values() for t in s if t.name.startswith(
    ("grid/", "deep_sea/"))], ids=lambda t: t.name)  # fmt: skip
def test_what_is_known_of_a_task_is_what_its_environment_says(task):
    env = make_env(task.name)
    assert task.best == pytest.approx(env.optimal_return(None), rel=1e-3)
    assert task.endless == (getattr(env, "limit", 1) == 0)
    if task.endless:  # a step costs 1 times the scale
        assert task.low == -task.window * env.scale


def test_a_job_is_a_command_that_resolves(tmp_path):
    job = Job(SUITES["report"][0], AGENTS[0], 100, 10, 0.1, ("learning.gamma=0.9",))
    command = job.command(tmp_path)
    settings = command[command.index("--set") + 1 :]
    config = resolve(job.agent, job.task.name, changes=map(parse_assignment, settings))
    assert (config.evaluation.every_steps, config.learning.gamma) == (300, 0.9)
    assert command[command.index("--steps") + 1] == "6000"


# -- running --------------------------------------------------------------------------------------

RUN = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1]); folder.mkdir(parents=True)
(folder / "config.toml").write_text(""); (folder / "checkpoints").mkdir()
(folder / "evaluations.csv").write_text("seed,steps,episodes,return_mean\\n0,10,0,\\n0,20,1,-5\\n")
"""


@pytest.fixture
def quick(monkeypatch):
    """Runs that take no time, and are counted."""
    begun = []

    def command(job, out):
        begun.append(job.agent)
        return [sys.executable, "-c", RUN, str(job.folder(out))]

    monkeypatch.setattr(Job, "command", command)
    monkeypatch.setattr(Job, "steps", 20)
    return begun


def test_a_repeated_command_runs_what_is_missing(quick, tmp_path, capsys):
    words = ["--tasks", "grid/traps", "--seeds", "1", "--out", str(tmp_path), "--jobs", "2"]
    assert main([*words, "--agents", "dqn"]) == 0
    assert main([*words, "--agents", "dqn", "dqn-ids"]) == 0
    assert quick == ["dqn", "dqn-ids"]
    with open(tmp_path / "scores.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["return_mean"] for row in found] == ["", "-5", "", "-5"]
    kept = sorted(p.name for p in (tmp_path / "runs" / "dqn-grid-traps-0").iterdir())
    assert kept == ["config.toml", "evaluations.csv"]
    with pytest.raises(SystemExit):
        main([*words, "--set", "learning.gamma=0.9"])
    assert "holds runs with other settings" in capsys.readouterr().err


def test_the_limit_leaves_the_rest_and_says_so(quick, tmp_path, capsys):
    words = ["--tasks", "grid/traps", "--agents", "dqn", "--out", str(tmp_path), "--limit", "0"]
    assert main(words) == 1
    assert quick == []
    assert "dqn grid/traps: not begun" in capsys.readouterr().err


# -- scores ---------------------------------------------------------------------------------------


def test_a_score_is_the_mean_of_the_last_quarter():
    evaluations = dict(zip(range(10, 101, 10), [0, 0, 0, 0, 0, 0, 9, 1, 1, 2.5], strict=True))
    assert score(evaluations, 100, SHORT) == pytest.approx(1.5 / 2)


def test_an_evaluation_without_an_end_is_the_worst():
    assert score({100: float("nan")}, 100, OPEN) == 0
    assert score({100: -50_000.0}, 100, OPEN) == 0
    assert score({90: float("nan"), 100: -10.0}, 100, OPEN) == 0.5
    assert score({100: -2.0}, 100, SHORT) == -1, "worse than random where episodes do end"


def test_seeds_without_an_end_are_kept_and_unfinished_ones_are_not():
    made = rows(OPEN, "dqn", ["", ""]) + rows(OPEN, "dqn", [-10, -10], seed=1)
    made += rows(OPEN, "dqn", [-10, -10], seed=2)[:1]
    np.testing.assert_array_equal(normalised(made, [OPEN])["dqn"]["open"], [0, 1])


def test_a_longer_run_replaces_a_quick_look():
    made = rows(SHORT, "dqn", [2, 2], of=10) + rows(SHORT, "dqn", [0, 1], of=100)
    np.testing.assert_array_equal(normalised(made, [SHORT])["dqn"]["short"], [0.5])


def test_p_is_the_share_of_splits():
    """Of 20 splits of 3 and 3 one is as bad as the worst; equal runs are no evidence."""
    low, high = np.arange(3.0), np.arange(3.0) + 10
    assert p_worse(low, high) == pytest.approx(1 / 20, abs=0.01)
    assert p_worse(high, low) == pytest.approx(1, abs=0.01)
    assert p_worse(np.full(5, 0.1), np.full(5, 0.1)) == 1


def test_holm_by_hand():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == ["a"]  # 0.05/3, then 0.03 > 0.05/2
    assert holm({"a": 0.01, "b": 0.04, "c": 0.02}) == ["a", "c", "b"]
    assert holm({}) == []


def test_the_table_names_who_is_worse():
    rng, made = np.random.default_rng(0), []
    for seed in range(10):
        noise = rng.normal(0, 0.01, 4)
        made += rows(SHORT, "dqn", [1 + noise[0]] * 4, seed=seed)
        made += rows(OPEN, "dqn", [-505 + noise[1]] * 4, seed=seed)
        made += rows(SHORT, "dqn-ids", [2 + noise[2]] * 4, seed=seed)
        made += rows(OPEN, "dqn-ids", [""] * 4, seed=seed)
    lines = table(made, [OPEN, SHORT], AGENTS).splitlines()
    cells = {line.split("|")[1].strip(): line for line in lines if line.startswith("|")}
    assert re.search(r"\| 10 \| 0\.5\d* \(.* to .*\) \| 0 \(0 to 0\) \|$", cells["`open`"])
    assert "`short` (sparse)" in cells
    ids = [cell.strip() for cell in cells["dqn-ids"].strip("|").split("|")]
    assert ids[1] == "2"
    assert ids[3].startswith("0.5 ("), "ahead on one task, behind on the other"
    assert ids[5].startswith("1 ("), "the sparse one"
    assert ids[-2:] == ["`open`", "`short`"]
    assert cells["dqn"].rstrip("| ").endswith("–")
