"""Exported agents: one of each format beside the original, what is refused, and how models of
Stable-Baselines3's manners are asked and scored. All agents, images, C++ and the real package are
in slow/."""

import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import idrl
from idrl import onnx
from idrl.agents import make_agent
from idrl.cli import main
from idrl.config import resolve
from idrl.runs.baselines import numbered
from idrl.runs.exporting import OUTPUTS
from idrl.runs.policy import Policy
from idrl.runs.sizing import shapes
from idrl.system import plugins
from idrl.training import predictors
from idrl.training.spec import cadence, due

OBS = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)


def small(name: str, **explore: float) -> Policy:
    changes = [{"trunk": {"hidden": [8]}, "heads": {"q": {"hidden": [8]}}, "explore": explore}]
    config = resolve(name, "cartpole", changes=changes)
    agent = make_agent(config.spec, (4,), 3)
    rng = np.random.default_rng(0)  # drawn here: initialising would be compiled
    drawn = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(np.float32), shapes(agent))
    return Policy(config, agent, *drawn, 0)


@pytest.fixture(scope="module")
def agent():
    return small("dqn-ids")


def session(path):
    import onnxruntime

    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def same(found, decision):
    np.testing.assert_array_equal(found["action"], decision.action)
    for name in OUTPUTS[1:]:
        np.testing.assert_allclose(found[name], getattr(decision, name), rtol=1e-3, atol=1e-6)


def test_onnx_says_what_the_agent_says_for_any_batch(agent, tmp_path):
    path = agent.export(tmp_path / "policy.onnx", rule="explore")
    run = session(path)
    expected = agent.explain(OBS)
    for count in (1, 7, 50):
        found = run.run(OUTPUTS, {"observation": OBS[:count]})
        first = jax.tree.map(lambda x, count=count: x[:count], expected)
        same(dict(zip(OUTPUTS, found, strict=True)), first)
    about = run.get_modelmeta().custom_metadata_map
    assert (about["agent"], about["env"], about["rule"]) == ("dqn-ids", "cartpole", "explore")


def test_a_mask_is_a_second_input_of_both_formats(agent, tmp_path):
    mask = np.random.default_rng(1).random((50, 3)) < 0.5
    mask[:, 1] |= ~mask.any(1)
    expected = agent.explain(OBS, mask)
    path = agent.export(tmp_path / "policy.onnx", rule="explore", mask=True)
    found = session(path).run(OUTPUTS, {"observation": OBS, "mask": mask})
    same(dict(zip(OUTPUTS, found, strict=True)), expected)
    path = agent.export(tmp_path / "policy.stablehlo", rule="explore", mask=True)
    same(jax.export.deserialize(bytearray(path.read_bytes())).call(OBS, mask), expected)


def test_an_epsilon_of_evaluation_is_left_out(agent, tmp_path):
    from idrl.agents.choosing import EpsilonGreedy

    spec = replace(agent.agent.spec, evaluate=EpsilonGreedy(start=0.5, end=0.5))
    restless = Policy(agent.config, make_agent(spec, (4,), 3), agent.params, agent.prior, 0)
    path = restless.export(tmp_path / "policy.onnx")
    found = session(path).run(["action"], {"observation": OBS})[0]
    np.testing.assert_array_equal(found, agent.predict(OBS))


def test_what_draws_is_refused_with_what_would_be_right(tmp_path):
    for name in ("dqn", "noisynet-dqn", "bootstrapped-dqn"):
        with pytest.raises(idrl.IdrlError, match="by chance.*--rule evaluate"):
            small(name).export(tmp_path / "policy.onnx", rule="explore")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named_and_left_as_it_was(agent, tmp_path, monkeypatch):
    (tmp_path / "there.onnx").write_text("precious")
    (tmp_path / "dangling.onnx").symlink_to(tmp_path / "nowhere")
    for name, match in (
        ("there.onnx", "exists already"),
        ("dangling.onnx", "exists already"),
        ("policy.pt", "ends in .onnx or .stablehlo"),
        ("policy", "ends in .onnx or .stablehlo"),
        ("none/policy.onnx", "no folder"),
        ("there.onnx/policy.onnx", "no folder"),
    ):
        with pytest.raises(idrl.IdrlError, match=match):
            agent.export(tmp_path / name)

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("idrl.runs.exporting.sync", full)
    with pytest.raises(idrl.IdrlError, match="No space left"):
        agent.export(tmp_path / "policy.onnx")
    assert (tmp_path / "there.onnx").read_text() == "precious"
    assert {path.name for path in tmp_path.iterdir()} == {"there.onnx", "dangling.onnx"}


def test_arguments_that_mean_nothing_are_refused(agent, tmp_path):
    for how, match in (
        ({"rule": "greedy"}, "one of evaluate, explore"),
        ({"dtype": "float64"}, "one of float32, uint8"),
    ):
        with pytest.raises(idrl.IdrlError, match=match):
            agent.export(tmp_path / "policy.onnx", **how)


def test_a_missing_extra_is_named(agent, tmp_path, monkeypatch):
    for package, extra, kind in (
        ("onnx", "onnx", "onnx"),
        ("flatbuffers", "stablehlo", "stablehlo"),
    ):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(idrl.IdrlError, match=rf"pip install 'idrl\[{extra}\]'"):
            agent.export(tmp_path / f"policy.{kind}")
    assert list(tmp_path.iterdir()) == []


def test_load_names_what_reads_an_exported_file(agent, tmp_path):
    made = agent.export(tmp_path / "policy.onnx")
    (tmp_path / "renamed").write_bytes(made.read_bytes())
    (tmp_path / "hostile.onnx").write_bytes(b"\x80\x04cos\nsystem\n")
    (tmp_path / "empty.stablehlo").write_bytes(b"")
    for name, reader in (
        ("policy.onnx", "onnxruntime.InferenceSession"),
        ("renamed", "onnxruntime.InferenceSession"),
        ("hostile.onnx", "onnxruntime.InferenceSession"),
        ("empty.stablehlo", "jax.export.deserialize"),
    ):
        with pytest.raises(idrl.IdrlError, match=reader):
            idrl.load(tmp_path / name)
    agent.save(tmp_path / "saved.onnx")  # whatever it is called
    jax.tree.map(
        np.testing.assert_array_equal, idrl.load(tmp_path / "saved.onnx").params, agent.params
    )


def test_the_command_refuses_with_a_sentence(agent, tmp_path, capsys):
    agent.save(tmp_path / "agent")
    (tmp_path / "damaged").write_bytes(b"\x00" * 100)
    for words, match in (
        (["nothing", "a.onnx"], "no run folder"),
        (["damaged", "a.onnx"], "not a safetensors file"),
        (["agent", "a.txt"], "ends in .onnx"),
        (["agent", "agent"], "ends in .onnx"),
        (["agent", "a.onnx", "--seed", "3"], "omit seed=3"),
    ):
        given = [str(tmp_path / word) if i < 2 else word for i, word in enumerate(words)]
        assert main(["export", *given]) == 2
        assert match in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "a.onnx").exists()
    assert main(["export", str(tmp_path / "agent"), str(tmp_path / "a.onnx")]) == 0
    assert "a.onnx" in capsys.readouterr().out


# -- the converter ------------------------------------------------------------------------------


def converted(function, *shapes):
    (batch,) = jax.export.symbolic_shape("batch")
    inputs = [jax.ShapeDtypeStruct((batch, *shape), np.float32) for shape in shapes]
    names = [f"input_{i}" for i in range(len(inputs))]
    traced = jax.jit(function).trace(*inputs).jaxpr
    outputs = [f"output_{i}" for i in range(len(traced.jaxpr.outvars))]
    data = onnx.convert(traced, [], names, outputs, {})

    def call(*arrays):
        import onnxruntime

        run = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        return run.run(outputs, dict(zip(names, arrays, strict=True)))

    return call


def numberwise(x):
    y = jnp.abs(x) + 0.1
    return [
        jnp.log1p(y * 1e-6), jnp.expm1(x * 1e-6), jnp.expm1(x), jax.nn.softplus(x), jax.nn.gelu(x),
        jax.nn.sigmoid(x), jax.nn.elu(x), x**3, y**-1, y**0.3, jax.lax.rsqrt(y), jnp.sign(x),
        jnp.round(x), jnp.floor(x), jnp.ceil(x), jnp.clip(x, -0.5, 0.5), jnp.where(x > 0, x, -1.0),
        jnp.isfinite(x / jnp.maximum(x, 0)), (x > 0) & (x < 1) | ~(x != x), jnp.sin(x), jnp.exp(x),
        x.astype(jnp.int32) % 3, jnp.fmod(x, 0.7), jax.lax.erf(x),
    ]  # fmt: skip


def moved(x):
    index = jnp.argmax(x, -1)
    return [
        x[:, 1], x[:, ::2], x[:, ::-1], x[..., None, :] * jnp.arange(3.0)[:, None], x.T @ x,
        jnp.take_along_axis(x, index[:, None], -1), jnp.stack([x, 2 * x], 1), x.min(-1), x.mean(0),
        jnp.concatenate([x, jnp.ones((x.shape[0], 2))], -1), jnp.cumsum(x, -1), x.prod(-1),
        jnp.pad(x, ((0, 0), (1, 2)), constant_values=7.0), (x > 0).any(-1), (x > -1).all(-1),
        jnp.einsum("ba,bc->bac", x, x), jnp.repeat(x, 2, 0), x.reshape(-1, 2, 3).swapaxes(1, 2),
        jnp.argmin(x, -1), x @ jnp.arange(6.0), jax.nn.softmax(x), jnp.split(x, 2, -1)[1],
    ]  # fmt: skip


@pytest.mark.parametrize("function", [numberwise, moved])
def test_an_operation_becomes_what_it_was(function):
    x = np.random.default_rng(0).normal(size=(9, 6)).astype(np.float32)
    expected = jax.device_get(jax.jit(function)(x))
    found = converted(function, (6,))(x)
    for number, (a, b) in enumerate(zip(expected, found, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), number
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-12, err_msg=str(number))


def test_convolutions_and_a_gather_for_each_row():
    def function(x):
        kernel = jnp.arange(3 * 3 * 2 * 4.0).reshape(3, 3, 2, 4) / 50 - 0.7
        how = ("NHWC", "HWIO", "NHWC")
        y = jax.lax.conv_general_dilated(x, kernel, (2, 1), "SAME", dimension_numbers=how)
        rows = y.mean(1)
        return y, jnp.take_along_axis(rows, rows[..., :1].argmax(1)[:, None], 1)

    x = np.random.default_rng(0).normal(size=(3, 6, 5, 2)).astype(np.float32)
    for a, b in zip(jax.jit(function)(x), converted(function, (6, 5, 2))(x), strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-5)


def test_an_operation_without_a_form_is_named():
    with pytest.raises(onnx.Unsupported, match="sort"):
        converted(lambda x: jnp.sort(x, -1), (6,))


# -- models of other libraries' manners ---------------------------------------------------------


@pytest.mark.parametrize(
    ("obs", "says"),
    [
        (np.full(4, 1e300), "at most 3.4e38"),
        (np.full((2, 4), np.nan), "finite numbers"),
        (np.full(4, 3e38, np.float32), "values of these observations are not finite"),
        (np.zeros((0, 4)), "is empty"),
        (["a"] * 4, "finite numbers"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_observations_that_are_none_are_refused(agent, obs, says):
    with pytest.raises(idrl.IdrlError, match=says):
        agent.predict(obs)


def test_a_model_is_saved_to_a_file(agent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("", ".", tmp_path):
        with pytest.raises(idrl.IdrlError, match="is a folder; name a file"):
            agent.save(folder)
    assert list(tmp_path.iterdir()) == []


def test_the_adapter_answers_as_stable_baselines_would():
    model = small("bootstrapped-dqn", epsilon_end=0.0, redraw_steps=0).sb3(seed=4)
    plain = model.agent
    action, _ = model.predict(OBS[:1], state=None, episode_start=None, deterministic=True)
    single, _ = model.predict(OBS[0], deterministic=True)
    assert (action.shape, single.shape) == ((1,), ())
    assert action[0] == single == plain.predict(OBS[0])
    # By the head that was drawn for the episode, until another begins.
    _, state = model.predict(OBS, episode_start=np.ones(50, bool))
    action, later = model.predict(OBS, state, np.zeros(50, bool))
    np.testing.assert_array_equal(later[0], state[0])
    heads = plain.agent.beliefs(plain.params, plain.prior, OBS).q_heads
    followed = np.take_along_axis(np.asarray(heads), state[0][:, None, None], 1)[:, 0]
    np.testing.assert_array_equal(action, followed.argmax(-1))
    _, anew = model.predict(OBS, state, np.arange(50) < 25)
    assert (anew[0][:25] != state[0][:25]).any()
    np.testing.assert_array_equal(anew[0][25:], state[0][25:])
    for call, match in (
        (lambda: model.predict({"a": OBS}), "one array"),
        (lambda: model.predict(OBS, (np.zeros(3, int),)), "what predict returned"),
        (lambda: model.predict(OBS[:, :2]), r"shape \(4,\)"),
    ):
        with pytest.raises(idrl.IdrlError, match=match):
            call()


class Lean:
    """Pushes to where the pole leans, and counts the steps of each episode."""

    answer = None

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        assert deterministic
        count = np.zeros(len(observation)) if state is None else state
        self.count = np.where(episode_start, 0, count + 1)
        action = (observation[:, 2] > 0).astype(int)
        return (action if self.answer is None else self.answer(action)), self.count


@pytest.mark.slow
def test_anything_with_a_predict_is_scored_over_whole_episodes():
    model = Lean()
    score = idrl.evaluate(model, "cartpole", episodes=10)
    assert score.episodes == 10
    assert 25 < score.return_mean == score.length_mean < 60
    assert model.count.max() < 70  # it began anew with every episode
    cut = idrl.evaluate(model, "cartpole", episodes=10, limit_steps=5)
    assert (cut.return_mean, cut.episodes) == (5, 10)


def test_answers_that_are_no_actions_are_refused():
    def broken(action):
        raise KeyError("weights")

    for answer, match in (
        (lambda a: a + 5, "numbers below 2"),
        (lambda a: a.astype(float), "whole numbers of shape"),
        (lambda a: a[:1], "whole numbers of shape"),
        (broken, r"predict\(.*failed on cartpole: KeyError"),
    ):
        model = Lean()
        model.answer = answer
        player = predictors.Asked(model, 2, "cartpole")
        with pytest.raises(idrl.IdrlError, match=match):
            player(OBS, np.ones(50, bool), None)
    with pytest.raises(idrl.IdrlError, match="`action_masks`"):
        predictors.Asked(Lean(), 2, "cartpole")(
            OBS, np.ones(50, bool), np.ones((50, 2), bool) & [True, False]
        )
    for thing, how, match in (
        (Lean(), {}, "pass env="),
        (Lean(), {"env": "cartpole", "frames": 100}, "frames"),
        (3.5, {"env": "cartpole"}, "float cannot be evaluated"),
    ):
        with pytest.raises(idrl.IdrlError, match=match):
            idrl.evaluate(thing, **how)


@pytest.mark.parametrize(
    "answer", [(0, None, None), ([[0], [0, 1]], None), (["left"], None), (None, None)]
)
def test_an_answer_that_is_no_action_is_one_sentence(answer):
    class Odd:
        def predict(self, observation, state, episode_start, deterministic):
            return answer

    with pytest.raises(idrl.IdrlError, match="Odd.predict") as refused:
        predictors.Asked(Odd(), 2, "cartpole")(OBS[:1], np.ones(1, bool), None)
    assert "\n" not in str(refused.value)


def test_an_object_of_a_file_may_be_of_a_class_that_asks_for_its_module(tmp_path):
    file = tmp_path / "model.py"
    file.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "@dataclass\n"
        "class Model:\n"
        "    actions: int = 3\n"
        "model = Model()\n"
    )
    assert plugins.named_object(f"{file}:model").actions == 3


def test_a_baseline_numbers_its_evaluations_as_a_run_does():
    each = {"every_steps": 300, "steps": 40, "envs": 2}
    training = {"steps": 1_000, "envs": 2}
    learning = {"learning_starts_steps": 64}
    how = resolve("dqn", "cartpole", changes=[{
        "evaluation": each, "training": training, "learning": learning}])  # fmt: skip
    c = cadence(how.training, how.evaluation, how.learning, 100, None, True)
    for iteration in range(1, c.total + 1):
        steps = min(c.steps_at(iteration), 1_000)
        if iteration == c.total or due(c.steps_at(iteration - 1), c.steps_at(iteration), 300):
            assert numbered(steps, 300, 1_000) == c.evaluation(iteration), steps
