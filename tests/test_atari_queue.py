"""`results/atari/short/run.sh`: a queue of runs on one GPU, with another `idrl` in its place."""

import os
import subprocess
from pathlib import Path

import pytest

import idrl
from idrl.cli.app import main
from idrl.runs import api
from idrl.schema import flat, to_dict
from idrl.sweep.jobs import combinations
from idrl.sweep.study import find, parse

SCRIPT = Path(__file__).parents[1] / "results/atari/short/run.sh"
# Trains nothing: makes the run's folder, notes its arguments, and fails where a run is named so.
STUB = """#!/usr/bin/env bash
for word in "$@"; do
  if [ "$last" = --out ]; then mkdir -p "$word" && touch "$word/run.json"; fi
  last=$word
done
printf '%s\\n' "$(printf '%s|' "$@")" >> "$NOTES" # at once: two may write side by side
if [[ "$*" == *killed* && "$*" != *--resume* ]]; then kill -9 $$; fi
"""
QUEUE = """# two games
asterix-dqn dqn asterix # no settings of its own
  # nor a run
qbert-killed c51 qbert
adam-asterix-dqn dqn asterix optimiser.kind=adam optimiser.lr=2.5e-4"""


@pytest.fixture
def start(tmp_path):
    stub = tmp_path / "bin" / "python3"
    stub.parent.mkdir()
    stub.write_text(STUB)
    stub.chmod(0o755)
    notes = tmp_path / "notes"

    def call(*arguments, queue=QUEUE):
        """What it ended with, and the arguments of the runs that it began."""
        notes.write_text("")
        path = os.pathsep.join([str(stub.parent), os.environ["PATH"]])
        done = subprocess.run(
            [SCRIPT, *arguments], input=queue, text=True, capture_output=True, cwd=tmp_path,
            env=os.environ | {"PATH": path, "NOTES": str(notes)},
        )  # fmt: skip
        return done, sorted(line.split("|")[:-1] for line in notes.read_text().splitlines())

    return call


def test_a_second_start_continues(start, tmp_path):
    runs = "my runs"
    done, begun = start(runs, "2", "1M")
    assert done.returncode == 123
    assert "qbert-killed: exit 137" in done.stdout
    assert "not all runs are finished" in done.stderr
    assert [words[3:5] for words in begun] == [
        ["c51", "atari/qbert"], ["dqn", "atari/asterix"], ["dqn", "atari/asterix"],
    ]  # fmt: skip
    adam = next(words for words in begun if f"{runs}/adam-asterix-dqn" in words)
    assert adam[-5:-2] == [
        "learning.precision=mixed", "optimiser.kind=adam", "optimiser.lr=2.5e-4",
    ]  # fmt: skip
    plain = next(words for words in begun if words[-1] == f"{runs}/asterix-dqn")
    assert plain[-3:-1] == ["learning.precision=mixed", "--out"]
    assert all(path.is_dir() for path in (tmp_path / runs).glob("asterix-*"))
    again, resumed = start(runs, "2", "1M")
    assert (again.returncode, again.stderr) == (0, "")
    assert resumed == [
        ["-m", "idrl.cli", "train", "--resume", f"{runs}/{name}", "--frames", "1M"]
        for name in ("adam-asterix-dqn", "asterix-dqn", "qbert-killed")
    ]
    log = (tmp_path / runs / "logs/qbert-killed.log").read_text()
    assert log.count("exit 137") == log.count("exit 0") == 1


def test_another_seed(start):
    def seeds(*arguments):
        _, begun = start(*arguments)
        return {words[words.index("--seed") + 1] for words in begun}

    assert (seeds("a", "2"), seeds("b", "2", "1M", "101")) == ({"100"}, {"101"})


@pytest.mark.parametrize(
    "arguments",
    [[], ["runs"], ["runs", "some"], ["runs", "1", "1M", "x"], ["runs", "1", "1M", "1", "x"]],
)
def test_bad_arguments_are_told_its_usage(start, tmp_path, arguments):
    done, begun = start(*arguments)
    assert (done.returncode, begun) == (2, [])
    assert done.stderr.startswith("usage: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def configs(start, monkeypatch):
    pytest.importorskip("ale_py")

    def call(queue):
        """The runs of a queue, and what each would train."""
        found = []

        def stop(spec, config, world):
            found.append(flat(to_dict(config)))
            raise idrl.IdrlError("enough.")

        monkeypatch.setattr(api, "_check_here", stop)
        monkeypatch.setattr(api, "prepare_memory", lambda config: None)  # of this process
        _, begun = start("runs", "1", queue=SCRIPT.with_name(queue).read_text())
        for words in begun:
            main(words[2:])
        assert len(found) == len(begun)
        return begun, found

    return call


@pytest.mark.slow
def test_precision_is_all_that_differs(configs):
    full, mixed = (
        {c["env"]: c for c in configs(queue)[1] if c["agent"] == "c51-ids"}
        for queue in ("precision.txt", "queue.txt")
    )
    assert full.keys() == mixed.keys() == {"atari/asterix", "atari/qbert"}
    length = {"training.steps": 1_250_000}
    for env, config in full.items():
        assert config | {"learning.precision": "mixed"} | length == mixed[env] | length


@pytest.mark.slow
def test_the_queue_trains_what_the_study_does(configs):
    begun, found = configs("queue.txt")
    assert len(found) == 12
    study = combinations(parse(find("atari-short")[1], "atari-short"))
    wanted = {(c.config.agent, c.config.env): flat(to_dict(c.config)) for c in study}
    for config, words in zip(found, begun, strict=True):
        other = wanted[config["agent"], config["env"]]
        differ = {name for name in config.keys() | other if config.get(name) != other.get(name)}
        adam = "/adam-" in words[-1]
        assert {name.partition(".")[0] for name in differ} == ({"optimiser"} if adam else set())
