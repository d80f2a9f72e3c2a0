"""Code of one's own: who may name it, and that a file alone never makes it run."""

import json
import sys
from types import SimpleNamespace

import pytest

from idrl.cli import main
from idrl.runs import api
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


def test_a_run_remembers_its_plugin_and_imports_what_the_user_allowed(tmp_path, capsys):
    here, marker = tmp_path / "here", write(tmp_path / "here", "mine")
    name = f"mine-{tmp_path.name[-30:]}"
    assert main(["train", name, "deep_sea/3", "--plugin", "mine", *TINY, "--out", "run"]) == 0
    assert json.loads((here / "run" / "run.json").read_text())["plugins"] == [
        {"name": "mine", "version": ""}
    ]
    from idrl.agents import registry

    for command in (["evaluate", "run"], ["explain", "run"], ["play", "run"]):
        forget("mine")
        del registry._AGENTS[name]
        marker.unlink()
        assert main(command) == 0
        assert "loading the plugin 'mine'." in capsys.readouterr().err
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


def test_a_name_that_stands_for_another_file_now_is_not_what_was_allowed(tmp_path):
    write(tmp_path / "here", "moved")
    plugins.load(["moved"])
    forget("moved")
    sys.path.remove(str(tmp_path / "here"))
    other = tmp_path / "here" / "other"
    other.mkdir()
    marker = write(other, "moved")
    sys.path.insert(0, str(other))
    with pytest.raises(plugins.IdrlError, match="was made with the plugin 'moved'"):
        plugins.need([{"name": "moved"}], "the run")
    assert not marker.exists()


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
    monkeypatch.setattr(plugins, "_installed", False)
    with pytest.warns(UserWarning, match="'bad' cannot be loaded: ValueError: no luck"):
        plugins.load_installed()
    assert plugins.loaded() == ("rules_of_mine", "good.part")
    plugins.load_installed()  # once


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("no.such.module", "there is no such module, neither installed nor in the folder"),
        ("two words", "names no module"),
        ("-x", "names no module"),
        ("nowhere.py", "there is no such file"),
        ("broken", "cannot be imported: ZeroDivisionError: division by zero"),
        ("json.py", "another module is named 'json'"),
    ],
)
def test_mistakes_are_sentences(given, says, tmp_path, capsys):
    (tmp_path / "here" / "broken.py").write_text("1 / 0\n")
    (tmp_path / "here" / "json.py").write_text("")
    assert main(["train", "dqn", "deep_sea/3", f"--plugin={given}", "--out", "run"]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "here" / "run").exists()
