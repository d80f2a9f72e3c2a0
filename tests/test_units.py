"""Units that an agent measures: the same run at any scale of rewards, and what changes keep."""

from dataclasses import dataclass

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

import idrl
import idrl.networks.heads
from idrl.agents import make_agent, units
from idrl.config import resolve
from idrl.errors import IdrlError
from idrl.networks import layers
from idrl.networks.heads.base import Transition
from idrl.replay.magnitudes import nothing
from idrl.runs.session import make_program
from idrl.schema import parse_assignment, to_dict

SIX = ("dqn", "bootstrapped-dqn", "qr-dqn", "dqn-ids", "c51-ids", "qrdqn-ids")
FACTORS = (1.0, 1024.0, 1 / 1024)


def _slow(*, but: str) -> list:
    """All six; those that are not named are left to the slow tier."""
    return [pytest.param(a, marks=[] if a == but else pytest.mark.slow) for a in SIX]


def _settings(agent: str) -> list[str]:
    epsilon = "decay_steps" if agent in ("dqn", "qr-dqn") else "epsilon_decay_steps"
    heads = [name for name in ("q", "z") if name in idrl.agents.declared(agent).heads]
    return [
        "trunk.hidden=[8]", *(f"heads.{name}.hidden=[8]" for name in heads),
        "learning.learning_starts_steps=40", "learning.target_every_steps=40",
        "learning.batch_size=8", "learning.replay_capacity=400", f"explore.{epsilon}=60",
        "training.distributions_every_steps=0", "evaluation.every_steps=120",
        "evaluation.steps=40", "evaluation.envs=2",
    ]  # fmt: skip


def _trained(agent: str, env, out) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What the last checkpoint holds, and the metrics."""
    run = idrl.train(agent, env, steps=240, envs=2, seed=3, settings=_settings(agent), out=out)
    state = load_file(max(run.path.glob("checkpoints/*/*.safetensors")))
    return state, run.metrics


def check_same(found, factor, base) -> None:
    state, metrics = found
    before, metrics_before = base
    facts, facts_before = state["replay/facts"], before["replay/facts"]
    np.testing.assert_array_equal(facts[..., 0], facts_before[..., 0])  # the actions
    assert facts[..., 1].any()  # rewards
    np.testing.assert_array_equal(facts[..., 1], factor * facts_before[..., 1])
    for name, array in state.items():
        if name.startswith(("agent/params/heads", "agent/params/trunk", "agent/opt_state")):
            np.testing.assert_array_equal(array, before[name], err_msg=name)
        if name.startswith("agent/params/units"):
            np.testing.assert_array_equal(array, factor * before[name], err_msg=name)
    for name, power in (("q_max", 1), ("sigma_max", 1), ("rho2_max", 2), ("loss_q", 0)):
        if name in metrics:  # in the task's own units
            told = np.asarray(metrics_before[name]) * factor**power
            np.testing.assert_array_equal(metrics[name], told, err_msg=name)


@pytest.mark.parametrize("agent", _slow(but="c51-ids"))
def test_a_scale_of_rewards_changes_no_action_on_the_device(agent, tmp_path):
    found = [_trained(agent, f"grid/harvest?scale={f}", tmp_path / str(f)) for f in FACTORS]
    for one, factor in zip(found[1:], FACTORS[1:], strict=True):
        check_same(one, factor, found[0])


class Corridor(gymnasium.Env):
    """Five places in a row; each step costs 3, the last place pays 70."""

    observation_space = gymnasium.spaces.Box(0, 1, (5,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, scale: float):
        self.scale, self.where = scale, 0

    def _seen(self):
        return np.eye(5, dtype=np.float32)[self.where]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.where = int(self.np_random.integers(2))
        return self._seen(), {}

    def step(self, action):
        self.where = max(0, self.where + (1 if action else -1))
        over = self.where == 4
        return self._seen(), self.scale * (70.0 if over else -3.0), over, False, {}


@pytest.mark.slow
@pytest.mark.parametrize("agent", SIX)
def test_a_scale_of_rewards_changes_no_action_on_the_host(agent, tmp_path):
    found = [_trained(agent, lambda f=f: Corridor(f), tmp_path / str(f)) for f in FACTORS]
    for one, factor in zip(found[1:], FACTORS[1:], strict=True):
        check_same(one, factor, found[0])


def test_a_unit_stays_while_it_fits():
    sizes = jnp.array([0.0, 1.0, 3.0, 0.26, 0.24, 5.0])
    old = jnp.array([0.0, 0.0, 4.0, 1.0, 1.0, 4.0])
    np.testing.assert_array_equal(units.fitting(old, sizes), [0, 2, 4, 1, 0.25, 8])


@pytest.mark.parametrize(
    "agent", ["dqn", "dueling", "noisynet-dqn", "bdqn", "iqn-ids", "qrdqn-ids"]
)
def test_another_unit_leaves_what_was_learned(agent):
    """What is believed, in the task's units, is the same to the bit, with no prior on top."""
    changes = [{"heads": {"q": {"prior_scale": 0.0}}}] if agent.endswith("-ids") else []
    spec = resolve(agent, "cartpole", changes=changes).spec
    made = make_agent(spec, (4,), 2)
    obs = jax.random.normal(jax.random.key(1), (3, 4))
    seen = nothing(1)._replace(square=jnp.float32(0.5), highest=jnp.float32(0.9))
    state = made.remeasured(made.init(jax.random.key(0), obs), seen)
    later = made.remeasured(state, seen._replace(highest=jnp.float32(99)))
    assert later.params["units"] != state.params["units"]
    for params, before in ((later.params, state.params), (later.target, state.target)):
        out, out_before = (made.beliefs(p, {}, obs).q_heads for p in (params, before))
        np.testing.assert_array_equal(out, out_before)


@pytest.mark.parametrize("dueling", [False, True])
def test_another_unit_leaves_distributions_but_for_rounding_to_atoms(dueling):
    """Of returns well within both ranges, as they are when a unit changes."""
    head = idrl.networks.heads.Categorical(hidden=(), dueling=dueling)
    means, spreads = jnp.array([-1.5, 0.3, 2.0]), jnp.array([0.8, 0.6, 1.1])
    wanted = -0.5 * ((head.support - means[:, None]) / spreads[:, None]) ** 2
    params = head.module(3).init(jax.random.key(0), jnp.zeros((1, 2)))
    layers = list(params["params"].values())
    for layer in layers:
        layer["kernel"] = jnp.zeros_like(layer["kernel"])
    # The first stream is that of the advantages, which add up to 0 here where there are two.
    common = wanted.mean(0) if dueling else jnp.zeros(head.atoms)
    layers[0]["bias"] = (wanted - common).reshape(1, -1)
    if dueling:
        layers[1]["bias"] = common[None]

    def said(weights, unit):
        out = head.module(3).apply(weights, jnp.ones((1, 2)))
        return head.q_heads(out)[0, 0] * unit, jnp.sqrt(head.return_variance(out)[0]) * unit

    np.testing.assert_allclose(said(params, 1)[0], means, atol=1e-3)
    np.testing.assert_allclose(said(params, 1)[1], spreads, rtol=1e-2)
    for factor in (0.5, 2.0):
        changed = head.rescaled(params, jnp.float32(factor))
        q, spread = said(changed, 1 / factor)
        np.testing.assert_allclose(q, means, atol=0.02)
        np.testing.assert_allclose(spread, spreads, rtol=0.06)
    same = head.rescaled(params, jnp.float32(1))
    jax.tree.map(np.testing.assert_array_equal, same, params)


def test_magnitudes_are_what_rows_say():
    seen, going = nothing(2), {"terminated": jnp.zeros(2, bool), "valid": jnp.ones(2, bool)}
    seen = seen.after(jnp.array([1.0, -4.0]), **going, gamma=0.5, count=jnp.int32(1), rows=100)
    seen = seen.after(jnp.array([1.0, -2.0]), **going, gamma=0.5, count=jnp.int32(2), rows=100)
    np.testing.assert_allclose(seen.gain, [1.5, -2.0])
    np.testing.assert_allclose(seen.loss, [1.0, -4.0])
    np.testing.assert_allclose(seen.typical, ((17 / 2 + 5 / 2) / 2) ** 0.5, rtol=1e-6)
    assert seen.largest == 4
    np.testing.assert_allclose(seen.bounds(0.5), [-8.0, 2.0])
    ends = {"terminated": jnp.array([True, False]), "valid": jnp.array([True, False])}
    over = seen.after(jnp.zeros(2), **ends, gamma=0.5, count=jnp.int32(3), rows=100)
    np.testing.assert_array_equal(over.gain, [0, 0])  # terminated, and cut by a time limit
    np.testing.assert_allclose(over.largest, 4 * 0.99)  # it fades with the replay, no sooner


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_costs_hide_no_goal_and_no_scale_is_too_large(scale):
    seen = nothing(1)
    for n, reward in enumerate([-1.0] * 30 + [100.0]):
        seen = seen.after(
            jnp.array([reward * scale]), jnp.array([n == 30]), jnp.array([True]), 0.99,
            jnp.int32(n + 1), 1000,
        )  # fmt: skip
    np.testing.assert_allclose(seen.largest, 100 * scale, rtol=1e-6)
    np.testing.assert_allclose(seen.typical, (10030 / 31) ** 0.5 * scale, rtol=1e-5)


def test_in_less_precision_too_and_of_every_head():
    """A last layer of 2²⁰ weights is bfloat16 in the target."""
    changes = [{"learning": {"precision": "mixed"}, "heads": {"z": {"hidden": [4096]}}}]
    made = make_agent(resolve("qr-dqn", "cartpole", changes=changes).spec, (4,), 6)
    obs = jax.random.normal(jax.random.key(1), (3, 4))
    state = made.init(jax.random.key(0), obs)
    seen = nothing(1)._replace(square=jnp.float32(0.5), highest=jnp.float32(0.9))
    later = made.remeasured(made.remeasured(state, seen), seen._replace(highest=jnp.float32(99)))
    same = jax.tree.map(lambda a, b: a.dtype == b.dtype, later, state)
    assert all(jax.tree.leaves(same))


def test_a_head_of_ones_own_keeps_the_units_of_the_task():
    class Own(idrl.networks.heads.Quantile):  # type: ignore[name-defined]
        measured_by = None

    seen = nothing(1)._replace(square=jnp.float32(0.5), highest=jnp.float32(9.0))
    found = units.fitted(units.no_units({"z": Own()}), {"z": Own()}, seen)
    assert found == {"z": 1}


def test_priorities_follow_the_unit():
    """Into a smaller one; in a larger one what is there already keeps its own, and what made the
    unit grow must not come behind it."""
    from idrl.replay import ring

    row = ring.Row(jnp.zeros((1, 2)), jnp.zeros(1, jnp.int32), *[jnp.zeros(1)] * 3)
    replay = ring.empty(row, 4, prioritised=True)
    for factor, largest in ((1.0, 1.0), (4.0, 2.0), (0.25, 1.0)):
        after = ring.with_unit(replay, jnp.float32(factor), 0.5)
        assert after.priorities.largest == largest


def test_with_an_actor_units_are_the_tasks():
    with pytest.raises(IdrlError, match="learning.unit=task"):
        resolve("td3", "pendulum", changes=[{"learning": {"unit": "measured"}}])


def test_the_papers_constants_are_there_for_any_task():
    spec = resolve("c51-ids", "grid/traps", named="paper").spec
    assert (spec.learning.unit, spec.learning.rewards) == ("task", "clip")
    assert (spec.explore.lam, spec.explore.noise, spec.explore.epsilon_end) == (
        0.1,
        "normalized",
        0,
    )
    assert (spec.heads["q"].prior_scale, spec.heads["z"].v_max) == (0, 10)


def test_the_config_of_an_older_run_means_what_it_did():
    config = to_dict(resolve("c51-ids", "cartpole"))
    del config["learning"]["unit"], config["heads"]["q"]["target"]
    del config["explore"]["epsilon_start"], config["explore"]["relative"]
    config["heads"]["z"] |= {"v_min": 0.0, "v_max": 100.0}
    found = resolve(None, None, file=config)
    assert found.learning.unit == "task"
    assert found.heads["q"].target == "own"
    assert (found.explore.epsilon_start, found.explore.relative) == (0.0, False)
    assert (found.heads["z"].v_min, found.heads["z"].v_max) == (0.0, 100.0)
    part = resolve(None, None, file={"agent": "c51-ids", "env": "cartpole", "seeds": 2})
    assert part.learning.unit == "measured"  # the rest is the preset's


def test_in_the_task_s_units_no_number_of_measured_ones_is_left():
    found = resolve("c51-ids", "cartpole", changes=[{"learning": {"unit": "task"}}])
    declared = idrl.agents.declared("c51-ids")
    for name in ("v_min", "v_max"):
        assert getattr(found.heads["z"], name) == getattr(declared.heads["z"], name)
    assert found.heads["q"].prior_scale == declared.heads["q"].prior_scale
    own = {"learning": {"unit": "task"}, "heads": {"q": {"prior_scale": 3.0}}}
    assert resolve("c51-ids", "cartpole", changes=[own]).heads["q"].prior_scale == 3.0


def test_the_paper_has_no_settings_for_continuous_actions():
    with pytest.raises(IdrlError, match="it has no settings for 'sac'; omit the preset"):
        resolve("sac", "pendulum", named="paper")


def test_layers_of_one_s_own_are_not_rescaled_by_guessing():
    with pytest.raises(IdrlError, match="it needs a `rescaled`"):
        layers.rescaled({"Dense_0": {"kernel": jnp.ones(3)}}, (8,), jnp.float32(2))


def test_a_gain_that_is_a_squared_return_has_its_unit():
    q = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    how = {"info_gain": "variance", "eps2": 0.0}
    told, wanted = idrl.ids.decide(q, **how).times(1024.0, True), idrl.ids.decide(1024 * q, **how)
    for name in ("mu", "sigma", "regret", "info_gain", "ratio"):
        np.testing.assert_allclose(getattr(told, name), getattr(wanted, name), rtol=1e-5)
    assert resolve("dqn-ids", "cartpole").explore.gain_in_returns is False


@pytest.mark.parametrize("setting", ["redraw_steps", "epsilon_decay_steps"])
def test_counts_fit_into_32_bits(setting):
    with pytest.raises(IdrlError, match=f"explore.{setting} is 3000000000; it must be from 0 to"):
        resolve("bootstrapped-dqn", "cartpole", changes=[{"explore": {setting: 3_000_000_000}}])


def test_the_random_steps_set_the_unit():
    changes = [parse_assignment(text) for text in _settings("dqn-ids")]
    config = resolve("dqn-ids", "grid/harvest?scale=100", changes=changes)
    program = make_program(config, idrl.envs.make_env(config.env))
    state, _ = program.start(program.seed_keys(0))
    assert (np.asarray(state.agent.params["units"]["q"]) > 1).all()
    program.close()


def _batch(**changes):
    batch = Transition(
        s_tm1=jnp.zeros((1, 4)), a_tm1=jnp.array([0]), r_t=jnp.array([1.0]),
        discount_t=jnp.array([0.9]), s_t=jnp.zeros((1, 4)),
    )  # fmt: skip
    return batch._replace(**changes)


def test_no_return_is_beyond_what_is_possible():
    values = jnp.array([-9.0, -1.0, 0.5, 7.0])
    np.testing.assert_array_equal(_batch().possible(values), values)
    batch = _batch(returns=(jnp.float32(-2), jnp.float32(3)))
    np.testing.assert_array_equal(batch.possible(values), [-2, -1, 0.5, 3])
    each = _batch(returns=(jnp.array([-2.0, 0.0]), jnp.array([3.0, 5.0])))
    found = each.possible(jnp.tile(values, (2, 1, 1)))
    np.testing.assert_array_equal(found, [[[-2, -1, 0.5, 3]], [[0, 0, 0.5, 5]]])


@pytest.mark.parametrize("agent", ["qrdqn-ids", "iqn-ids"])
def test_bounds_are_in_a_heads_unit_and_q_values_have_none(agent):
    """Where the best return is at a bound, all actions would look the same."""
    made = make_agent(resolve(agent, "cartpole").spec, (4,), 2)
    state = made.init(jax.random.key(0), jnp.zeros((1, 4)))
    params = state.params | {"units": {name: jnp.float32(4) for name in state.params["units"]}}
    batch = _batch(returns=(jnp.float32(-8), jnp.float32(12)))
    noise = made._measured(params, made.z_name, batch)
    np.testing.assert_array_equal(noise.returns, [[-2], [3]])  # of each transition
    np.testing.assert_array_equal(noise.r_t, [0.25])
    assert made._measured(params, made.q_name, batch).returns is None


@pytest.mark.parametrize("agent", ["qrdqn-ids", "iqn-ids"])
def test_what_a_target_has_beyond_the_bounds_is_not_learned(agent):
    head = make_agent(resolve(agent, "cartpole").spec, (4,), 2).heads["z"]
    module, features = head.module(1), jax.random.normal(jax.random.key(1), (1, 8))
    out = module.apply(module.init(jax.random.key(0), features), features)
    wild = jax.tree.map(lambda x: 100 * (x + 1), out)
    tame = jax.tree.map(lambda x: jnp.clip(x, -2, 3), wild)
    bounded = _batch(returns=(jnp.float32(-2), jnp.float32(3)))
    found, wanted = head.loss(out, out, wild, bounded), head.loss(out, out, tame, _batch())
    np.testing.assert_array_equal(found, wanted)
    assert (head.loss(out, out, wild, _batch()) > found).all()


def test_a_head_may_take_its_batch_apart():
    @idrl.head("transition_by_transition")
    @dataclass(frozen=True, kw_only=True)
    class Apart(idrl.networks.heads.Quantile):  # type: ignore[name-defined]
        def loss(self, out_tm1, online_t, target_t, batch):
            def one(values, target, seen):
                return ((values - seen.r_t - seen.possible(target)) ** 2).mean()

            return jax.vmap(one)(self.values(out_tm1), self.values(target_t), batch)

    changes = [{"heads": {"z": {"kind": "transition_by_transition", "quantiles": 7}}}]
    made = make_agent(resolve("qrdqn-ids", "cartpole", changes=changes).spec, (4,), 2)
    state = made.init(jax.random.key(0), jnp.zeros((1, 4)))
    batch = jax.tree.map(lambda x: jnp.repeat(x, 3, 0), _batch())
    bounded = batch._replace(returns=(jnp.float32(-8), jnp.float32(12)))
    _, metrics, _ = made.learn(state, bounded, jax.random.key(1))
    assert np.isfinite(metrics["loss_z"])
