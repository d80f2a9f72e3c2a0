"""Every agent learns the known values of tasks that isolate one part of it each.

One compiled program per agent plays all probes at once: the seeds of a run draw their probe.
"""

import jax
import numpy as np
import pytest

from idrl.agents import agent_names
from idrl.config import assignments, resolve
from idrl.envs.probes import PROBES, probes
from idrl.envs.tabular import exact
from idrl.runs.session import make_program
from idrl.training.loop import train
from idrl.training.seeding import seed_key, task_of

GAMMA = 0.5
FIRST, SEEDS = 86, 8  # the fewest seeds in a row that draw every probe

SETTINGS = {
    "trunk": {"kind": "mlp", "hidden": [32]},
    "optimiser": {"kind": "adam", "lr": 5e-3, "b2": 0.999, "eps": 1e-8},
    "learning": {
        "gamma": GAMMA,
        "update_every_steps": 1,
        "target_every_steps": 20,
        "learning_starts_steps": 200,
        "replay_capacity": 2_000,
    },
    "training": {"steps": 1_800, "envs": 1, "log_every_steps": 400},
    "evaluation": {"every_steps": 1_600, "steps": 40, "envs": 2},
    "seeds": SEEDS,
    "seed": FIRST,
}


# Compositions that nobody declared: settings alone make them, as on the command line.
COMPOSITIONS = {
    "c51-ids, dueling": ["heads.q.dueling=true", "heads.z.dueling=true"],
    "c51-ids, prioritised 3-step": ["learning.priority=0.6", "learning.n_step=3"],
    "c51-ids, noisy": ["heads.q.noisy=0.5", "heads.z.noisy=0.5"],
    "c51-ids, return head shapes the trunk": ["heads.z.trunk_gradient=1"],
    "c51-ids, nothing shapes the trunk": ["heads.q.trunk_gradient=0"],
    "qrdqn-ids, randomized": ["explore.policy=randomized", "explore.info_gain=ucb"],
}


def settings(agent: str) -> dict:
    heads = resolve(agent, "cartpole").heads
    small = {name: {"hidden": [32]} for name in heads}
    if "z" in small and heads["z"].kind == "categorical":
        small["z"] |= {"v_min": -4.0, "v_max": 4.0}
    return SETTINGS | {"heads": small}


@pytest.fixture(scope="module", params=[*agent_names(continuous=False), *COMPOSITIONS])
def trained(request):
    name = request.param.partition(",")[0]
    changes = [settings(name), *assignments(COMPOSITIONS.get(request.param, []))]
    config = resolve(name, "cartpole", changes=changes)
    env = probes()
    program = make_program(config, env)
    *_, last = train(program, None, 0, program.seed_keys(FIRST))
    return program, last


def test_learns_known_values(trained):
    program, last = trained
    agent, state = program.agent, last.state
    names = list(PROBES)
    seen = set()
    for seed in range(SEEDS):
        task = task_of(program.env, seed_key(FIRST + seed))
        name = next(
            n for n in names if all(np.allclose(a, b) for a, b in zip(PROBES[n], task, strict=True))
        )
        seen.add(name)
        mdp = PROBES[name]
        params, prior = jax.tree.map(
            lambda x, i=seed: x[i], (state.agent.params, state.agent.prior)
        )
        beliefs = agent.beliefs(params, prior, mdp.obs.astype(np.float32))
        q, _ = exact(mdp, GAMMA)
        visited = [s for s in range(2) if mdp.start[s] > 0 or name == "two_steps"]
        mu = np.asarray(beliefs.q_heads.mean(-2))
        tolerance = 0.35 if name == "noisy" else 0.15
        np.testing.assert_allclose(mu[visited], q[visited], atol=tolerance, err_msg=name)
        if name == "noisy" and beliefs.return_variance is not None:
            learned = np.asarray(beliefs.return_variance)[0]
            assert learned[0] < 0.3, learned
            assert 0.5 < learned[1] < 1.6, learned
    assert seen == set(names), "the seeds must cover all probes"


def test_evaluates_the_learned_policy(trained):
    program, last = trained
    for seed in range(SEEDS):
        task = task_of(program.env, seed_key(FIRST + seed))
        same = [np.allclose(a, b) for a, b in zip(PROBES["action_matters"], task, strict=True)]
        if all(same):
            assert last.score.return_mean[seed] == 1.0
            # 20 vector steps of one-step episodes in each of two environments
            assert last.score.episodes[seed] == 40
