"""Parts of one's own: those of docs/extending.md train together, and mistakes are sentences."""

import csv
import importlib.util
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import idrl
from idrl.agents import make_agent
from idrl.agents.choosing import Greedy
from idrl.agents.registry import _AGENTS
from idrl.cli import main
from idrl.config import assignments, resolve
from idrl.networks.heads import Categorical, Ensemble, Transition
from idrl.networks.trunks import Mlp
from idrl.runs.policy import Policy
from idrl.runs.sizing import shapes
from idrl.schema import build, to_dict
from idrl.storage.records import Table

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
SECTIONS = ("A rule", "A head", "A trunk", "An optimiser", "An agent")


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """The module that the page's blocks make."""
    text = PAGE.read_text(encoding="utf-8")
    sections = {part.split("\n")[0]: part for part in re.split(r"^## ", text, flags=re.M)}
    blocks = [re.findall(r"```python\n(.*?)```", sections[name], re.S) for name in SECTIONS]
    path = tmp_path_factory.mktemp("code") / "parts_of_the_page.py"
    path.write_text("\n\n".join(block for some in blocks for block in some), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    kept = dict(_AGENTS)
    spec.loader.exec_module(module)
    yield module
    _AGENTS.clear()
    _AGENTS.update(kept)  # others ask for all agents
    del sys.modules[path.stem]


@pytest.fixture(scope="module")
def run(mine, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    return idrl.train("normal-boltzmann", "deep_sea/5", steps=500, out=path)


def column(run, name):
    with open(run.path / "metrics.csv", encoding="utf-8", newline="") as file:
        return [float(row[name]) for row in csv.DictReader(file)]


@pytest.mark.slow
def test_own_parts_train_and_their_metrics_are_recorded(run, mine):
    config = run.config
    assert config.trunk == mine.Normed(width=16)  # as declared, not as the preset would have it
    assert config.optimiser == mine.Lion(lr=1e-3)
    assert config.heads == {"z": mine.Normal(hidden=(16,))}
    assert config.learning.update_every_steps == 2
    assert (config.training.envs, config.evaluation.every_steps) == (1, 250)  # deep_sea's
    assert all(0 < x < 0.7 for x in column(run, "entropy"))  # ln 2 at most
    assert all(x > 0.01 for x in column(run, "return_std"))
    assert len(column(run, "loss_z")) == len(column(run, "entropy")) == 2


@pytest.mark.slow
def test_configs_name_own_parts(run):
    data = to_dict(run.config)
    assert data["explore"] == {"kind": "boltzmann", "temperature": 0.1}
    assert data["optimiser"] == {"kind": "lion", "max_grad_norm": 0.0, "lr": 1e-3}
    assert build(type(run.config), data) == run.config
    assert idrl.open_run(run.path).config == run.config
    changed = resolve(None, None, file=data, changes=assignments(["explore.temperature=2"]))
    assert changed.explore.temperature == 2
    with pytest.raises(idrl.IdrlError, match=r"explore\.temperature is -1\.0; it must be positive"):
        resolve(None, None, file=data, changes=assignments(["explore.temperature=-1"]))


@pytest.mark.slow
def test_a_run_of_own_parts_goes_on(run):
    before = (run.path / "metrics.csv").read_text(encoding="utf-8")
    longer = idrl.train(resume=run.path, steps=750)
    after = (run.path / "metrics.csv").read_text(encoding="utf-8")
    assert after.startswith(before)
    assert len(column(longer, "entropy")) == 3
    assert idrl.load(longer).predict(jnp.zeros((5, 5))).shape == ()


def test_own_parts_are_listed(mine, capsys):
    for category, line in (
        ("rules", "boltzmann An action drawn with probabilities"),
        ("heads", "normal The return as a normal distribution"),
        ("trunks", "normed One dense layer, normalised."),
        ("optimisers", "lion Lion (Chen et al. 2023)."),
        ("agents", "normal-boltzmann All of the parts above."),
    ):
        assert main(["list", category]) == 0
        # Where a name is long, as tests before this one may have registered, lines are others.
        assert line in " ".join(capsys.readouterr().out.split())


# -- exports -----------------------------------------------------------------------------------


def untrained(name, **changes):
    config = replace(resolve(name, "cartpole"), **changes)
    agent = make_agent(config.spec, (4,), 3)
    rng = np.random.default_rng(0)  # drawn here: initialising would be compiled
    drawn = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(np.float32), shapes(agent))
    return Policy(config, agent, *drawn, 0)


def test_own_parts_are_exported(mine, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    agent = untrained("normal-boltzmann")
    assert agent.export(tmp_path / "policy.stablehlo").stat().st_size > 1000
    path = agent.export(tmp_path / "policy.onnx")
    obs = np.random.default_rng(1).normal(size=(7, 4)).astype(np.float32)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (found,) = session.run(["action"], {"observation": obs})
    np.testing.assert_array_equal(found, agent.predict(obs))


def test_a_part_that_counts_the_batch_is_told_how(mine, tmp_path):
    class Counting(nn.Module):
        @nn.compact
        def __call__(self, obs):
            return nn.Dense(4)(obs.reshape(len(obs), -1))

    trunk = registered(idrl.Trunk, idrl.Trunk, module=lambda self, shape: Counting())
    agent = untrained("normal-boltzmann", trunk=trunk)
    for name in ("policy.onnx", "policy.stablehlo"):
        with pytest.raises(idrl.IdrlError, match=r"write x\.shape\[0\] .*, not len\(x\)"):
            agent.export(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_what_a_head_of_ones_own_replays_by_is_its_error_even_where_its_loss_is_negative(mine):
    """The page's head learns a density, whose loss is below 0 where it is sure."""
    head = mine.Normal(hidden=(16,))
    out = jnp.array([[[[0.5, -3.0], [0.2, -3.0]]]])  # mean and log of the deviation, two actions
    target = jnp.array([[[[0.5, -3.0], [0.9, -3.0]]]])
    batch = Transition(
        s_tm1=jnp.zeros((1, 4)), a_tm1=jnp.array([1]), r_t=jnp.array([-0.25]),
        discount_t=jnp.array([0.9]), s_t=jnp.zeros((1, 4)),
        allowed_t=jnp.array([[True, False]]),
    )  # fmt: skip
    out, target = (x.reshape(1, 1, 4) for x in (out, target))
    assert head.loss(out, target, target, batch)[0] < 0
    # 0.9 is not allowed, so the target is -0.25 + 0.9 · 0.5.
    np.testing.assert_allclose(head.td_priority(out, target, target, batch), [0.0], atol=1e-7)
    batch = batch._replace(allowed_t=None)
    np.testing.assert_allclose(
        head.td_priority(out, target, target, batch), [0.9 * 0.9 - 0.25 - 0.2], rtol=1e-6
    )


# -- presets -----------------------------------------------------------------------------------


def declare(**changes):
    spec = idrl.AgentSpec(
        trunk=Mlp(hidden=(7,)),
        heads={"z": Categorical(hidden=(9,), atoms=11)},
        explore=Greedy(),
        evaluate=Greedy(),
        learning=idrl.Learning(batch_size=5, gamma=0.9, learning_starts_steps=50),
    )
    return replace(spec, **changes)


@pytest.fixture
def agents(monkeypatch):
    monkeypatch.setattr("idrl.agents.registry._AGENTS", dict(_AGENTS))


def test_a_preset_lays_over_a_declaration_what_the_task_decides(agents):
    idrl.register_agent("modest", declare)
    config = resolve("modest", "deep_sea/10")
    spec, z = config.spec, config.heads["z"]
    assert replace(spec, heads=declare().heads) == declare()
    assert (z.hidden, z.atoms, z.v_min, z.v_max) == ((9,), 11, 0.0, 1.0)
    built_in = resolve("c51", "deep_sea/10")
    assert (config.training, config.evaluation) == (built_in.training, built_in.evaluation)
    # a discount that is part of the task, and rewards as Atari has them
    chained = resolve("modest", "noisy_chain/6").learning
    assert chained == replace(declare().learning, gamma=0.99)
    assert resolve("modest", "atari/pong").learning.rewards == "clip"


def test_a_declaration_may_ask_for_all_of_a_preset(agents, mine):
    @idrl.agent("eager", presets="all")
    def eager():
        return declare()

    config, like = resolve("eager", "deep_sea/10"), resolve("c51", "deep_sea/10")
    assert (config.trunk, config.optimiser) == (like.trunk, like.optimiser)
    assert config.heads["z"].hidden == (64,)
    # Own parts have settings that no preset knows.
    own = {"trunk": mine.Normed(), "heads": {"z": mine.Normal()}, "optimiser": mine.Lion()}
    idrl.register_agent("eager-too", lambda: declare(**own), presets="all")
    config = resolve("eager-too", "deep_sea/10")
    assert {name: getattr(config, name) for name in own} == own
    assert config.learning.target_every_steps == like.learning.target_every_steps
    # nor need their networks expect weights in bfloat16, which a GPU has on Atari
    precisions = {
        name: resolve(name, "atari/pong").learning.precision for name in ("eager", "eager-too")
    }
    assert precisions == {"eager": "auto", "eager-too": "full"}


def test_agents_that_are_refused(agents):
    for given, sentence in (
        (
            ("one", declare, "some"),
            "presets is 'some' for the agent 'one'; it must be 'task' or 'all'",
        ),
        (("one", declare()), "declared by a function that returns an AgentSpec"),
        (("dqn", declare), "an agent named 'dqn' is registered already"),
        (("", declare), "cannot be called ''"),
    ):
        with pytest.raises(idrl.IdrlError, match=sentence):
            idrl.register_agent(*given)
    idrl.register_agent("late", lambda: declare(learning=idrl.Learning()))
    with pytest.raises(idrl.IdrlError, match="'late' starts to learn after 50,000 steps"):
        resolve("late", "deep_sea/10")
    idrl.register_agent("one", lambda: None)
    with pytest.raises(idrl.IdrlError, match="returned None, no AgentSpec"):
        resolve("one", "deep_sea/10")


# -- mistakes ----------------------------------------------------------------------------------


def registered(category, base, **members):
    """A part of the kind "flawed" with these members, in the registry or not."""
    cls = dataclass(frozen=True)(type("Flawed", (base,), {"__module__": __name__, **members}))
    return category.register("flawed")(cls)()


@pytest.fixture(autouse=True)
def no_flaws_are_left():
    yield
    for category in (idrl.Rule, idrl.Head, idrl.Trunk, idrl.Optimiser):
        category.kinds.pop("flawed", None)


def deciding(change):
    """A greedy rule whose decision is changed."""

    def call(self, beliefs, context):
        return change(idrl.rules.greedy(beliefs.q_heads), beliefs)

    return {"__call__": call}


def test_a_part_without_its_methods_is_refused():
    for category, sentence in (
        (idrl.Rule, "the rule 'flawed': Flawed lacks __call__"),
        (idrl.Head, "the head 'flawed': Flawed lacks loss, module and q_heads"),
        (idrl.Trunk, "the trunk 'flawed': Flawed lacks module"),
        (idrl.ActorRule, "the rule 'flawed': Flawed lacks act"),
    ):
        with pytest.raises(idrl.IdrlError, match=sentence):
            registered(category, category)


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        (deciding(lambda said, _: said.action), "answers with .*, not with a Decision"),
        (deciding(lambda said, _: said._replace(action=said.mu)), "decision's action is of shape"),
        (deciding(lambda said, _: said._replace(action=said.mu[:, 0])), "must be whole numbers"),
        (deciding(lambda said, x: said if x.q_heads.max() > 0 else None), "a Python `if`"),
        (deciding(lambda said, x: said.nonsense), "failed: AttributeError: .*nonsense"),
        (
            {**deciding(lambda said, _: said), "metrics": lambda *_: {"q_max": jnp.float32(0)}},
            "has a metric 'q_max', which a run records already",
        ),
        (
            {**deciding(lambda said, _: said), "metrics": lambda *_: {"a b": jnp.float32(0)}},
            "a name is letters, digits and _",
        ),
        (
            {**deciding(lambda said, _: said), "keep": lambda self, said, _: said.mu},
            "the memory that it keeps is of shape",
        ),
    ],
)
def test_mistakes_in_a_rule(members, sentence):
    rule = registered(idrl.Rule, idrl.Rule, **members)
    with pytest.raises(idrl.IdrlError, match=f"the rule 'flawed'.*{sentence}"):
        make_agent(declare(explore=rule), (4,), 3)


@pytest.mark.slow
def test_a_rule_keeps_a_number_from_step_to_step():
    def choose_in_turn(self, beliefs, context):
        score = jnp.arange(3) == context.memory[:, None] % 3
        return idrl.rules.chosen(beliefs.q_heads, score.astype(float))

    rule = registered(
        idrl.Rule, idrl.Rule, __call__=choose_in_turn,
        remember=lambda self, memory, first, key, k: jnp.where(first, 1, memory),
        keep=lambda self, decision, context: context.memory + 1,
    )  # fmt: skip
    agent = make_agent(declare(explore=rule), (4,), 3)
    obs, memory = jnp.ones((2, 4)), agent.blank_memory(2)
    state = agent.init(jax.random.key(0), obs)
    taken = []
    for first in ([True, True], [False, False], [False, True]):
        given = (obs, jnp.array(first), memory, jax.random.key(1), 0)
        decision, memory = agent.choose(rule, state.params, state.prior, *given)
        taken.append(decision.action.tolist())
    assert taken == [[1, 1], [2, 2], [0, 1]]


def test_what_a_rule_needs_is_asked_for():
    calls = {"__call__": lambda *_: None}
    for needs, sentence in (
        ({"min_members": 3}, r"explore\.kind=flawed compares .* at least 3 of them, not 1"),
        ({"needs_distribution": True}, r"explore\.kind=flawed needs a head that learns"),
    ):
        rule = registered(idrl.Rule, idrl.Rule, **calls, **needs)
        with pytest.raises(idrl.IdrlError, match=sentence):
            declare(explore=rule, heads={"q": Ensemble(k=1)}).check()
        idrl.Rule.kinds.pop("flawed")


def test_mistakes_in_the_other_parts(mine):
    flat = registered(idrl.Trunk, idrl.Trunk, module=lambda self, shape: nn.LayerNorm())
    with pytest.raises(idrl.IdrlError, match="the trunk 'flawed': its features is of shape"):
        make_agent(declare(trunk=flat), (4, 4), 3)
    wrong = {"loss": lambda self, *_: jnp.float32(0)}
    head = registered(idrl.Head, mine.Normal, **wrong)
    with pytest.raises(idrl.IdrlError, match=r"'flawed': its loss is of shape \[\] for 3 states"):
        make_agent(declare(heads={"z": head}), (4,), 3)
    idrl.Head.kinds.pop("flawed")
    flat = {"q_heads": lambda self, out: self.moments(out)[0]}
    head = registered(idrl.Head, mine.Normal, **flat)
    with pytest.raises(idrl.IdrlError, match=r"q_heads is of shape \[3, 3\] .* \[3, 1, 3\]"):
        make_agent(declare(heads={"z": head}), (4,), 3)
    bad = registered(idrl.Optimiser, idrl.Optimiser, make=lambda self: optax.adam)
    with pytest.raises(idrl.IdrlError, match="the optimiser 'flawed' failed"):
        make_agent(declare(optimiser=bad), (4,), 3)


def test_a_head_in_measured_units_needs_its_own_rescaled(mine):
    learning = idrl.Learning(unit="measured", learning_starts_steps=50)
    head = registered(idrl.Head, mine.Normal, measured_by="reward")
    with pytest.raises(idrl.IdrlError, match="'flawed' is measured by 'reward' but has no `resc"):
        make_agent(declare(heads={"z": head}, learning=learning), (4,), 3)
    idrl.Head.kinds.pop("flawed")
    for base, members in (
        (mine.Normal, {}),
        (mine.Normal, {"measured_by": "reward", "rescaled": lambda self, params, _: params}),
        (Categorical, {}),
    ):
        head = registered(idrl.Head, base, **members)
        make_agent(declare(heads={"z": head}, learning=learning), (4,), 3)
        idrl.Head.kinds.pop("flawed")


def test_a_table_says_what_it_has_no_column_for(tmp_path):
    path = tmp_path / "metrics.csv"
    Table(path).append([{"steps": 1, "loss": 0.5}])
    with pytest.warns(UserWarning, match="metrics.csv was begun without 'entropy'"):
        Table(path).append([{"steps": 2, "loss": 0.5, "entropy": 1.0}])
    assert path.read_text() == "steps,loss\n1,0.5\n2,0.5\n"
