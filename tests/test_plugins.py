"""Code of one's own: who may name it, and that a file alone never makes it run."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from idrl.cli import main
from idrl.runs import api
from idrl.sweep.driving import SweepStopped
from idrl.sweep.folder import StudyFolder
from idrl.system import plugins

CODE = """
from dataclasses import replace
from pathlib import Path

import idrl
from idrl.agents import declared

Path({marker!r}).write_text("imported")
idrl.register_agent({name!r}, lambda: replace(declared("dqn")), presets="all")
"""
TINY = [
    "--steps", "80", "--set", "learning.learning_starts_steps=20", "heads.q.hidden=[4]",
    "trunk.hidden=[4]", "training.log_every_steps=40", "evaluation.every_steps=40",
]  # fmt: skip


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """A user who never allowed anything, in an empty folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(plugins, "_loaded", [])
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if not name.startswith(("idrl", "jax")):
            del sys.modules[name]


def write(folder, module):
    """A plugin that registers an agent of its own name, and says when it is imported."""
    marker = folder / f"{module}.imported"
    code = CODE.format(marker=str(marker), name=f"{module}-{folder.parent.name[-30:]}")
    (folder / f"{module}.py").write_text(code)
    return marker


def forget(module):
    """As a new process would: nothing is loaded."""
    sys.modules.pop(module, None)
    plugins._loaded.clear()


@pytest.mark.slow
def test_a_run_remembers_its_plugin_and_imports_what_the_user_allowed(tmp_path, capsys):
    here, marker = tmp_path / "here", write(tmp_path / "here", "mine")
    name = f"mine-{tmp_path.name[-30:]}"
    assert main(["train", name, "deep_sea/3", "--plugin", "mine", *TINY, "--out", "run"]) == 0
    (plugin,) = json.loads((here / "run" / "run.json").read_text())["plugins"]
    assert (plugin["name"], plugin["version"], len(plugin["sha256"])) == ("mine", "", 64)
    from idrl.agents import registry

    for command in (["evaluate", "run"], ["explain", "run"], ["play", "run"]):
        forget("mine")
        del registry._AGENTS[name]
        marker.unlink()
        assert main(command) == 0
        assert "loading the plugin 'mine' from " in capsys.readouterr().err
        assert marker.exists()

    # Who never allowed it is told what to say, and nothing is imported.
    (tmp_path / "config" / "idrl" / "plugins.json").unlink()
    forget("mine")
    del registry._AGENTS[name]
    marker.unlink()
    for command in (["evaluate", "run"], ["train", "--resume", "run", "--steps", "120"]):
        assert main(command) == 2
        error = capsys.readouterr().err
        assert "was made with the plugin 'mine'" in error
        assert "add --plugin mine" in error
        assert error.count("\n") == 1
    with pytest.raises(api.IdrlError, match="import mine before in Python"):
        api.load("run")
    assert not marker.exists()
    assert main(["evaluate", "run", "--plugin", "mine"]) == 0
    assert marker.exists()


@pytest.mark.slow
def test_a_file_and_a_saved_agent_import_nothing_by_themselves(tmp_path, capsys):
    here = tmp_path / "here"
    marker = write(here, "evil")
    run = api.train(
        "dqn", "deep_sea/3", settings=[t for t in TINY if "=" in t], steps=80, out="run"
    )
    agent = api.load(run)
    about = json.loads((here / "run" / "run.json").read_text())
    assert about["plugins"] == []
    for wrong in ("evil", ["evil"], [{"name": "evil; import os"}], [{"name": "x"}] * 40, [{}], 3):
        (here / "run" / "run.json").write_text(json.dumps(about | {"plugins": wrong}))
        assert main(["evaluate", "run"]) == 2
        assert "plugins" in capsys.readouterr().err
    (here / "run" / "run.json").write_text(json.dumps(about | {"plugins": [{"name": "evil"}]}))
    for command in (["evaluate", "run"], ["explain", "run"], ["play", "run"], ["report", "run"]):
        status = main(command)
        assert (status, marker.exists()) == (0 if command[0] == "report" else 2, False)
    write(here, "kind")
    plugins.load(["kind"])
    agent.save("agent.safetensors")
    forget("kind")
    (tmp_path / "config" / "idrl" / "plugins.json").unlink()
    with pytest.raises(api.IdrlError, match="was made with the plugin 'kind'"):
        api.load("agent.safetensors")
    (here / "study").mkdir()
    said = {"format": 1, "name": "s", "study": {"agents": ["dqn"], "envs": ["deep_sea/3"]}}
    (here / "study" / "sweep.json").write_text(json.dumps(said | {"plugins": ["evil"]}))
    assert main(["sweep", "--resume", "study"]) == 2
    assert "was made with the plugin 'evil'" in capsys.readouterr().err
    assert not marker.exists()


def simple(folder, module, text):
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(f"WHO = {text!r}\n")
    return folder / f"{module}.py"


def test_a_run_gets_the_file_that_it_was_made_with(tmp_path):
    """Two projects have a module of the same name, and the user allowed both."""
    ours, theirs = simple(tmp_path / "a", "grids", "a"), simple(tmp_path / "b", "grids", "b")
    plugins.load([str(ours)])
    made = plugins.record()
    forget("grids")
    sys.path.remove(str(ours.parent))
    plugins.load([str(theirs)])
    forget("grids")  # b is still the first on the path
    with pytest.warns(UserWarning, match="loading the plugin 'grids' from .*/a/grids.py"):
        plugins.need(made, "the run")
    assert sys.modules["grids"].WHO == "a"
    forget("grids")
    ours.write_text("WHO = 'c'\n")  # of two, neither is what it was made with
    with pytest.raises(plugins.IdrlError, match="was made with the plugin 'grids'"):
        plugins.need(made, "the run")
    theirs.unlink()
    with pytest.warns(UserWarning, match="'grids' has changed since the run was made with it"):
        plugins.need(made, "the run")


def test_a_study_gets_the_file_that_it_was_made_with(tmp_path):
    ours, theirs = simple(tmp_path / "a", "grids", "a"), simple(tmp_path / "b", "grids", "b")
    plugins.load([str(ours)])
    data = {"agents": ["dqn"], "envs": ["deep_sea/3"], "search": {"space": {"optimiser": {"lr": {
        "low": 1e-4, "high": 1e-3}}}}}  # fmt: skip
    StudyFolder.create(str(tmp_path / "study"), data, "study", [], plugins.record())
    for there in (theirs, ours):
        forget("grids")
        sys.path[:] = [one for one in sys.path if one not in (str(ours.parent), str(theirs.parent))]
        plugins.load([str(there)])
    forget("grids")
    with pytest.warns(UserWarning, match="loading the plugin 'grids' from .*/a/grids.py"):
        StudyFolder.open(str(tmp_path / "study"), writing=True)
    assert sys.modules["grids"].WHO == "a"
    ours.write_text("WHO = 'c'\n")
    with pytest.warns(UserWarning, match="'grids' has changed since the study .* was made with it"):
        StudyFolder.open(str(tmp_path / "study"), writing=True)


RULE = """
from dataclasses import dataclass
import idrl

@idrl.rule("installed_rule")
@dataclass(frozen=True)
class Installed(idrl.Rule):
    def __call__(self, beliefs, context):
        return idrl.rules.chosen(beliefs.q_heads, beliefs.q_heads.mean(-2), mask=context.mask)
"""


def test_a_study_remembers_installed_plugins_that_its_runs_use(tmp_path, monkeypatch, capsys):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "withrule.py").write_text(RULE)
    monkeypatch.syspath_prepend(tmp_path / "site")
    importlib.import_module("withrule")  # as its entry point does

    def stopped(*how):
        raise SweepStopped

    monkeypatch.setattr("idrl.sweep.driving.drive", stopped)
    Path("s.toml").write_text(
        'agents = ["dqn"]\nenvs = ["deep_sea/3"]\nsettings.explore.kind = "installed_rule"\n'
    )
    assert main(["sweep", "s.toml", "--engine", "processes"]) == 130
    assert [one["name"] for one in StudyFolder.open("runs/s").about["plugins"]] == ["withrule"]
    pytest.importorskip("optuna")
    Path("search.toml").write_text(
        'agents = ["dqn"]\nenvs = ["deep_sea/3"]\n[search.space]\n'
        'explore.kind = {choices = ["greedy", "installed_rule"]}\n'
    )
    assert main(["sweep", "search.toml", "--engine", "processes"]) == 130
    assert [one["name"] for one in StudyFolder.open("runs/search").about["plugins"]] == ["withrule"]
    forget("withrule")
    assert main(["sweep", "--resume", "runs/s", "--engine", "processes"]) == 2
    assert "was made with the plugin 'withrule', which is not loaded" in capsys.readouterr().err


def test_a_package_that_was_allowed_is_allowed_with_its_parts(tmp_path, monkeypatch):
    package = tmp_path / "here" / "mypack"
    simple(package, "__init__", "package")
    simple(package, "rule", "part")
    simple(package / "both", "__init__", "a package comes before a module")
    simple(package, "both", "module")
    wanted = [{"name": "mypack.rule"}, {"name": "mypack.both"}, {"name": "another"}]
    with pytest.raises(plugins.IdrlError, match="plugins 'mypack', 'another', which are"):
        plugins.need(wanted, "the run")
    plugins.load(["mypack"])
    forget("mypack")
    with pytest.warns(UserWarning, match="loading the plugin 'mypack.rule'"):
        plugins.need(wanted[:1], "the run")
    assert sys.modules["mypack.rule"].WHO == "part"
    plugins.load(["mypack.both"])
    assert sys.modules["mypack.both"].WHO == "a package comes before a module"


def test_a_plugin_that_trains_is_refused(tmp_path):
    (tmp_path / "here" / "script.py").write_text("import idrl\nidrl.train('dqn', 'deep_sea/3')\n")
    with pytest.raises(plugins.IdrlError, match="'script': it trains when it is imported"):
        plugins.load(["script.py"])
    assert not (tmp_path / "here" / "runs").exists()


def test_only_plugins_that_a_run_has_parts_of_are_recorded(monkeypatch):
    points = [SimpleNamespace(name="good", module="json.tool", load=lambda: None)]
    monkeypatch.setattr(plugins.metadata, "entry_points", lambda group: points)
    monkeypatch.setattr(plugins, "_installed", None)
    plugins.load_installed()
    assert plugins.record(["idrl.agents.choosing"]) == []
    assert [one["name"] for one in plugins.record(["json"])] == ["json"]


def test_a_file_is_a_plugin_and_so_is_an_installed_entry_point(tmp_path, monkeypatch):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    marker = write(folder, "rules_of_mine")
    plugins.load([str(folder / "rules_of_mine.py")])
    assert marker.exists()
    assert plugins.loaded() == ("rules_of_mine",)
    assert plugins.places() == [str(folder)]

    def fails():
        raise ValueError("no luck")

    points = [
        SimpleNamespace(name="good", module="good.part", load=lambda: None),
        SimpleNamespace(name="bad", module="bad", load=fails),
    ]
    monkeypatch.setattr(plugins.metadata, "entry_points", lambda group: points)
    monkeypatch.setattr(plugins, "_installed", None)
    with pytest.warns(UserWarning, match="'bad' cannot be loaded: ValueError: no luck"):
        plugins.load_installed()
    assert plugins._installed == ["good.part"]
    plugins.load_installed()  # once


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("no.such.module", "there is no such module, neither installed nor in the folder"),
        ("two words", "does not name a module"),
        ("-x", "does not name a module"),
        ("nowhere.py", "there is no such file"),
        ("broken", "cannot be imported: ZeroDivisionError: division by zero"),
        ("json.py", "another module is named"),
        ("time.py", "another module is named"),
        ("empty", "there is no such module"),
        ("pack/part.py", "name the package, with the folder above it as the one you are in"),
    ],
)
def test_mistakes_are_sentences(given, says, tmp_path, capsys):
    (tmp_path / "here" / "broken.py").write_text("1 / 0\n")
    for name in ("json", "time"):
        (tmp_path / "here" / f"{name}.py").write_text("")
    (tmp_path / "here" / "empty").mkdir()
    simple(tmp_path / "here" / "pack", "__init__", "package")
    simple(tmp_path / "here" / "pack", "part", "part")
    assert main(["train", "dqn", "deep_sea/3", f"--plugin={given}", "--out", "run"]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "here" / "run").exists()
