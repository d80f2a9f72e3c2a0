"""What decides whether the paper's scores reproduce, row by row, in three presets of Atari.

Rows that are a setting are looked up here; those that are behaviour are tested here where nothing
else does (elsewhere: losses and double targets in test_losses.py, gradients that enter the trunk in
test_networks.py, ties in test_ids.py, heads of an episode in test_rules.py; starts, lives, frames
and caps of the game in test_atari_env.py and test_atari_release.py, what the replay has of lives
and caps in test_lives.py, of stacks in test_stacks.py; counts of steps in test_cadence.py).
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from idrl import losses
from idrl.agents import Agent, agent_names
from idrl.agents.optimisers import Adam
from idrl.config import resolve
from idrl.envs.families.atari.presets import RELEASED
from idrl.errors import IdrlError
from idrl.ids import observation_noise
from idrl.networks.heads import Transition
from idrl.schema import flat, to_dict

PRESETS = ("paper", "release", "sticky")


def settings(agent="c51-ids", preset=None, env="atari/pong", **more):
    return flat(to_dict(resolve(agent, env, named=preset, **more)))


# row: (setting, what `paper` and `sticky` have, what `release` has) of c51-ids
ROWS = {
    "convolutions": [
        ("trunk.kind", "nature_cnn", "nature_cnn"),
        ("trunk.padding", "VALID", "SAME"),
    ],
    "head": [
        ("heads.q.hidden", [512], [512]),
        ("heads.z.hidden", [512], [512]),
        ("heads.q.k", 10, 10),
        ("heads.z.atoms", 51, 51),
        ("heads.z.v_min", -10.0, -10.0),
        ("heads.z.v_max", 10.0, 10.0),
        ("heads.q.mask_prob", 1.0, 1.0),
        ("heads.q.prior_scale", 0.0, 0.0),
    ],
    "initialisation": [
        ("trunk.init", "lecun_normal", "glorot_uniform"),
        ("heads.q.init", "lecun_normal", "glorot_uniform"),
        ("heads.z.init", "lecun_normal", "glorot_uniform"),
    ],
    "bootstrap loss": [("heads.q.error", "huber", "squared")],
    "1/K": [("heads.q.trunk_gradient", 1.0, 1.0)],
    "double DQN": [("heads.q.double", True, True)],
    "return head target": [("heads.z.double", False, False)],
    "return head gradient": [("heads.z.trunk_gradient", 0.0, 0.0)],
    "optimiser": [
        ("optimiser.kind", "adam", "adam"),
        ("optimiser.lr", 5e-5, 5e-5),
        ("optimiser.b1", 0.9, 0.9),
        ("optimiser.b2", 0.99, 0.999),
        ("optimiser.eps", 0.01 / 32, 0.01 / 32),
        ("optimiser.max_grad_norm", 0.0, 0.0),
    ],
    "rho2": [
        ("explore.noise", "normalized", "normalized"),
        ("explore.eps1", 1e-5, 0.0),
        ("explore.rho2_floor", 0.25, 0.25),
    ],
    "eps2": [("explore.eps2", 1e-5, 1e-5)],
    "rule": [
        ("explore.kind", "ids", "ids"),  # so there is no ε
        ("explore.lam", 0.1, 0.1),
        ("explore.lam_steps", 0, 0),
        ("explore.policy", "deterministic", "deterministic"),
    ],
    "before learning starts": [("learning.learning_starts_steps", 50_000, 50_000)],
    "update, target copy": [
        ("learning.update_every_steps", 4, 4),
        ("learning.target_every_steps", 40_000, 40_000),
        ("learning.gamma", 0.99, 0.99),
        ("learning.n_step", 1, 1),
    ],
    "replay": [
        ("learning.replay_capacity", 1_000_000, 1_000_000),
        ("learning.batch_size", 32, 32),
        ("learning.priority", 0.0, 0.0),
    ],
    "rewards": [("learning.rewards", "clip", "sign")],
    "evaluation": [
        ("evaluate.kind", "greedy", "greedy"),  # by the mean over the heads
        ("evaluation.every_steps", 250_000, 250_000),
        ("evaluation.steps", 125_000, 125_000),
    ],
    "length": [("training.steps", 50_000_000, 50_000_000)],  # 200M frames
    "environments": [("training.envs", 64, 64), ("evaluation.envs", 32, 32)],  # not the paper's: 1
    "records": [
        ("training.log_every_steps", 50_000, 50_000),
        ("training.distributions_every_steps", 250_000, 250_000),
    ],
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("preset", PRESETS)
def test_a_row(row, preset):
    found = settings(preset=preset)
    for name, paper, release in ROWS[row]:
        assert found[name] == (release if preset == "release" else paper), name


def test_paper_is_the_default_and_sticky_differs_in_the_game_alone():
    assert settings() == settings(preset="paper")
    sticky = settings(preset="sticky") | {"env": "atari/pong"}
    assert sticky == settings(preset="paper")


@pytest.mark.parametrize(
    ("asked", "preset", "played"),
    [
        ("atari/pong", "paper", "atari/pong"),
        ("atari/pong", "release", "atari/pong?release=1"),
        ("atari/pong", "sticky", "atari/pong?sticky=0.25&life_loss=0"),
        ("atari/pong?life_loss=0", "sticky", "atari/pong?sticky=0.25&life_loss=0"),
        ("atari/pong?life_loss=0", "paper", "atari/pong?life_loss=0"),
    ],
)
def test_rows_of_the_game_are_in_its_name(asked, preset, played):
    """Sticky actions, life loss, no-ops and FIRE, padding of the first stack, time-outs."""
    assert settings(preset=preset, env=asked)["env"] == played


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"env": "deep_sea/10", "named": "sticky"}, "has the preset .paper., not .sticky."),
        ({"named": "stikcy"}, "did you mean 'sticky'?"),
        (
            {"env": "atari/pong?sticky=0.1", "named": "sticky"},
            "omit the preset or the option",
        ),
        ({"named": "release", "file": {"env": "atari/pong"}}, "omit the preset"),
        ({"env": "cartpole", "frames": 100}, "use --steps"),
        ({"frames": 0}, "it must be positive"),
        ({"frames": "1M"}, "it must be a whole number"),
        ({"frames": 2.5}, "it must be a whole number"),
        ({"frames": float("nan")}, "it must be a whole number"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(more, says):
    with pytest.raises(IdrlError, match=says):
        resolve("c51-ids", **({"env": "atari/pong"} | more))


def test_frames_are_four_to_a_step_rounded_up():
    assert settings(frames=200_000_000)["training.steps"] == 50_000_000
    assert settings(frames=10_000_001)["training.steps"] == 2_500_001
    assert settings(frames=1e6)["training.steps"] == 250_000


@pytest.mark.parametrize("preset", PRESETS)
def test_every_agent_resolves_and_keeps_its_own_numbers(preset):
    for name in agent_names(continuous=False):
        before = flat(to_dict(resolve(name, "atari/pong").spec))
        after = settings(name, preset)
        assert after["learning.rewards"] == ("sign" if preset == "release" else "clip")
        changed = {n for n, value in before.items() if after.get(n, value) != value}
        if preset == "release" and name in RELEASED:
            continue  # each row below
        assert changed <= {"learning.rewards", "learning.precision"}, name


TENSORFLOW = {
    "optimiser.kind": "rmsprop", "optimiser.lr": 2.5e-4, "optimiser.decay": 0.95,
    "optimiser.eps": 1e-5, "optimiser.centered": False,
}  # fmt: skip
FALLS = {"start": 1.0, "end": 0.01, "decay_steps": 1_000_000}
ON_TOP = {f"explore.epsilon_{name}": value for name, value in FALLS.items()}
GREEDY = {f"explore.{name}": value for name, value in FALLS.items()}
SCORED = {"evaluate.kind": "epsilon_greedy", "evaluate.start": 0.001, "evaluate.end": 0.001}
VOTED = {
    "evaluate.kind": "vote", "evaluate.epsilon_start": 0.001, "evaluate.epsilon_end": 0.001,
}  # fmt: skip
EVERY_10K = {"learning.target_every_steps": 10_000}
BASELINES = {
    "dqn": TENSORFLOW | GREEDY | SCORED | EVERY_10K,
    "ddqn": TENSORFLOW | GREEDY | SCORED | EVERY_10K,
    "c51": {"optimiser.lr": 2.5e-4, "optimiser.eps": 0.01 / 32} | GREEDY | SCORED | EVERY_10K,
    "qr-dqn": {"optimiser.lr": 5e-5, "heads.z.quantiles": 200} | GREEDY | SCORED | EVERY_10K,
    "bootstrapped-dqn": TENSORFLOW | ON_TOP | VOTED | EVERY_10K,
    "bootstrapped-ucb": TENSORFLOW | ON_TOP | VOTED | {"learning.target_every_steps": 40_000},
    "ensemble-vote": TENSORFLOW | ON_TOP | VOTED | EVERY_10K,
    "bdqn": {"optimiser.kind": "adam", "optimiser.lr": 5e-5, "heads.q.fit_batch": 10_000}
    | ON_TOP | SCORED | EVERY_10K,
}  # fmt: skip


def test_baselines_of_the_code():
    """`rltf/cmdutils/defaults.py`, agent by agent."""
    for name, rows in BASELINES.items():
        found = settings(name, "release")
        assert rows == {row: found[row] for row in rows}, name
        assert found["trunk.padding"] == "SAME"
    assert set(BASELINES) | {"dqn-ids", "c51-ids", "qrdqn-ids"} == set(RELEASED)


def test_the_code_s_settings_are_for_the_agents_it_is_about():
    for name in ("noisynet-dqn", "rainbow", "iqn"):
        assert settings(name, "release")["trunk.padding"] == "VALID"


@pytest.mark.parametrize(
    ("agent", "error"), [("c51-ids", "squared"), ("dqn-ids", "huber"), ("qrdqn-ids", "huber")]
)
def test_bootstrap_loss_of_the_code(agent, error):
    assert settings(agent, "release")["heads.q.error"] == error
    assert settings(agent, "paper")["heads.q.error"] == "huber"


def test_squared_error_has_no_half_and_is_not_clipped():
    assert float(losses.of("squared")(jnp.float32(3.0))) == 9.0
    assert float(losses.of("huber")(jnp.float32(3.0))) == 2.5


def test_quantile_layers_of_the_code_start_as_glorot_normal():
    assert settings("qrdqn-ids", "release")["heads.z.init"] == "glorot_normal"
    assert settings("qrdqn-ids", "release")["heads.q.init"] == "glorot_uniform"


@pytest.mark.parametrize(("preset", "rule"), [("paper", "greedy"), ("release", "vote")])
def test_bootstrapped_dqn(preset, rule):
    found = settings("bootstrapped-dqn", preset)
    assert (found["explore.kind"], found["evaluate.kind"]) == ("thompson", rule)


@pytest.mark.parametrize(("agent", "epsilon"), [("dqn", 0.05), ("ddqn", 0.001), ("c51", 0.001)])
def test_epsilon_of_evaluations_is_that_of_the_original(agent, epsilon):
    found = settings(agent)
    assert (found["evaluate.start"], found["evaluate.end"]) == (epsilon, epsilon)
    assert found["explore.decay_steps"] == 1_000_000


def test_without_eps1_nothing_is_divided_by_zero():
    for xp in (np, jnp):
        none = xp.zeros((2, 3), xp.float32)
        assert np.all(np.asarray(observation_noise(none, none, eps1=0.0)) == 0.25)
        some = xp.asarray([[1.0, 3.0, 2.0]], dtype=xp.float32)
        found = observation_noise(some, some, eps1=0.0)
        np.testing.assert_allclose(found, [[0.5, 1.5, 1.0]], rtol=1e-6)


@pytest.mark.parametrize(("preset", "features"), [("paper", 3136), ("release", 7744)])
def test_features_of_the_trunk(preset, features):
    trunk = resolve("c51-ids", "atari/pong", named=preset).trunk.module((84, 84, 4))
    obs = jax.ShapeDtypeStruct((1, 84, 84, 4), jnp.uint8)
    out = jax.eval_shape(lambda key, x: trunk.init_with_output(key, x)[0], jax.random.key(0), obs)
    assert out.shape == (1, features)


@pytest.mark.parametrize("preset", ["paper", "release"])
def test_one_kth_enters_the_trunk_and_head_weights_get_all(preset):
    """Against K agents of one head each, whose gradients are not scaled: same numbers, small."""
    small = {"trunk": {"kind": "mlp", "hidden": [4]}, "heads": {"q": {"hidden": [3], "k": 2}}}
    config = resolve("dqn-ids", "atari/pong", named=preset, changes=[small])
    free = resolve("dqn-ids", "atari/pong", named=preset, changes=[
        small, {"heads": {"q": {"trunk_gradient": 2.0}}},
    ])  # fmt: skip
    keys = jax.random.split(jax.random.key(0), 3)
    obs = jax.random.normal(keys[0], (5, 6))
    batch = Transition(obs, jnp.arange(5) % 3, jnp.ones(5), jnp.full(5, 0.99), obs[::-1])
    agents = [Agent(c.spec, (6,), 3) for c in (config, free)]
    state = agents[0].init(keys[1], obs)
    ours, unscaled = (
        jax.grad(lambda p, a=a: a.loss(p, state, batch)[0])(state.params) for a in agents
    )
    assert float(optax.tree.norm(unscaled["trunk"])) > 0
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b / 2, rtol=1e-4, atol=1e-7),
        ours["trunk"], unscaled["trunk"],
    )  # fmt: skip
    jax.tree.map(np.testing.assert_array_equal, ours["heads"], unscaled["heads"])


def test_one_optimiser_for_all():
    config = resolve("c51-ids", "atari/pong", named="release")
    assert config.optimiser == Adam(b2=0.999)
    assert config.spec.optimiser is config.optimiser
