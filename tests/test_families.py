"""Families of one's own: declared like the built-in ones, known wherever those are."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import idrl
from idrl.cli.app import main
from idrl.config import resolve
from idrl.envs import HostEnv, Unit, View, families, find, make_env, on_host
from idrl.envs.declaring import steps_of, under_preset
from idrl.envs.families import DEFAULT
from idrl.inspect.play.episode import play
from idrl.inspect.play.rows import Rows
from idrl.inspect.play.sigma import read_sigma
from idrl.inspect.play.views import view
from idrl.report.grouping import sections
from idrl.report.reading import read_run
from idrl.sweep.work import memory_of


def aisle_preset(task):
    """What the task decides, and what it tells a part about its range."""
    return {
        "kinds": {"ensemble": {"k": 3, "hidden": [8]}, "categorical": {"v_min": 0, "v_max": 1}},
        "learning": {"learning_starts_steps": 20},
        "training": {"steps": 60 * task.size, "log_every_steps": 100},
        "evaluation": {"every_steps": 100, "steps": 20 * task.size, "envs": 2},
    }


def aisle_view(seen):
    return View("cells", 5 * seen[:, None, :], "the aisle from above")


@idrl.family(
    "aisle/N",
    options={"slip": 0.0, "both": False, "mode": "walk", "cost": float},
    summary="N cells in a row; ?slip=0.1",
    preset=aisle_preset,
    unit=Unit("cells", 2),
    view=aisle_view,
    named={"icy": {"slip": "0.2"}},
)
class Aisle:
    num_actions = 2

    def __init__(self, size, slip, both, mode, cost=0.01):
        if size < 2:
            raise ValueError("an aisle has 2 cells")
        self.size, self.slip, self.both, self.mode, self.cost = size, slip, both, mode, cost
        self.obs_shape = (size,)

    def task(self, key):
        return ()

    def _see(self, where):
        return (jnp.arange(self.size) == where).astype(jnp.uint8)

    def mapped_states(self):
        return np.eye(self.size, dtype=np.uint8)

    def reset(self, task, key):
        state = (jnp.int32(0), jnp.int32(0))
        return state, self._see(0)

    def step(self, task, state, action, key):
        where = jnp.clip(state[0] + 2 * action - 1, 0, self.size - 1)
        state = (where, state[1] + 1)
        done = where == self.size - 1
        late = (state[1] >= 3 * self.size) & ~done
        return state, idrl.Step(self._see(where), done - self.cost, done, late)


class Turns(gymnasium.Env):
    """Two steps of the side that pays."""

    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, side="left"):
        self.side, self.time = side, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.time += 1
        paid = float(action == (self.side == "right"))
        return np.ones(2, np.float32), paid, self.time == 2, False, {}


@idrl.family("turns/SIDE", arguments=("left", "right"))
def turns(side):
    return Turns(side)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("family") / "run"
    return idrl.train("dqn-ids", "aisle/5?slip=0.1", out=out)


# -- a family works wherever a built-in one does -------------------------------------------------


@pytest.mark.slow
def test_it_trains_by_its_preset_and_evaluates(run):
    config = run.config
    assert (config.env, config.training.steps, config.heads["q"].k) == ("aisle/5?slip=0.1", 300, 3)
    assert config.trunk.kind == "mlp", "the rest is that of small tasks that are not known"
    assert config.explore.lam == 0.1, "and what nobody says is as declared"
    assert len(run.evaluations) == 3
    assert idrl.evaluate(run, episodes=2).episodes.tolist() == [2]


@pytest.mark.slow
def test_it_is_explained_and_played_with_its_own_view(run, capsys):
    assert main(["explain", str(run.path)]) == 0
    episode = play(run.path, max_steps=4)
    assert (episode.view.kind, episode.view.about) == ("cells", "the aisle from above")
    assert episode.view.frames.shape == (len(episode.action), 1, 5)
    assert main(["play", str(run.path), "--max-steps", "4"]) == 0
    assert (run.path / "play.html").is_file()
    assert read_sigma(run.path, 0).maps.shape[1:] == (1, 5), "states in one row"


@pytest.mark.slow
def test_it_is_listed_reported_and_planned(run, capsys):
    assert main(["list", "envs"]) == 0
    assert "aisle/N" in capsys.readouterr().out
    assert families()["turns/SIDE"] == "registered by you: left, right"
    section = sections([read_run(run.path)])[0][0]
    assert (section.family, section.unit, section.length) == ("aisle", "cells", 600)
    assert not on_host("aisle/5")
    assert memory_of(run.config) > 0


def test_a_gymnasium_family_runs_on_the_host():
    env = make_env("turns/right")
    assert isinstance(env, HostEnv)
    assert on_host("turns/left")
    assert (env.name, env.one().unwrapped.side) == ("turns/right", "right")
    assert resolve("dqn", "turns/left").training.envs == 4, "settings of small tasks"


def test_ids_that_ones_own_code_registers():
    gymnasium.register("mine/Turns-v0", entry_point=lambda **options: Turns(**options))
    env = make_env("gym/mine/Turns-v0?side=right")
    assert (env.name, env.one().unwrapped.side) == ("gym/mine/Turns-v0?side=right", "right")


def test_named_presets_and_units_are_any_familys():
    assert under_preset("aisle/5", "icy") == "aisle/5?slip=0.2"
    assert resolve("dqn", "aisle/5?mode=run", named="icy").env == "aisle/5?slip=0.2&mode=run"
    with pytest.raises(idrl.IdrlError, match=r"preset 'icy' has slip=0.2, not 'aisle/5\?slip=0'"):
        under_preset("aisle/5?slip=0", "icy")
    with pytest.raises(idrl.IdrlError, match="others are for .*aisle/"):
        under_preset("turns/left", "icy")
    with pytest.raises(idrl.IdrlError, match="'aisle/5' is counted in cells: use --steps"):
        steps_of(10, "aisle/5")
    assert steps_of(10, "atari/pong") == 3


def test_options_have_the_types_of_their_defaults():
    env = make_env("aisle/4?slip=1&both=1&mode=run")
    assert (env.size, env.slip, env.both, env.mode, env.cost) == (4, 1.0, True, "run", 0.01)
    assert isinstance(env.slip, float)
    assert make_env("aisle/4?cost=0.5").cost == 0.5, "without a default: only where it is given"


def test_a_cell_that_is_run_again_replaces_its_family():
    def define(line):
        @idrl.family("cell", summary=line)
        def cell():
            return Aisle(3, 0.0, False, "walk")

    define("first")
    define("second")
    assert families()["cell"] == "second"


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("aisl/5", "unknown environment 'aisl/5'; did you mean 'aisle/N'"),
        ("aisle", "did you mean 'aisle/N'"),
        ("aisle/", "did you mean 'aisle/N'"),
        ("aisle/five", "'five' is not a whole number"),
        ("aisle/5?slop=1", "unknown option 'slop'; did you mean 'slip'"),
        ("aisle/5?slip=much", "'much' is not a number"),
        ("aisle/5?both=yes", "both is 0 or 1, not 'yes'"),
        ("aisle/5?slip=0&slip=1", "has an option twice: omit one"),
        ("aisle/5?slip", r"options are written \?option=value"),
        ("aisle/1", "'aisle/1' cannot be made: ValueError: an aisle has 2 cells."),
        ("turns/lef", "unknown side of turns 'lef'; did you mean 'left'"),
        ("turns/left?x=1", "turns/left takes no options"),
        ("cartpole/3", "did you mean 'cartpole'"),
    ],
)
def test_wrong_names_are_one_sentence(name, says):
    with pytest.raises(idrl.IdrlError, match=says):
        make_env(name)


@pytest.mark.parametrize(
    ("pattern", "facts", "make", "says"),
    [
        ("aisle/N", {}, lambda n: n, "exists already"),
        ("deep_sea/N", {}, lambda n: n, "exists already"),
        ("lane/n", {}, lambda n: n, "a pattern is 'name', 'name/N'"),
        ("a lane", {}, lambda: 0, "a pattern is 'name', 'name/N'"),
        ("lane/N", {}, lambda: 0, "its constructor takes no N"),
        ("lane/N", {"options": {"x": 0}}, lambda n: n, "takes no option 'x'"),
        ("lane", {"options": {"x": [0]}}, lambda x: x, r"has the default \[0\]"),
        ("lane", {"named": {"p": {"x": "1"}}}, lambda: 0, "preset 'p' has an option 'x'"),
        (
            "lane",
            {"unit": Unit("a step", 1)},
            lambda: 0,
            "it must be a word and how many are a step",
        ),
    ],
)
def test_wrong_declarations_are_one_sentence(pattern, facts, make, says):
    before = families()
    with pytest.raises(idrl.IdrlError, match=says):
        idrl.family(pattern, **facts)(make)
    assert families() == before


def settings_of(name):
    return resolve("dqn", name)


def view_of(name):
    return view(name, Rows(np.zeros((2, 3))))


@pytest.mark.parametrize(
    ("facts", "ask", "says"),
    [
        ({"preset": lambda task: 3}, settings_of, "returns 3; it must return tables of settings"),
        ({"preset": lambda task: task.nothing}, settings_of, "fails: AttributeError"),
        ({"host": True}, make_env, "runs on the device, but its family says host=True"),
        ({"view": lambda seen: seen}, view_of, "is not a View of its 2 observations"),
    ],
)
def test_what_a_family_gets_wrong_is_told_when_it_is_asked(facts, ask, says):
    name = f"odd-{len(families())}"
    idrl.family(name, **facts)(lambda: Aisle(3, 0.0, False, "walk"))
    with pytest.raises(idrl.IdrlError, match=says):
        ask(name)


# -- nothing else has a family's name in it -------------------------------------------------------

SOURCE = Path(idrl.__file__).parent
EXCEPT = {
    "envs/families/": "where they are declared",
    "envs/adapters/": "an object of gymnax or Gymnasium is called as by its family",
    "envs/checking.py": "packages, by which objects are told apart",
    "envs/registry.py": "the libraries whose objects it takes",
    "bsuite/": "bsuite's experiments are lists of tasks, and bsuite is a library",
    "cli/": "what people are told as examples",
    "sweep/study.py": "a study's grid of settings, which is none of cells",
    "report/paper.py": "the games that the paper has scores of, whoever emulates them",
    "storage/older.py": "what names in older folders stood for",
    "storage/folder.py": "versions of libraries",
}


def test_nobody_else_knows_a_family_by_name():
    ours = sorted({name.partition("/")[0] for name in families() if _built_in(name)})
    assert {"deep_sea", "atari", "gym", DEFAULT.partition("/")[0]} <= set(ours)
    name = re.compile(rf"(?<![\w.-])({'|'.join(ours)})(?![\w.-])")
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        where = str(path.relative_to(SOURCE))
        if not where.startswith(tuple(EXCEPT)):
            found += [f"{where}: {text!r}" for text in _texts(path) if name.search(text)]
    assert not found
    for place in EXCEPT:
        files = [SOURCE / place] if place.endswith(".py") else (SOURCE / place).rglob("*.py")
        assert any(name.search(t) for file in files for t in _texts(file)), f"{place} needs no rule"


def _built_in(name):
    return find(name).module.startswith("idrl.")


def _texts(path):
    """Strings that are no documentation, and modules that are imported from a family."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in documents:
                yield node.value
        elif isinstance(node, ast.ImportFrom) and "envs.families." in (node.module or ""):
            yield node.module.rpartition("envs.families.")[2].partition(".")[0]


def test_listing_families_imports_no_library_of_environments():
    code = (
        "import sys; from idrl.envs import families; assert 'gym/ID' in families(); "
        "heavy = {'gymnasium', 'gymnax', 'ale_py', 'brax'} & set(sys.modules); assert not heavy"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
