"""The paper's table from its own scores, and statistics that equal rliable's."""

import csv
import io

import numpy as np
import pytest

from idrl.cli.app import main
from idrl.report import paper, statistics

# What Table 1 prints comes out of the scores of each game with this rounding.
RECOMPUTED = {  # agent: median, mean as printed, mean with the appendix's Video Pinball
    "DQN": (79, 233, 445),
    "Bootstrapped DQN": (139, 552, 1493),
    "DQN-IDS": (187, 757, 1562),
    "C51": (178, 720, 1825),
    "QR-DQN": (211, 941, 1757),
    "IQN": (238, 1143, 1949),
    "C51-IDS": (253, 1057, 1933),
}


def test_table_1_comes_out_of_the_scores(capsys):
    assert main(["paper", "--format", "csv"]) == 0
    rows = {row["agent"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    columns = ("median", "mean", "mean, Video Pinball − 16,256.9")
    for agent, numbers in RECOMPUTED.items():
        assert tuple(round(float(rows[agent][column])) for column in columns) == numbers
    assert rows["C51-IDS"]["printed mean"] == "1058"
    assert rows["NoisyNet-DQN"]["mean"] == ""  # printed, but without scores of each game
    assert len(rows) == 13


@pytest.mark.parametrize("form", ["table", "markdown", "latex"])
def test_every_form_of_the_table_shows_the_numbers(form, capsys):
    assert main(["paper", "--format", form]) == 0
    out = capsys.readouterr().out
    assert "1,057" in out
    assert "253" in out


def test_every_game_has_a_score_of_every_agent(capsys):
    assert main(["paper", "--games", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 55
    assert all(value for row in rows for value in row.values())


@pytest.mark.parametrize(
    ("env", "game"),
    [
        ("atari/ms_pacman", "ms_pacman"),
        ("atari/pong?sticky=0.25", "pong"),
        ("gym/ALE/MsPacman-v5", "ms_pacman"),
        ("gym/VideoPinballNoFrameskip-v4", "video_pinball"),
        ("gym/CartPole-v1", None),
        ("atari/defender", "defender"),
        ("gym/ALE/Surround-v5", "surround"),
        ("minatar/breakout", None),
        ("atari/adventure", None),
    ],
)
def test_environments_are_atari_games(env, game):
    assert paper.game_of(env) == game


# Five runs on six tasks, and four of another agent.
X = np.array([
    [0.454, 0.337, 0.668, 1.342, 1.027, 0.963], [0.541, 0.996, 0.733, 1.934, 0.75, 0.644],
    [0.163, 1.369, 0.474, 0.126, 0.983, 0.218], [1.742, 1.202, 0.578, 0.116, 0.102, 0.816],
    [0.431, 0.72, 0.806, 0.166, 0.961, 0.619],
])  # fmt: skip
Y = np.array([
    [1.119, 0.37, 0.065, 0.366, 0.228, 0.393], [0.168, 0.543, 1.289, 0.64, 0.842, 0.429],
    [0.079, 0.679, 0.221, 0.393, 1.189, 0.744], [0.811, 0.282, 0.479, 0.379, 0.339, 0.667],
])  # fmt: skip
# By rliable 1.2.0 with arch 7.2.0, np.random.seed(1) and 2,000 resamples.
RLIABLE_IQM = (0.6963125, 0.53250625, 0.84951875)
RLIABLE_GAP = (0.3545, 0.25116083333333333, 0.4586883333333331)


def rliables_draws(reps):
    """rliable draws a whole matrix for each resample from NumPy's old generator."""
    old = np.random.RandomState(1)
    drawn = np.stack([old.choice(len(X), X.shape, replace=True) for _ in range(reps)])
    return list(np.moveaxis(drawn, -1, 0))


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [(statistics.iqm, RLIABLE_IQM), (statistics.optimality_gap, RLIABLE_GAP)],
)
def test_intervals_equal_rliables_on_the_same_draws(statistic, expected):
    tasks = list(X.T)
    low, high = statistics.bounds(statistic(statistics.resample(tasks, rliables_draws(2_000))))
    assert (statistic(X.ravel()), low, high) == pytest.approx(expected, abs=1e-12)
    # Our own draws: within what 10,000 resamples of any generator vary by.
    assert tuple(statistics.estimate(tasks, statistic)) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("statistic", [statistics.iqm, statistics.optimality_gap])
def test_tasks_count_alike_however_many_runs_they_have(statistic):
    """A task with half the runs counts as if each had been there twice."""
    half, whole = X[0, :3], X[1]
    assert len(whole) == 2 * len(half)
    twice = statistic(np.concatenate([half, half, whole]))
    found = statistics.estimate([half, whole], statistic)
    assert found.value == pytest.approx(twice)
    assert found.low < found.value < found.high
    taus = np.array([0.25, 0.5, 1.0])
    share, *_ = statistics.profile([half, whole], taus)
    assert share == pytest.approx(statistics.profile([np.tile(half, 2), whole], taus)[0])
    many = np.linspace(0, 1, 7), np.array([0.2])  # 7 weights of 1, one of 7
    assert statistics.estimate(many, statistic).value == pytest.approx(
        statistic(np.concatenate([many[0], np.repeat(many[1], 7)]))
    )


def test_profile_and_improvement_are_rliables():
    taus = np.array([0.25, 0.5, 1.0, 1.5])
    share, low, high = statistics.profile(list(X.T), taus)
    assert share == pytest.approx([0.8, 2 / 3, 0.2, 1 / 15])
    # rliable with 50,000 resamples; a share of 30 runs moves in steps of 1/30
    assert low == pytest.approx([2 / 3, 0.5, 1 / 15, 0.0], abs=0.034)
    assert high == pytest.approx([14 / 15, 0.8, 1 / 3, 1 / 6], abs=0.034)
    better = statistics.chance_better(list(X.T), list(Y.T))
    assert better.value == pytest.approx(0.6083333333333334)
    assert (better.low, better.high) == pytest.approx((0.44166667, 0.76666667), abs=0.02)


def test_one_run_has_no_interval_and_ties_count_half():
    one = [np.array([0.3]), np.array([0.5])]
    assert np.isnan(statistics.estimate(one).low)
    tie = statistics.chance_better(one, one)
    assert tie.value == 0.5
    assert np.isnan(tie.low)
    ragged = [np.array([0.1, 0.2, 0.3]), np.array([0.5])]
    assert statistics.estimate(ragged).low < statistics.estimate(ragged).high
