"""Regret where the best return is known: optima by hand, columns, sums, summary."""

import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console
from run_folders import write_csv

import idrl
from idrl.envs import make_env
from idrl.envs.families.deep_sea import DeepSea
from idrl.envs.families.heteroscedastic import SOURCES
from idrl.envs.optimum import best_return, optimal_returns
from idrl.envs.probes import PROBES, probes
from idrl.envs.tabular import FOREVER
from idrl.report.regret import cumulative
from idrl.report.statistics import iqm, mean_over_seeds, share_interval
from idrl.runs.display import summary
from idrl.storage.records import read_evaluations

KEY = jax.random.key(0)
SMALL = {
    "trunk": {"hidden": [8]},
    "heads": {"q": {"hidden": [8], "k": 3}},
    "learning": {"learning_starts_steps": 20, "replay_capacity": 500},
    "training": {"steps": 400, "log_every_steps": 100, "distributions_every_steps": 0},
    "evaluation": {"every_steps": 200, "steps": 60},
}


# -- the best return ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "best"),
    [
        ("rewards", 1.0),  # the sure way to state 2, whose action 0 pays 1
        ("transitions", 1.0),  # 0 → 1 → 4, sure; the lottery of state 1 is worth 0.75
        ("aliasing", 0.5),  # go on: 0.75·1 − 0.25; knowing the world would be worth 0.825
        ("policy", 0.75),  # state 1: 7/8 − 1/8
    ],
)
def test_heteroscedastic_tasks(source, best):
    assert best_return(SOURCES[source][0]) == pytest.approx(best)
    env = make_env(f"hetero/{source}")
    tasks = jax.vmap(env.task)(jax.random.split(KEY, 3))
    np.testing.assert_allclose(optimal_returns(env, tasks, 3), best, atol=1e-6)


def test_probes():
    best = {
        "one_reward": 1, "sees_context": 0, "two_steps": 1, "action_matters": 1,
        "action_sees_context": 1, "truncates": 1, "noisy": 0,
    }  # fmt: skip
    assert {name: best_return(mdp) for name, mdp in PROBES.items()} == best


def test_what_never_ends_or_is_too_large_has_no_best_return():
    endless = PROBES["truncates"]._replace(limit=FOREVER)
    assert best_return(endless) is None
    aliased = endless._replace(obs=np.zeros((2, 1)))
    assert best_return(aliased) is None
    assert best_return(aliased._replace(limit=7)) == 7
    assert optimal_returns(probes("truncates"), jax.tree.map(
        lambda x: jnp.asarray(x)[None], endless), 1) is None  # fmt: skip


@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("deep_sea/10", 0.99),
        # N = 2, s = 0.1: right twice lands right with 0.9²·1; in column 1 of the last row the
        # reward is 0.9, from column 0 nothing; each step costs 0.005 with probability 0.9 …
        ("deep_sea/2?slip=0.1", 0.9 * (-0.005 + 0.9 * 0.995) + 0.1 * (0.1 * -0.005)),
        ("noisy_chain/6", 1.0),
        ("bsuite/bandit?noise=1", 1.0),
        ("bsuite/catch", 1.0),
        ("bsuite/cartpole", None),
        ("cartpole", None),
    ],
)
def test_by_name(name, best):
    env = make_env(name)
    tasks = jax.vmap(env.task)(jax.random.split(KEY, 2))
    found = optimal_returns(env, tasks, 2)
    assert found is None if best is None else found == pytest.approx(best)


def test_catch_can_always_be_won():
    env = make_env("bsuite/catch")
    task = env.task(KEY)
    for seed in range(20):
        state, obs = env.reset(task, jax.random.key(seed))
        over, ball = False, 2
        while not over:
            if obs[:-1].any():
                ball = int(np.argwhere(np.asarray(obs)[:-1])[0, 1])
            paddle = int(np.argwhere(np.asarray(obs)[-1])[0, 0])
            state, step = env.step(task, state, 1 + int(np.sign(ball - paddle)), KEY)
            obs, over = step.obs, bool(step.terminated) or bool(step.truncated)
        assert float(step.info["raw_return"]) == 1.0


def test_raw_returns_leave_the_noise_out():
    env = DeepSea(4, stochastic=True)
    task = env.task(KEY)
    noisy = 0
    for seed in range(20):
        state, _ = env.reset(task, KEY)
        keys = jax.random.split(jax.random.key(seed), 4)
        total = rights = 0.0
        for row, key in enumerate(keys):
            action = int(task[row, state.column])
            state, step = env.step(task, state, action, key)
            total, rights = total + float(step.reward), rights + 1
        raw = float(step.info["raw_return"])
        assert raw + rights * 0.01 / 4 == pytest.approx(1.0 if raw > 0.5 else 0.0, abs=1e-6)
        noisy += abs(raw - total) > 1e-3
    assert noisy > 0  # an episode in a corner is paid noise too


# -- in a run -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("regret") / "run"
    return idrl.train("dqn-ids", "noisy_chain/4", seeds=2, settings=SMALL, out=path)


@pytest.mark.slow
def test_columns_of_a_run(run):
    episodes, evaluations = run.episodes, run.evaluations
    assert (episodes["regret"] == episodes["bad"]).all()  # 1 less what the goal pays
    assert evaluations["regret"] == pytest.approx(1 - evaluations["raw_return"], abs=1e-6)
    for row in run.metrics:
        mine = episodes.where(seed=row["seed"])
        played = mine["regret"][mine["steps"] <= row["steps"]]
        assert row["cumulative_regret"] == pytest.approx(played.sum())
    assert (run.path / "regret.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_no_columns_where_nothing_is_known(tmp_path):
    settings = SMALL | {"training": SMALL["training"] | {"envs": 2}}
    run = idrl.train("dqn-ids", "cartpole", steps=100, settings=settings, out=tmp_path / "run")
    assert "regret" not in run.episodes
    assert "regret" not in run.evaluations
    assert not (run.path / "regret.png").exists()
    assert "One seed: there is no interval." in shown(run)


def shown(run) -> str:
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(summary(run))
    return console.export_text()


def test_the_summary_has_intervals_over_seeds(run):
    text = shown(run)
    totals = [run.episodes.where(seed=seed)["regret"].sum() for seed in run.seeds]
    assert str(mean_over_seeds(totals)) in text
    assert "IQM" in text
    assert "of 2 seeds (95%:" in text
    assert "in the last evaluation" in text


def test_a_summary_without_a_scored_evaluation_says_nothing_of_its_regret(run, tmp_path):
    folder = shutil.copytree(run.path, tmp_path / "run")
    rows = read_evaluations(folder)
    unscored = {"episodes": 0, "return_mean": "", "best": "", "regret": ""}
    write_csv(folder / "evaluations.csv", [row | unscored for row in rows])
    text = shown(idrl.open_run(folder))
    assert "summed over" in text
    assert "in the last evaluation" not in text


# -- statistics ---------------------------------------------------------------------------------


def test_cumulative_regret_by_hand():
    rows = [
        {"seed": "0", "steps": "10", "regret": "1.0"},
        {"seed": "1", "steps": "15", "regret": "0.5"},
        {"seed": "0", "steps": "20", "regret": "0.5"},
        {"seed": "1", "steps": "20", "regret": "0.25"},
    ]
    steps, *lines = cumulative(rows)
    at = dict(zip(steps.tolist(), np.array(lines).T, strict=True))  # mean, low, high
    assert at[0] == pytest.approx((0, 0, 0))
    assert at[9] == pytest.approx((0, 0, 0))
    assert at[10] == pytest.approx((0.5, 0, 1))
    assert at[15] == pytest.approx((0.75, 0.5, 1))
    assert at[20] == pytest.approx(((1.5 + 0.75) / 2, 0.75, 1.5))


def test_small_statistics():
    assert iqm([0, 1, 2, 3, 4, 5, 6, 100]) == pytest.approx(3.5)
    low, high = share_interval(8, 8)
    assert low == pytest.approx(0.6756, abs=1e-4)  # n/(n + z²)
    assert high == 1.0
    assert share_interval(0, 8) == pytest.approx((0.0, 1 - low))
