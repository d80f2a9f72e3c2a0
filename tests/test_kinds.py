"""Every kind of head, trunk, optimiser and rule is trained by a program and learns with all that it
has. What agents learn is asked by `make learning`, and of known values by `make slow`."""

import jax
import numpy as np
import pytest
from learning.games import Catch

import idrl
from idrl.agents.optimisers import Optimiser
from idrl.agents.rule_base import Rule
from idrl.config import assignments, resolve
from idrl.envs import make_env
from idrl.networks.heads.base import Head
from idrl.networks.trunks import Trunk
from idrl.runs.session import make_program

SMALL = {
    "learning": {"learning_starts_steps": 24, "replay_capacity": 200, "batch_size": 4,
                 "update_every_steps": 2, "target_every_steps": 8},
    "training": {"steps": 48, "envs": 2, "log_every_steps": 24, "distributions_every_steps": 0},
    "evaluation": {"every_steps": 24, "steps": 16, "envs": 2},
}  # fmt: skip
# Between them they have every kind; agents are named for those that are theirs.
CASES = {
    "dqn": ("minatar/breakout", []),  # epsilon_greedy, greedy; rmsprop; minatar_cnn
    "bdqn": ("deep_sea/4", ["heads.q.k=2", "heads.q.fit_batch=16"]),  # bayesian, thompson
    "c51-thompson": ("deep_sea/4", ["heads.q.k=2", "evaluate.kind=vote"]),  # return_thompson
    "iqn-ids": ("deep_sea/4", ["heads.q.k=2", "heads.z.samples=4", "heads.z.act_samples=4"]),
    "qrdqn-ids": (  # quantile, ucb; nature_cnn; with bootstrap masks and priorities
        "picture",
        ["explore.kind=ucb", "heads.q.k=2", "heads.q.mask_prob=0.5", "heads.z.quantiles=4",
         "learning.priority=0.5"],
    ),
    "sac": ("pendulum", []),  # gaussian_actor, sample, follow
    "td3": ("pendulum", ["explore.kind=ou_noise", "evaluate.kind=gaussian_noise"]),  # actor
}  # fmt: skip


idrl.register_env("picture", Catch)


def built(agent):
    env, changes = CASES[agent]
    heads = {name: {"hidden": [4]} for name in resolve(agent, env).spec.heads}
    small = [SMALL, {"heads": heads, "seeds": 1}, *assignments(changes)]
    config = resolve(agent, env, changes=small)
    if config.trunk.kind == "mlp":
        config = resolve(agent, env, changes=[*small, {"trunk": {"hidden": [4]}}])
    return config, make_program(config, make_env(env))


@pytest.mark.parametrize("agent", CASES)
def test_it_trains(agent):
    config, program = built(agent)
    state, _ = program.start(program.seed_keys(0))
    before = jax.device_get(state.agent)
    state, (_, metrics) = program.block(state, np.int32(0))
    state, (score, _) = program.evaluate(state, np.int32(1))
    after = jax.device_get(state.agent)
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), after.params, before.params)
    still = [
        jax.tree_util.keystr(path)
        for path, did in jax.tree_util.tree_leaves_with_path(moved)
        if not did
    ]
    assert not still
    assert (np.asarray(state.failed) < 0).all()
    assert all(np.isfinite(np.asarray(x)).all() for x in metrics.values())
    assert {f"loss_{name}" for name in config.heads} <= metrics.keys()
    assert score.return_mean.shape == (1,)


def test_every_kind_is_among_them():
    found = {}
    for agent, (env, changes) in CASES.items():
        config = resolve(agent, env, changes=assignments(changes))
        parts = [*config.heads.values(), config.explore, config.evaluate, config.trunk]
        for part in (*parts, config.optimiser):
            found.setdefault(part.category, set()).add(part.kind)
    built_in = {
        category.category: {k for k, part in category.kinds.items() if part.is_built_in()}
        for category in (Head, Rule, Trunk, Optimiser)
    }
    assert found == built_in
