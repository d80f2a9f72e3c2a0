"""The trained agents in results/models: small, listed, and ready to play."""

import csv
from pathlib import Path

import numpy as np
import pytest

import idrl
from idrl.envs import make_env
from idrl.runs.loading import MODEL

ROOT = Path(__file__).parents[1]
FOLDER, RANDOM = ROOT / "results" / "models", ROOT / "benchmarks" / "claim" / "random.csv"


def listed():
    with open(FOLDER / "models.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_model_is_listed_and_all_are_small():
    files = sorted(path.name for path in FOLDER.glob(f"*{MODEL}"))
    assert files == sorted(row["file"] for row in listed())
    assert {row["agent"] for row in listed()} == {"dqn", "c51-ids"}
    assert sum((FOLDER / name).stat().st_size for name in files) < 35e6


@pytest.mark.parametrize("row", listed(), ids=lambda row: row["file"])
def test_a_model_loads_and_decides(row):
    """For the game and the agent that the list says."""
    agent = idrl.load(FOLDER / row["file"])
    assert (agent.config.agent, agent.config.env) == (row["agent"], row["env"])
    assert agent.seed == int(row["seed"])
    actions = make_env(row["env"]).num_actions
    boards = np.random.default_rng(0).integers(0, 2, (4, *agent.agent.obs_shape))
    assert set(agent.predict(boards).tolist()) <= set(range(actions))


def test_what_is_explained_is_what_is_played():
    """Not what the agent was trained on."""
    agent = idrl.load(FOLDER / "minatar-breakout-dqn.safetensors")
    for env in (None, "minatar/breakout?sticky=0.5"):
        title = idrl.explain(agent, env).title
        assert title == f"dqn on {env or agent.config.env}, seed {agent.seed}, step 0"


@pytest.mark.slow
@pytest.mark.parametrize("row", listed(), ids=lambda row: row["file"])
def test_a_model_plays_far_better_than_chance(row):
    """Best weights are chosen among evaluations, so they need not repeat the best of them."""
    with open(RANDOM, encoding="utf-8", newline="") as file:
        chance = {one["env"]: float(one["random"]) for one in csv.DictReader(file)}[row["env"]]
    score = float(idrl.evaluate(FOLDER / row["file"], episodes=20).return_mean)
    assert score > chance + 0.4 * (float(row["score"]) - chance)
