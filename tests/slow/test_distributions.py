"""Percentiles of what the rule sees on a fixed batch of states."""

import math

import jax
import numpy as np
import pytest
from displays import Dies

import idrl
from idrl.agents.rule_base import RuleContext
from idrl.config import resolve
from idrl.envs import make_env
from idrl.report.distributions import distribution_bands
from idrl.runs.session import make_program
from idrl.storage.records import spread
from idrl.training.loop import train

SMALL = {
    "trunk": {"hidden": [8]},
    "learning": {"learning_starts_steps": 40, "replay_capacity": 60},
    "training": {"steps": 400, "envs": 1, "log_every_steps": 100,
                 "distributions_every_steps": 150},
    "evaluation": {"every_steps": 200, "steps": 40, "envs": 1},
}  # fmt: skip
HEADS = {"q": {"hidden": [8], "k": 3}, "z": {"hidden": [8]}}
QUANTITIES = {"sigma2", "rho2", "return_variance", "regret", "info_gain", "ratio"}


def settings(agent, **training):
    heads = {name: dict(head) for name, head in HEADS.items() if name in heads_of(agent)}
    if agent == "dqn":
        del heads["q"]["k"]
    return SMALL | {"heads": heads, "seeds": 2, "training": SMALL["training"] | training}


def heads_of(agent):
    return ("q", "z") if agent in ("c51-ids", "qrdqn-ids") else ("q",)


def progress_of(agent, env):
    config = resolve(agent, env, changes=[settings(agent)])
    program = make_program(config, make_env(env))
    out = []
    for progress in train(program, None, 0, program.seed_keys(0)):
        out.append(progress._replace(state=jax.device_get(progress.state)))
    program.close()
    return program, out


def check_told(program, state, told, agent):
    """`told` is what the exploration rule says of the state's own batch."""
    expected = QUANTITIES - (set() if "z" in heads_of(agent) else {"return_variance"})
    assert set(told) == expected
    for seed in range(2):
        params, prior = jax.tree.map(
            lambda x, s=seed: x[s], (state.agent.params, state.agent.prior)
        )
        beliefs = program.agent.beliefs(params, prior, state.states[seed])
        moment = RuleContext(0, np.zeros(64, np.int32), jax.random.key(0))
        decision = program.agent.spec.explore(beliefs, moment)
        mine = {name: x[seed] for name, x in told.items()}
        np.testing.assert_allclose(mine["sigma2"], decision.sigma**2, rtol=1e-3, atol=1e-7)
        np.testing.assert_allclose(mine["regret"], decision.regret, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(mine["rho2"], decision.rho2, rtol=1e-3)
        if "z" in heads_of(agent):
            variance = beliefs.return_variance
            np.testing.assert_allclose(mine["return_variance"], variance, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("agent", "env"), [("c51-ids", "noisy_chain/4"), ("qrdqn-ids", "gym/CartPole-v1")]
)
def test_they_are_what_the_rule_sees_on_states_of_the_random_steps(agent, env):
    program, out = progress_of(agent, env)
    seen = [progress for progress in out if progress.distributions is not None]
    # after the random steps, at the first boundaries past 150 and 300, and at the end
    assert len(seen) == 4
    assert seen[0].steps == 40
    assert seen[-1] is out[-1]
    first, last = seen[0].state, seen[-1].state
    assert first.states.shape == (2, 64, *program.agent.obs_shape)
    np.testing.assert_array_equal(first.states, last.states)
    met = {row.tobytes() for row in first.replay.obs[0, :40].reshape(40, -1)}
    assert {row.tobytes() for row in first.states[0].reshape(64, -1)} <= met
    for progress in (seen[0], seen[-1]):
        check_told(program, progress.state, progress.distributions, agent)


@pytest.mark.parametrize(
    ("agent", "means"),
    [("bootstrapped-dqn", {"sigma2"}), ("dqn", set()), ("c51", {"return_variance"})],
)
def test_agents_that_explore_by_other_rules_tell_what_means_something(agent, means):
    changes = settings("dqn") if agent == "dqn" else SMALL
    config = resolve(agent, "noisy_chain/4", changes=[changes])
    program = make_program(config, make_env(config.env))
    state, _ = program.start(program.seed_keys(0))
    found = jax.device_get(program.distributions(state, 40))
    assert set(found) == means
    assert all(values.any() for values in found.values())


def test_one_setting_switches_them_off(tmp_path):
    changes = settings("dqn-ids", steps=100, distributions_every_steps=0)
    run = idrl.train("dqn-ids", "noisy_chain/4", settings=changes, out=tmp_path / "run")
    assert len(run.distributions) == 0
    assert not (run.path / "distributions.csv").exists()
    assert not (run.path / "distributions.png").exists()
    with pytest.raises(idrl.IdrlError, match="or 0 to switch them off"):
        resolve("dqn", "cartpole", changes=[{"training": {"distributions_every_steps": -1}}])


def test_every_preset_has_them():
    for env in ("deep_sea/10", "cartpole", "minatar/breakout", "hetero/rewards", "bsuite/bandit"):
        assert resolve("c51-ids", env).training.distributions_every_steps > 0, env


def test_percentiles_are_values():
    found = spread(np.array([[0.0, 1.0], [2.0, 97.0]]))
    assert found == {
        "mean": 25.0, "p0": 0.0, "p5": 0.0, "p25": 0.0, "p50": 1.0, "p75": 2.0, "p95": 97.0,
        "p100": 97.0,
    }  # fmt: skip
    assert spread(np.array([1.0, math.inf]))["p100"] == math.inf


def test_a_run_has_a_row_per_seed_time_and_quantity_and_a_picture(tmp_path):
    """A killed and resumed run ends with the same bytes, these rows and regrets among them."""
    changes = settings("c51-ids")
    whole = idrl.train("c51-ids", "noisy_chain/4", settings=changes, out=tmp_path / "whole")
    rows = whole.distributions
    wanted = "seed steps quantity mean p0 p5 p25 p50 p75 p95 p100"
    assert list(rows[0]) == wanted.split()
    steps = sorted({int(row["steps"]) for row in rows})
    keys = [(int(row["steps"]), int(row["seed"]), row["quantity"]) for row in rows]
    assert sorted(keys) == sorted((t, s, q) for t in steps for s in (0, 1) for q in QUANTITIES)
    for row in rows:
        marks = [float(row[f"p{p}"]) for p in (0, 5, 25, 50, 75, 95, 100)]
        assert marks == sorted(marks)
        assert marks[0] <= float(row["mean"]) <= marks[-1]
    assert (whole.path / "distributions.png").read_bytes().startswith(b"\x89PNG")
    one = tmp_path / "one.png"
    distribution_bands(whole.path, one)
    assert one.exists()

    path = tmp_path / "killed"
    with pytest.raises(MemoryError):
        idrl.train("c51-ids", "noisy_chain/4", settings=changes, out=path, display=Dies(301))
    idrl.train(resume=path)
    for name in ("distributions", "episodes", "evaluations", "metrics"):
        table = f"{name}.csv"
        assert (path / table).read_bytes() == (whole.path / table).read_bytes(), table
