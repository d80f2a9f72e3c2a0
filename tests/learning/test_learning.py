"""Every agent, with the optimiser it is declared with, learns a task that it is known to learn.

Probes (`tests/test_probes.py`) replace optimiser and schedule, so they cannot see wrong ones. Here
nothing is replaced: `scaling.py` says what is counted differently.
"""

import itertools
import time

import games
import pytest
import scaling

import idrl
from idrl.agents import agent_names, declared
from idrl.schema import merge

SEEDS = 2
SHARE = 0.8  # of the way from random play to the optimum

# Random play (2,000 episodes), and what agents that solve it come to: the optimum is not known, and
# all of results/control are between −144 and −163.
PENDULUM = (-1230.0, -150.0)


@pytest.fixture(autouse=True, scope="module")
def tasks():
    """Names, so that the preset is found as it is for anybody's own environment."""
    idrl.register_env("picture-catch", games.Catch)
    idrl.register_env("gym-catch", games.GymCatch)


def held(run: idrl.Run) -> float:
    """The largest score that the mean over seeds had in two evaluations in a row."""
    found: dict[int, list[float]] = {}
    for row in run.evaluations:
        found.setdefault(int(row["steps"]), []).append(float(row["return_mean"]))
    means = [sum(scores) / SEEDS for scores in found.values() if len(scores) == SEEDS]
    return max(map(min, itertools.pairwise(means)), default=float("-inf"))


@pytest.fixture
def reaches(request, tmp_path, record_property):
    """Train until the threshold is held or the steps are over: the score and the threshold."""
    option = request.config.getoption

    def reaches(agent: str, env: str, ends: tuple[float, float], settings: dict):
        eps = option("--rmsprop-eps")
        if eps is not None:
            if declared(agent).optimiser.kind != "rmsprop":
                pytest.skip("not declared with RMSProp")
            settings = merge(settings, {"optimiser": {"eps": eps}})
        random, best = ends
        threshold = random + SHARE * (best - random)
        out, began = tmp_path / "run", time.process_time()

        def enough() -> bool:
            return held(idrl.Run(out, None)) >= threshold  # type: ignore[arg-type]

        run = idrl.train(
            agent, env, settings=settings, seeds=SEEDS, seed=option("--first-seed"), out=out,
            until=enough,
        )  # fmt: skip
        score, steps = held(run), int(run.evaluations[-1]["steps"])
        seconds = time.process_time() - began
        record_property("learned", (agent, env, steps, score, threshold, seconds))
        return score, threshold

    return reaches


def _long_first(agents: list[str]) -> list[str]:
    """Two processes share the work: what is left for the end should be short."""
    return sorted(agents, key=lambda agent: (declared(agent).optimiser.lr, agent))


@pytest.mark.parametrize("agent", _long_first(agent_names(continuous=False)))
def test_discrete(agent, reaches):
    settings = scaling.settings(agent, "picture-catch", games.MOVES)
    score, threshold = reaches(agent, "picture-catch", (games.RANDOM, games.OPTIMUM), settings)
    assert score >= threshold


@pytest.mark.parametrize("agent", _long_first(agent_names(continuous=True)))
def test_continuous(agent, reaches):
    settings = {"training": {"distributions_every_steps": 0}}
    score, threshold = reaches(agent, "pendulum", PENDULUM, settings)
    assert score >= threshold


def test_rewards_of_20(reaches):
    """C51 has atoms from −10 to 10; the preset for pictures clips what is learned."""
    settings = scaling.settings("c51", "gym-catch", games.MOVES)
    reward = games.GymCatch.reward
    ends = (reward * games.RANDOM, reward * games.OPTIMUM)
    score, threshold = reaches("c51", "gym-catch", ends, settings)
    assert score >= threshold
