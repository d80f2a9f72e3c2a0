"""What a run writes into its tables."""

import csv

import numpy as np
import pytest
import small
from displays import Dies

import idrl


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_episode_return_is_over_all_episodes_since_the_row_before(tmp_path):
    """A row comes once in several blocks, and a checkpoint may lie between two of them."""
    settings = small.SETTINGS | {"training": {"log_every_steps": 200}}
    run = small.train(tmp_path / "run", settings=settings)
    metrics, episodes = (rows(run.path / f"{name}.csv") for name in ("metrics", "episodes"))
    assert {int(row["steps"]) for row in metrics} == {200, 400}
    for row in metrics:
        steps = int(row["steps"])
        mine = [
            float(episode["return"])
            for episode in episodes
            if episode["seed"] == row["seed"] and steps - 200 < int(episode["steps"]) <= steps
        ]
        assert len(mine) > 40  # of four steps each
        assert float(row["episode_return"]) == pytest.approx(np.mean(mine), rel=1e-6)

    killed = tmp_path / "killed"
    with pytest.raises(MemoryError):
        small.train(killed, settings=settings, display=Dies(320))
    idrl.train(resume=killed)
    assert (killed / "metrics.csv").read_bytes() == (run.path / "metrics.csv").read_bytes()
