"""An evaluation acts by the rule for evaluation, whatever training explores by, in both loops, and
says how many of its episodes a time limit ended."""

import io

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small
from gymnasium import spaces
from rich.console import Console
from run_folders import made_up_run, write_csv

import idrl
from idrl.config import resolve
from idrl.envs import Step
from idrl.envs.adapters.gymnasium_env import GymnasiumEnv
from idrl.runs.display import _told, summary
from idrl.runs.run import Run
from idrl.runs.session import make_program
from idrl.storage.records import Table
from idrl.training.evaluation import Score
from idrl.training.predictors import score_episodes, score_window

SMALL = {
    "trunk": {"hidden": [4]},
    "heads": {"q": {"hidden": [4]}},
    "learning": {"learning_starts_steps": 8, "replay_capacity": 50, "batch_size": 4},
    "training": {"steps": 40, "envs": 2, "distributions_every_steps": 0},
    "evaluation": {"every_steps": 20, "steps": 40, "envs": 2},
    "explore": {"start": 1.0, "end": 1.0},  # random for ever
}


ACTING = "evaluate", "explore"


class Told:
    """Pays the action, and is over."""

    name, num_actions, obs_shape = "told", 2, (1,)

    def task(self, key):
        return ()

    def reset(self, task, key):
        return jnp.int32(0), jnp.ones(1)

    def step(self, task, state, action, key):
        return state, Step(jnp.ones(1), jnp.float32(action), jnp.bool_(True), jnp.bool_(False))


class GymTold(gymnasium.Env):
    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.ones(1, np.float32), {}

    def step(self, action):
        return np.ones(1, np.float32), float(action), True, False, {}


@pytest.mark.parametrize("env", [Told(), GymnasiumEnv(GymTold)], ids=["compiled", "hosted"])
def test_an_evaluation_does_not_explore(env):
    config = resolve("dqn", env.name, changes=[SMALL], obs_shape=env.obs_shape)
    program = make_program(config, env)
    state, played = program.start(program.seed_keys(0))
    state, (score, _) = program.evaluate(state, np.int32(1))
    program.close()
    assert set(np.unique(played.returns[played.ended])) == {0.0, 1.0}, "training explores"
    assert int(score.episodes[0]) >= 20
    assert float(score.return_std[0]) == 0


@pytest.mark.parametrize("env", [Told(), GymTold], ids=["compiled", "hosted"])
def test_an_agent_may_be_scored_as_it_explores(env, tmp_path):
    """With ε at its end, not where it began."""
    faded = idrl.schema.merge(SMALL, {"explore": {"end": 0.5, "decay_steps": 40}})
    run = idrl.train("dqn", env, settings=faded, out=tmp_path / "run")
    greedy, drawn = (
        idrl.evaluate(run, env=env, acting=how, weights="latest", episodes=400) for how in ACTING
    )
    assert float(greedy.return_std[0]) == 0
    assert abs(float(drawn.return_mean[0]) - (0.75 if greedy.return_mean[0] else 0.25)) < 0.1
    agent = idrl.load(run, weights="latest")
    again = idrl.evaluate(agent, env=env, acting="explore", episodes=400)
    assert again.return_mean == drawn.return_mean[0]


def test_what_cannot_be_scored_so_is_told():
    with pytest.raises(idrl.IdrlError, match="acting is 'both'; it must be 'explore' or 'evalu"):
        idrl.evaluate("nothing", acting="both")
    with pytest.raises(idrl.IdrlError, match="weights is 'last'; it must be 'best' or 'latest'"):
        idrl.evaluate("nothing", weights="last")
    with pytest.raises(idrl.IdrlError, match="only a run has more than its best weights: omit w"):
        idrl.evaluate(Drawing(), "cartpole", weights="latest")


class Drawing:
    def predict(self, observation, state, episode_start, deterministic):
        return np.full(len(observation), 0 if deterministic else 1), None


@pytest.mark.parametrize("env", [Told(), GymTold], ids=["compiled", "hosted"])
def test_a_predictor_is_told_how_to_act(env):
    scores = [idrl.evaluate(Drawing(), env, acting=how, episodes=3) for how in ACTING]
    assert [float(score.return_mean) for score in scores] == [0, 1]


@pytest.mark.slow
def test_an_agent_from_the_host_plays_on_the_device(tmp_path):
    """Whatever is for environments on the host alone is of no concern to who only plays."""
    host = {
        "learning": {"replay_place": "host"}, "training": {"env_processes": 2},
        "evaluation": {"beside": True},
    }  # fmt: skip
    settings = idrl.schema.merge(SMALL, host)
    run = idrl.train("dqn", GymTold, settings=settings, out=tmp_path / "run")
    played = [idrl.evaluate(run, env=env, episodes=2).return_mean for env in (Told(), GymTold)]
    assert played[0] == played[1]
    assert idrl.explain(run, env=Told()).obs == 1


class Halved:
    """Of three steps, by chance: they end with a reward, or are cut off without."""

    name, num_actions, obs_shape = "halved", 2, (1,)

    def task(self, key):
        return ()

    def reset(self, task, key):
        return (jnp.int32(0), jax.random.bernoulli(key)), jnp.ones(1)

    def step(self, task, state, action, key):
        time, ends = state[0] + 1, state[1]
        over = time >= 3
        reward = jnp.float32(over & ends)
        return (time, ends), Step(jnp.ones(1), reward, over & ends, over & ~ends)


class GymHalved(GymTold):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.ends = 0, self.np_random.random() < 0.5
        return np.ones(1, np.float32), {}

    def step(self, action):
        self.time += 1
        over = self.time >= 3
        return np.ones(1, np.float32), float(over and self.ends), over and self.ends, over, {}


@pytest.mark.slow
@pytest.mark.parametrize("env", [Halved(), GymnasiumEnv(GymHalved)], ids=["compiled", "hosted"])
def test_an_evaluation_counts_episodes_at_the_time_limit(env):
    config = resolve("dqn", env.name, changes=[SMALL], obs_shape=env.obs_shape)
    program = make_program(config, env)
    state, _ = program.start(program.seed_keys(0))
    state, (window, _) = program.evaluate(state, np.int32(1))
    scores = [window, program.score_best(state, 20, 100), program.score_window(state, 60)]
    cut = program.score_best(state, 4, 2)  # all of them, by the limit of the score
    program.close()
    for score in scores:
        told = (score.episodes, score.truncated, score.return_mean)
        count, truncated, mean = (float(x[0]) for x in told)
        assert truncated == pytest.approx(count * (1 - mean))
        assert 0 < truncated < count
    assert (int(cut.truncated[0]), int(cut.episodes[0])) == (4, 4)


@pytest.mark.slow
@pytest.mark.parametrize("env", [Halved(), GymnasiumEnv(GymHalved)], ids=["compiled", "hosted"])
def test_baselines_are_told_the_same(env):
    class Still:
        def predict(self, observation, state, episode_start, deterministic):
            return np.zeros(len(observation), int), None

    for score in (
        score_episodes(Still(), env, 0, 20, 100), score_window(Still(), env, 0, 1, 60, 2),
    ):  # fmt: skip
        assert int(score.truncated) == pytest.approx(score.episodes * (1 - score.return_mean))
        assert 0 < score.truncated < score.episodes


@pytest.mark.parametrize("records", ["told", "old"])
def test_the_closing_table_marks_games_that_do_not_end(records, tmp_path):
    run = made_up_run(tmp_path / "run", "dqn", "cartpole")
    config = resolve("dqn", "cartpole", changes=[{"seeds": 3, "evaluation": {"steps": 9_000}}])
    rows = [
        {"seed": seed, "steps": 10, "episodes": count, "return_mean": mean, "best": 1.0,
         "truncated": cut}
        for seed, count, mean, cut in ((0, 9, 2.0, 7), (1, 0, "", 0), (2, 9, 3.0, 0))
    ]  # fmt: skip
    if records == "old":
        rows = [{key: row[key] for key in row if key != "truncated"} for row in rows]
    write_csv(run / "evaluations.csv", rows)
    console = Console(file=io.StringIO(), width=200)
    console.print(summary(Run(run, config)))
    shown = console.file.getvalue()
    assert ("7 of 9" in shown and "at the time limit" in shown) == (records == "told")
    assert "No episode of the last evaluation of seed 1 ended in its 9,000 steps." in shown


def test_a_line_of_progress_tells_of_games_that_do_not_end():
    def told(episodes, truncated, mean):
        score = Score(*map(np.array, ([mean], [0.0], [episodes], [1.0], [truncated])), {})
        return _told(score, np.array([True]))

    assert told(5, 0, 2.0) == "2"
    assert told(5, 4, 2.0) == "2, 4 of 5 episodes at the time limit"
    assert told(0, 0, np.nan) == "–, no episode ended"


@pytest.mark.slow
def test_records_of_before_are_continued_without_the_column(tmp_path, monkeypatch):
    """A run folder of before truncated episodes were counted resumes with its own columns."""
    whole = small.train(tmp_path / "whole")
    with monkeypatch.context() as then:
        append = Table.append
        then.setattr(Table, "append", lambda self, rows: append(self, map(without, rows)))
        old = small.train(tmp_path / "old", steps=300)
    with pytest.warns(UserWarning, match="begun without 'truncated'"):
        idrl.train(resume=old, steps=400)
    assert "truncated" in whole.evaluations
    assert "truncated" not in old.evaluations
    assert [*old.evaluations] == [*map(without, whole.evaluations)]
    assert (old.path / "metrics.csv").read_bytes() == (whole.path / "metrics.csv").read_bytes()
    assert summary(old).rows == summary(whole).rows


def without(row):
    return {key: value for key, value in row.items() if key != "truncated"}


@pytest.mark.slow
def test_a_run_that_nothing_scored_is_scored_by_its_latest_weights(tmp_path):
    """Its best weights are those it began with."""
    settings = small.SETTINGS | {"evaluation": {"every_steps": 200, "steps": 2, "envs": 2}}
    run = small.train(tmp_path / "run", settings=settings)
    with pytest.warns(UserWarning, match="no evaluation has scored seeds 5, 6: the latest weights"):
        found = idrl.evaluate(run, episodes=2)
    latest = [idrl.evaluate(idrl.load(run, seed, "latest"), episodes=2) for seed in (5, 6)]
    np.testing.assert_array_equal(found.return_mean, [score.return_mean for score in latest])
