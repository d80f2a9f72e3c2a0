"""The variance that return heads learn, against the exact one, for its four sources.

One compiled program per agent plays all four tasks: the seeds of a run draw theirs.
Tolerance: the mean over a task's seeds is within 0.1 + 20% of the truth.
"""

import jax
import numpy as np
import pytest

from idrl.config import resolve
from idrl.envs.families.heteroscedastic import (
    ALIASING,
    POLICY,
    SOURCES,
    STAGES,
    heteroscedastic,
    merge_aliased,
    truth,
    visits,
)
from idrl.envs.tabular import exact
from idrl.runs.session import make_program
from idrl.training.loop import train
from idrl.training.seeding import seed_key, task_of

GAMMA = 0.99
SEEDS = 14
ABSOLUTE, RELATIVE = 0.1, 0.2

SETTINGS = {
    # every action everywhere: the variance of what is not tried cannot be learned
    "explore": {"kind": "epsilon_greedy", "start": 1.0, "end": 1.0, "decay_steps": 0},
    "heads": {"q": {"k": 2}},
    "training": {"steps": 4_000},
    "evaluation": {"every_steps": 4_000},
    "seeds": SEEDS,
}


def name_of(task) -> str:
    return next(
        name
        for name, (mdp, _) in SOURCES.items()
        if all(np.allclose(a, b) for a, b in zip(mdp, task, strict=True))
    )


@pytest.mark.parametrize("agent", ["c51-ids", "qrdqn-ids"])
def test_learned_variance_is_the_true_one(agent):
    changes = [SETTINGS]
    if agent == "qrdqn-ids":
        changes.append({"heads": {"z": {"quantiles": 25}}})  # half the work
    config = resolve(agent, "hetero/rewards", changes=changes)
    assert config.learning.gamma == GAMMA
    program = make_program(config, heteroscedastic())
    *_, last = train(program, None, 0, program.seed_keys(0))
    learned: dict[str, list] = {name: [] for name in SOURCES}
    state = last.state.agent
    for seed in range(SEEDS):
        name = name_of(task_of(program.env, seed_key(seed)))
        params, prior = jax.tree.map(lambda x, i=seed: x[i], (state.params, state.prior))
        obs = truth(SOURCES[name][0], GAMMA).obs.astype(np.float32)
        learned[name].append(np.asarray(program.agent.beliefs(params, prior, obs).return_variance))
    for name, values in learned.items():
        assert len(values) >= 3, "the seeds must cover all sources"
        np.testing.assert_allclose(
            np.mean(values, 0), truth(SOURCES[name][0], GAMMA).variance,
            atol=ABSOLUTE, rtol=RELATIVE, err_msg=name,
        )  # fmt: skip


# -- the truth itself ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOURCES)
def test_truth_is_that_of_simulated_returns(name):
    """Returns of (first action at random, then greedy by observation) have the exact moments."""
    mdp = SOURCES[name][0]
    known = truth(mdp, GAMMA)
    row = {tuple(obs): i for i, obs in enumerate(known.obs)}
    rng = np.random.default_rng(0)
    for first in range(2):
        returns = np.empty(4_000)
        for i in range(returns.size):
            state, action = rng.choice(5, p=mdp.start), first
            total, discount, ended = 0.0, 1.0, False
            start = row[tuple(mdp.obs[state])]
            while not ended:
                total += discount * rng.normal(mdp.reward[state, action], mdp.noise[state, action])
                ended = rng.random() < mdp.ends[state, action]
                state = rng.choice(5, p=mdp.move[state, action])
                discount *= GAMMA
                action = 0 if ended else known.q[row[tuple(mdp.obs[state])]].argmax()
            returns[i] = total
        assert returns.mean() == pytest.approx(known.q[start, first], abs=0.12)
        assert returns.var() == pytest.approx(known.variance[start, first], abs=0.03, rel=0.12)


def test_every_source_makes_actions_differ():
    for name, (mdp, _) in SOURCES.items():
        variance = truth(mdp, GAMMA).variance
        assert np.ptp(variance[0]) > 0.2, f"{name}: the first state's actions differ"


def test_only_its_own_source_is_at_work():
    for name, (mdp, _) in SOURCES.items():
        reached = visits(mdp) > 0
        assert (mdp.noise[reached].max() > 0) == (name == "rewards")
        random_moves = ((mdp.move[reached] > 0).sum(-1) > 1).any()
        assert random_moves == (name in ("transitions", "policy"))
        assert (len(np.unique(mdp.obs[reached], axis=0)) < reached.sum()) == (name == "aliasing")


def test_the_mix_of_hidden_states_is_the_same_for_every_policy():
    for chance in (0.1, 0.5, 0.9):
        policy = np.tile([chance, 1 - chance], (5, 1))
        seen = visits(ALIASING, policy)
        np.testing.assert_allclose(seen[[0, 2]] / (seen[[0, 2]] + seen[[1, 3]]), 0.75)


def test_aliased_values_by_hand():
    merged = merge_aliased(ALIASING, visits(ALIASING))
    q, variance = exact(merged, GAMMA)
    np.testing.assert_allclose(q[:2], [[0.3, GAMMA * 0.5], [0.5, 0.0]], atol=1e-9)
    np.testing.assert_allclose(variance[:2], [[0, GAMMA**2 * 0.75], [0.75, 0]], atol=1e-9)
    assert exact(ALIASING, GAMMA)[1].max() == 0, "nothing is random to who sees the hidden state"


def test_policy_variance_is_that_over_its_stages():
    known = truth(POLICY, GAMMA)
    for action, state in enumerate((1, 2)):
        targets = [GAMMA**2 * (1.0 if better else -1.0) for better in STAGES[state]]
        assert known.q[0, action] == pytest.approx(np.mean(targets))
        assert known.variance[0, action] == pytest.approx(np.var(targets))
    settled = POLICY._replace(move=POLICY.move.copy())
    for state in STAGES:
        settled.move[state] = np.eye(5)[3]
    assert exact(settled, GAMMA)[1].max() == 0, "a policy that has settled leaves no noise"
