"""TensorBoard and W&B: what they hear, what they cannot break, what a resumed run keeps."""

import json
import sys

import numpy as np
import pytest
from displays import Dies
from small import train

import idrl
from idrl.cli.app import main
from idrl.storage import sinks
from idrl.storage.folder import RunFolder

FAKE = '''
"""Stands in for W&B: keeps what it is told in `runs`, and links to a log elsewhere."""
from pathlib import Path

runs = []
fail_at = {}
start_at = {}

class Settings:
    def __init__(self, **settings): self.settings = settings

class Histogram:
    def __init__(self, values): self.values = values

class Run:
    def __init__(self, told):
        self.told, self.logged, self.axes, self.finished = told, [], {}, False
        self.step = start_at.get(told["id"], 0)
    def define_metric(self, name, step_metric): self.axes[name] = step_metric
    def log(self, values, step=None):
        now = self.step if step is None else step
        if now >= fail_at.get("log", 1e9): raise OSError("the wire\\nis cut")
        if now < self.step: return  # left out, as W&B does
        self.logged.append((now, values))
        self.step = now + (step is None)
    def finish(self):
        if "finish" in fail_at: raise OSError("gone")
        self.finished = True

def init(**told):
    if len(runs) >= fail_at.get("init", 1e9): raise OSError("no key")
    runs.append(Run(told))
    logs = Path(told["dir"], "wandb", f"run-{len(runs)}-{told['id']}", "logs")
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "debug-core.log").symlink_to("/nowhere/core-debug.log")
    return runs[-1]
'''


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """The module `wandb` as a package of its own on the path."""
    (tmp_path / "fake" / "wandb").mkdir(parents=True)
    (tmp_path / "fake" / "wandb" / "__init__.py").write_text(FAKE)
    monkeypatch.syspath_prepend(tmp_path / "fake")
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    import wandb

    yield wandb
    del sys.modules["wandb"]


@pytest.mark.slow
def test_wandb_hears_what_the_tables_say(fake, tmp_path):
    run = train(tmp_path / "run", wandb=True)
    assert [r.told["name"] for r in fake.runs] == ["run-seed-5", "run-seed-6"]
    for seed, one in zip((5, 6), fake.runs, strict=True):
        told = one.told
        assert (told["project"], told["group"], told["resume"]) == ("mine", "run", "allow")
        assert told["config"]["seed"] == seed
        assert told["config"]["learning"]["replay_capacity"] == 500
        steps = [step for step, _ in one.logged]
        assert steps == sorted(steps)
        heard = {(s, name): v for s, values in one.logged for name, v in values.items()}
        mine = run.evaluations.where(seed=seed)
        assert len(mine) == 4
        for row in mine:
            assert heard[row["steps"], "evaluation/return_mean"] == row["return_mean"]
            assert heard[row["steps"], "evaluation/steps"] == row["steps"]
        for row in run.distributions.where(seed=seed, quantity="rho2"):
            values = heard[row["steps"], "distributions/rho2"].values
            assert values.shape == (64 * 2,)
            assert values.max() == pytest.approx(row["p100"])
        assert one.finished
    assert len({r.told["id"] for r in fake.runs}) == 2


def test_wandb_hears_evaluations_that_come_late(fake, tmp_path):
    config = {"seed": 3, "seeds": 1}
    sink = sinks.Wandb(sinks.SinkRun(tmp_path, "id", config, "mine"))
    sink.scalars(3, 602, {"train/loss": 1.0})
    sink.scalars(3, 302, {"evaluation/best": 2.0})
    sink.scalars(3, 904, {"train/loss": 3.0})
    sink.scalars(3, 904, {"evaluation/best": 4.0})
    fake.start_at["id-3"] = 905  # a process that was killed had said so much
    again = sinks.Wandb(sinks.SinkRun(tmp_path, "id", config, "mine"))
    again.scalars(3, 904, {"train/loss": 3.0})
    again.scalars(3, 602, {"evaluation/best": 5.0})
    heard = [values for run in fake.runs for _, values in run.logged]
    assert heard == [
        {"train/loss": 1.0}, {"evaluation/steps": 302, "evaluation/best": 2.0},
        {"train/loss": 3.0}, {"evaluation/steps": 904, "evaluation/best": 4.0},
        {"evaluation/steps": 602, "evaluation/best": 5.0},
    ]  # fmt: skip
    assert all(run.axes == {"evaluation/*": "evaluation/steps"} for run in fake.runs)


@pytest.mark.slow
def test_a_resumed_run_keeps_its_sinks_and_their_ids(fake, tmp_path, monkeypatch):
    with pytest.raises(MemoryError):
        train(tmp_path / "run", wandb=True, tensorboard=True, display=Dies(151))
    ids = [r.told["id"] for r in fake.runs]
    fake.runs.clear()
    monkeypatch.setenv("WANDB_PROJECT", "another")
    events = len(list((tmp_path / "run" / "tensorboard").rglob("events*")))
    idrl.train(resume=tmp_path / "run")
    assert [r.told["id"] for r in fake.runs] == ids
    assert {r.told["project"] for r in fake.runs} == {"mine"}
    assert fake.runs[0].logged[-1][0] == 400
    assert len(list((tmp_path / "run" / "tensorboard").rglob("events*"))) > events
    fake.runs.clear()
    idrl.train(resume=tmp_path / "run", wandb=False)
    assert fake.runs == []
    kept = json.loads((tmp_path / "run" / "run.json").read_text())
    assert kept["sinks"] == {"tensorboard": ""}


@pytest.mark.parametrize("where", [{"log": 200}, {"finish": 1}])
def test_a_sink_that_fails_is_dropped_aloud_and_the_run_goes_on(fake, tmp_path, where):
    fake.fail_at.update(where)
    with pytest.warns(UserWarning, match="wandb failed .* continues") as warned:
        run = train(tmp_path / "run", wandb=True)
    assert sum("wandb failed" in str(w.message) for w in warned) == 1
    assert "\n" not in str(warned[0].message)
    assert run.evaluations.where(seed=5)["steps"].tolist() == [100, 200, 300, 400]


def test_a_sink_that_cannot_start_stops_the_command_and_leaves_nothing(fake, tmp_path, capsys):
    fake.fail_at["init"] = 1  # the second seed's
    out = tmp_path / "run"
    settings = ["--set", "heads.q.k=3", "training.steps=400"]
    arguments = ["train", "dqn-ids", "deep_sea/4", "--seeds", "2", "--out", str(out), *settings]
    assert main([*arguments, "--wandb"]) == 2
    error = capsys.readouterr().err
    assert error == "idrl: wandb cannot be used: OSError: no key\n"
    assert not out.exists()
    assert fake.runs[0].finished


@pytest.mark.parametrize("kind", ["tensorboard", "wandb"])
def test_a_missing_package_is_one_sentence(kind, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sinks.importlib.util, "find_spec", lambda name: None)
    assert main(["train", "dqn", "deep_sea/4", f"--{kind}"]) == 2
    error = capsys.readouterr().err
    assert f"pip install 'idrl[{kind}]'" in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_named_wandb_is_no_package(tmp_path, monkeypatch):
    (tmp_path / "wandb").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    with pytest.raises(idrl.IdrlError, match="needs the wandb package"):
        sinks.check_installed(["wandb"])


def test_a_run_from_before_gets_an_identity_and_keeps_it(tmp_path):
    folder = RunFolder.create(tmp_path / "run", {}, {})
    about = folder.read_about()
    del about["id"]
    folder.about.write_text(json.dumps(about))
    name = folder.remember_sinks({"wandb": "mine"})
    assert folder.remember_sinks({}) == name


def test_tensorboard_gets_scalars_and_histograms(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = sinks.Sinks({"tensorboard": sinks.TensorBoard(sinks.SinkRun(tmp_path, "x", {}))})
    board.scalars(3, 10, {"a": 1.5, "nothing": float("nan")})
    board.histograms(3, 10, {"h": np.array([1.0, 2.0, np.inf]), "none": np.array([np.nan])})
    board.close()
    seen = EventAccumulator(str(tmp_path / "tensorboard" / "seed-3"))
    seen.Reload()
    assert seen.Tags()["scalars"] == ["a"]
    assert [(e.step, e.value) for e in seen.Scalars("a")] == [(10, 1.5)]
    assert seen.Tags()["tensors"] == ["h"]


@pytest.mark.slow
def test_a_sink_of_ones_own_hears_of_a_run_and_of_its_resumption(tmp_path):
    heard = []

    @idrl.sink("heard")
    class Heard(idrl.Sink):
        def __init__(self, run):
            heard.append(run.kept)

        @classmethod
        def keep(cls):
            return "here"

        def scalars(self, seed, steps, values):
            heard.append((seed, steps, len(values)))

    try:
        run = train(tmp_path / "run", sinks=["heard"])
        assert heard[0] == "here"
        assert len(heard) > 4
        heard.clear()
        idrl.train(resume=run.path, steps=run.config.training.steps + 100)
        assert heard[0] == "here"
    finally:
        del sinks.KINDS["heard"]
    with pytest.raises(idrl.IdrlError, match="unknown sink 'heard'"):
        idrl.train(resume=run.path, steps=run.config.training.steps + 200)
    with pytest.raises(idrl.IdrlError, match=r'write @idrl.sink\("name"\)'):
        idrl.sink(Heard)
