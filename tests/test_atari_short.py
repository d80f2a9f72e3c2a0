"""The preset `short` of Atari: what it resolves to, and that it trains."""

import pytest

from idrl.agents import agent_names, declared
from idrl.config import resolve
from idrl.envs.families.atari.short import SHORT
from idrl.schema import flat, to_dict
from idrl.sweep.study import find, parse

STUDY = parse(find("atari-short")[1]).groups[0]
DISCRETE = [name for name in agent_names() if declared(name).actor is None]


def settings(agent, preset="short", env="atari/asterix"):
    return flat(to_dict(resolve(agent, env, named=preset)))


@pytest.mark.parametrize("agent", STUDY.agents)
def test_agents_of_the_study_have_the_same_numbers(agent):
    found = settings(agent)
    assert found["env"] == "atari/asterix"
    assert found["optimiser.lr"] == SHORT[found["optimiser.kind"]]["lr"] == 2.5e-4
    assert found["learning.target_every_steps"] == 8_000
    assert found["learning.learning_starts_steps"] == 20_000
    assert (found["evaluation.every_steps"], found["evaluation.steps"]) == (250_000, 25_000)
    assert (found["evaluate.kind"], found["evaluate.start"]) == ("epsilon_greedy", 0.001)
    if found["explore.kind"] == "epsilon_greedy":
        assert (found["explore.end"], found["explore.decay_steps"]) == (0.01, 250_000)


@pytest.mark.parametrize("agent", DISCRETE)
def test_the_rest_is_the_papers(agent):
    changed = {
        name
        for name, value in settings(agent).items()
        if settings(agent, "paper").get(name) != value
    }
    assert changed <= {
        "optimiser.lr", "learning.target_every_steps", "learning.learning_starts_steps",
        "explore.end", "explore.decay_steps", "evaluation.steps", "evaluate.kind",
        "evaluate.start", "evaluate.end", "evaluate.decay_steps",
    }  # fmt: skip


@pytest.mark.parametrize("agent", ["dueling", "prioritized", "rainbow"])
def test_larger_gradients_have_a_quarter(agent):
    assert settings(agent)["optimiser.lr"] == 2.5e-4 / 4


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["dqn", "c51-ids"])
def test_it_trains(agent, tmp_path):
    pytest.importorskip("ale_py")
    import idrl

    small = [
        "learning.learning_starts_steps=500", "learning.replay_capacity=2000",
        "learning.update_every_steps=64", "evaluation.every_steps=1000", "evaluation.steps=2000",
        "evaluation.envs=2", "training.log_every_steps=500",
    ]  # fmt: skip
    run = idrl.train(
        agent, "atari/asterix", preset="short", steps=2_000, envs=8, settings=small,
        out=tmp_path / "run",
    )  # fmt: skip
    assert len(run.evaluations) == 2
