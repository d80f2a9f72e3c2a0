"""Studies of unknown origin, and studies too large to look at."""

import json
import os
import time

import pytest
from kit import STUDY

from idrl.cli.app import main
from idrl.sweep.folder import StudyFolder
from idrl.sweep.job import Capacity, Node
from idrl.sweep.jobs import combinations, pack
from idrl.sweep.study import parse


@pytest.fixture
def study(tmp_path):
    jobs = pack(combinations(parse(STUDY)), parse(STUDY).resources, Capacity((Node(2),)))
    folder = StudyFolder.create(str(tmp_path / "inner" / "study"), STUDY, "small", jobs)
    return folder.store.local


def forge(study, change) -> None:
    jobs = json.loads((study / "jobs.json").read_text())
    jobs[0] |= change
    (study / "jobs.json").write_text(json.dumps(jobs))


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../../../escaped"}, {"name": "/tmp/escaped"}, {"name": ".."}, {"name": "a/b"},
        {"name": ""}, {"name": "x" * 300}, {"name": 5}, {"seeds": 10**9}, {"seeds": -1},
        {"seed": "0"}, {"config": []}, {"config": {}}, {"cpus": 0}, {"gpus": "x"}, {"more": 1},
        {"cost_s": -1.0}, {"env": "deep_sea/5"}, {"steps": 7},
    ],
)  # fmt: skip
def test_runs_that_cannot_be(study, tmp_path, tally, capsys, change):
    """Neither read nor run: nothing appears outside."""
    forge(study, change)
    before = sorted(map(str, tmp_path.rglob("*")))
    for line in (["--status"], ["--resume"]):
        assert main(["sweep", *line, str(study), "--engine", "processes"]) == 2
        told = capsys.readouterr().err
        assert told.startswith("idrl: the study in ")
        assert told.count("\n") == 1
    assert sorted(map(str, tmp_path.rglob("*"))) == before
    tally("forged study", 2, 2)


@pytest.mark.parametrize("where", ["logs", "runs", "outcomes/x.json", "optuna.log", ".lock"])
@pytest.mark.parametrize("how", ["link", "hard link", "pipe"])
def test_links_in_a_study(study, tmp_path, tally, capsys, where, how):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    place = study / where
    place.parent.mkdir(exist_ok=True)
    if how == "link":
        place.symlink_to(outside)
    elif how == "pipe":
        os.mkfifo(place)
    else:
        os.link(outside, place)
    assert main(["sweep", "--resume", str(study), "--engine", "processes"]) == 2
    assert "holds its files itself" in capsys.readouterr().err
    assert outside.read_text() == "mine"
    tally("forged study", 1, 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('envs = ["deep_sea/' + "{1,2}" * 20 + '"]', "pairs of braces"),
        ('envs = ["deep_sea/' + "{1,2,3,4,5,6,7,8,9}" * 10 + '"]', "more than 5,000 environments"),
        ('envs = ["deep_sea/10"]\nseeds = 1000000000', "seeds"),
        ('envs = ["deep_sea/10"]\n[grid]\n' + "".join(
            f"a{i} = [{', '.join(map(str, range(10)))}]\n" for i in range(9)), "variants"),
        ('envs = ["deep_sea/{10,20}"]\nseeds = 600000', "1,200,000 seeds in all"),
    ],
)  # fmt: skip
def test_studies_too_large_to_look_at(tmp_path, capsys, tally, text, says):
    file = tmp_path / "large.toml"
    file.write_text('agents = ["dqn"]\n' + text)
    clock = time.process_time()
    assert main(["sweep", "--plan", str(file)]) == 2
    assert says in capsys.readouterr().err
    assert time.process_time() - clock < 5
    tally("study without end", 1, 1)


def test_a_million_runs_are_planned(tmp_path, monkeypatch, capsys, tally):
    from idrl.sweep import probing, speeds

    monkeypatch.setattr(probing, "probe", lambda configs: speeds.KNOWN[-1])
    file = tmp_path / "large.toml"
    file.write_text('agents = ["dqn"]\nenvs = ["deep_sea/{10,20}"]\nseeds = 500000\nsteps = 1000')
    clock = time.process_time()
    assert main(["sweep", "--plan", str(file)]) == 0
    assert "1G" in capsys.readouterr().out
    assert time.process_time() - clock < 20
    tally("study without end", 1, 1)


@pytest.mark.parametrize(
    "text",
    [b"\xff\x00", b"null\n", b"{}\n", b'{"op_code": 99}\n', b'{"op_code": 0}\n', b"[" * 9999],
)
def test_a_forged_journal_of_a_search(tmp_path, capsys, tally, text):
    data = {key: value for key, value in STUDY.items() if key != "seeds"}
    data["search"] = {"trials": 2, "space": {"explore": {"lam": {"low": 0.1, "high": 0.5}}}}
    folder = StudyFolder.create(str(tmp_path / "study"), data, "small", [])
    (folder.store.local / "optuna.log").write_bytes(text)
    assert main(["sweep", "--resume", folder.store.where, "--engine", "processes"]) == 2
    told = capsys.readouterr().err
    assert "optuna.log' cannot be read" in told
    assert told.count("\n") == 1
    tally("forged study", 1, 1)
