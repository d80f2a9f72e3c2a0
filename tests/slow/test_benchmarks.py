"""Scripts that a GPU's minutes are spent on run to their end: here in miniature, on a CPU."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def measured(tmp_path, module, *arguments):
    """The rows that it writes."""
    table = tmp_path / "table.csv"
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments, "--csv", str(table)]
    done = subprocess.run(
        command, cwd=ROOT, text=True, capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    with open(table, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_parts_of_atari(tmp_path):
    pytest.importorskip("ale_py")
    rows = measured(tmp_path, "atari", "dqn/4/full", "--capacity", "2000", "--seconds", "0.1")
    assert [row["what"] for row in rows] == ["whole", "updates", "acting", "emulators"]
    assert all(float(row["value"]) > 0 for row in rows)


def test_games_in_processes(tmp_path):
    pytest.importorskip("ale_py")
    given = ["1", "2", "--games", "4", "--steps", "20", "--rounds", "1"]
    rows = measured(tmp_path, "emulators", *given)
    assert [row["processes"] for row in rows] == ["1", "2"] * 3


def test_the_start_of_a_run(tmp_path):
    rows = measured(
        tmp_path, "start", "dqn", "gym/CartPole-v1", "--steps", "400", "--rounds", "1",
        "--set", "learning.learning_starts_steps=200",
    )  # fmt: skip
    parts = ["stepping", "random", "learning", "steps"]
    assert [(row["cache"], row["what"]) for row in rows] == [
        (cache, part) for cache in ("cold", "warm") for part in parts
    ]
    seconds = [float(row["seconds"]) for row in rows[:4]]
    assert seconds == sorted(seconds)


def test_evaluations_beside_training(tmp_path):
    (row,) = measured(
        tmp_path, "beside", "dqn", "--steps", "400", "--rounds", "1", "--sleep-ms", "0.1",
        "--set", "learning.learning_starts_steps=40", "evaluation.every_steps=100",
        "evaluation.steps=60",
    )  # fmt: skip
    assert (row["round"], row["evaluations"], row["equal"]) == ("1", "4", "True")
    ratio = float(row["beside_s"]) / float(row["waiting_s"])
    assert float(row["ratio"]) == pytest.approx(ratio, rel=0.05)


STUB = """#!/usr/bin/env bash
printf '%s ' "$@" >> "$NOTES"; echo >> "$NOTES"
[[ "$*" != *benchmarks.start* ]]
"""


def test_measure_goes_on_after_a_part_that_fails(tmp_path):
    stub, notes = tmp_path / "python", tmp_path / "notes"
    stub.write_text(STUB)
    stub.chmod(0o755)

    def call(*arguments):
        return subprocess.run(
            [ROOT / "results/atari/measure.sh", *arguments], text=True, capture_output=True,
            cwd=tmp_path, env=os.environ | {"PYTHON": str(stub), "NOTES": str(notes)}, check=False,
        )  # fmt: skip

    done = call("out")
    assert done.returncode == 1
    assert "start: not finished" in done.stderr
    begun = [line.split()[1] for line in notes.read_text().splitlines()]
    assert begun == [f"benchmarks.{name}" for name in ("emulators", "start", "atari", "beside")]
    assert call("out", "emulators").returncode == 0
    assert call("out", "everything").returncode == 2
    assert call().returncode == 2
