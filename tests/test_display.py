"""What is shown of a run on its way: in a terminal and in lines, with the time that is left."""

import io
import re
from types import SimpleNamespace

import numpy as np
import pytest
from films import Film
from rich.console import Console

from idrl.config import resolve
from idrl.runs.display import LiveDisplay
from idrl.runs.pace import Pace, lasting
from idrl.training.doing import EVALUATING, LEARNING, RANDOM, REPLAYING, RESUMING, Doing
from idrl.training.hosted import fleet as fleets

TOTAL = 4_000_000


class Watched:
    """A display whose clock goes as a test says."""

    def __init__(self, terminal=False):
        self.now, self.file = 100.0, io.StringIO()
        console = Console(
            file=self.file, width=200, force_terminal=terminal, force_interactive=terminal,
            no_color=True,
        )  # fmt: skip
        self.display = LiveDisplay(console, clock=lambda: self.now)
        changes = {"training": {"steps": TOTAL}, "evaluation": {"every_steps": 1_000_000}}
        self.config = resolve("dqn", "atari/pong", changes=[changes])
        self.display.start()

    def spend(self, seconds, what, steps, total=TOTAL, first=0, ticks=200):
        """That long from `first` to `steps`."""
        for tick in range(ticks + 1):
            done = first + (steps - first) * tick // ticks
            self.display.busy(Doing(what, done, total), self.config)
            self.now += seconds / ticks if tick < ticks else 0

    def update(self, steps, score=None, at=None):
        score = (
            None
            if score is None
            else SimpleNamespace(
                return_mean=np.array([score]), episodes=np.array([5]), truncated=np.array([0])
            )
        )
        progress = SimpleNamespace(
            steps=steps, episodes=SimpleNamespace(returns=np.array([])), metrics=None, score=score,
            alive=np.array([True]),
            scored=None if score is None else SimpleNamespace(steps=at or steps, alive=[True]),
        )  # fmt: skip
        self.display.update(progress, self.config)

    def lines(self):
        return self.file.getvalue().splitlines()


def test_a_replay_is_told_with_what_is_left_of_it():
    run = Watched()
    run.display.busy(Doing(RESUMING, 250_000, TOTAL), run.config)
    run.spend(65, REPLAYING, 325_000, 325_000)
    compiling, resuming, *replaying = run.lines()
    assert (compiling, resuming) == ("compiling …", "resuming at 1,000,000 of 16,000,000 frames")
    assert re.fullmatch(r"replaying [\d,]+ of 1,300,000 frames … 6\d s left", replaying[0])
    assert re.fullmatch(r"replaying [\d,]+ of 1,300,000 frames … 3\d s left", replaying[1])
    assert len(replaying) <= 3
    assert "\x1b" not in run.file.getvalue()


@pytest.mark.parametrize("what", [REPLAYING, RANDOM])
def test_nothing_is_said_of_what_takes_a_moment(what):
    run = Watched()
    run.spend(1.8, what, 5_000, 5_000)
    assert run.lines() == ["compiling …"]


def test_random_steps_and_learning_have_speeds_of_their_own():
    """50,000 random steps take 50 s, a million others 15 minutes, an evaluation 100 s."""
    run = Watched()
    run.spend(50, RANDOM, 50_000, 50_000)
    assert "random actions: 6,000 of 200,000 frames … 48 s left" in run.lines()[1]
    run.update(50_000)
    run.now += 40  # compiling
    said = len(run.lines())
    run.spend(900, LEARNING, 1_000_000, first=51_000, ticks=2_000)
    first = run.lines()[said]
    assert first.endswith("at least 62 min left")
    run.spend(100, EVALUATING, 1_000_000, first=1_000_000)
    run.update(1_000_000, score=3.0)
    # three million steps at 1,054 a second, and three evaluations more
    assert run.lines()[-1].endswith("evaluation 3   52 min left")
    assert len(run.lines()) < 30
    run.update(TOTAL, score=4.0)
    assert run.lines()[-1].endswith("evaluation 4")


def test_an_evaluation_that_ended_later_says_what_it_is_of():
    run = Watched()
    run.update(50_000)
    run.now += 60
    run.update(1_100_000, score=3.0, at=1_000_000)
    assert "evaluation 3 at 4,000,000 frames" in run.lines()[-1]


def test_a_line_whose_speed_is_not_known_names_none():
    run = Watched()
    run.update(2_000_000, score=1.5)
    assert " – frames/s " in run.lines()[-1]


def test_lines_of_a_long_run_are_few():
    run = Watched()
    run.update(50_000)
    run.spend(86_400, LEARNING, 900_000, first=50_000, ticks=20_000)
    assert 20 < len(run.lines()) < 100


def test_a_terminal_shows_what_comes_before_learning_and_evaluations():
    run = Watched(terminal=True)
    drawn, update = [], run.display.live.update
    run.display.live.update = lambda what: (drawn.append(what), update(what))
    with run.display:
        run.spend(10, REPLAYING, 90_000, 90_000)
        assert [len(grid.rows) for grid in drawn[-2:]] == [1, 1]
        texts = [str(next(iter(grid.columns[0].cells))) for grid in drawn]
        assert re.fullmatch(r"replaying [\d,]+ of 360,000 frames … \d s left", texts[-2])
        assert texts[-1] == "compiling …"
        assert len(texts) < 50
        run.spend(10, LEARNING, 100_000, first=90_000)
        assert run.display.bar.tasks[0].fields["left"].startswith("at least ")
        run.spend(10, EVALUATING, 100_000, first=100_000)
        assert "evaluating …" in list(drawn[-1].columns[0].cells)[-1]


def test_what_has_made_steps_is_not_compiling():
    """A short run is over before its speed is known."""
    run = Watched(terminal=True)
    fields = []
    with run.display:
        run.spend(1, LEARNING, 0, ticks=2)
        fields.append(dict(run.display.bar.tasks[0].fields))
        run.now += 40
        run.update(TOTAL // 2)
        fields.append(dict(run.display.bar.tasks[0].fields))
    assert [(told["rate"], told["left"]) for told in fields] == [("–", "compiling …"), ("–", "")]


def test_the_first_stretch_is_compiling_and_counts_for_nothing():
    now = [0.0]
    pace = Pace(lambda: now[0])
    for done, at in ((0, 0), (10, 100), (20, 101), (30, 102)):
        now[0] = at
        pace.note(Doing(LEARNING, done, 1_000))
    assert pace.speed() == pytest.approx(10)
    assert pace.speed(RANDOM) == 0
    assert pace.run_left(30, 1_000, 2_000) == "at least 97 s left"


def test_times_are_said_in_a_unit_that_fits():
    said = [lasting(seconds) for seconds in (0, 42.4, 99, 120, 5_400, 36_000, 864_000)]
    assert said == ["0 s", "42 s", "99 s", "2 min", "90 min", "10.0 h", "10.0 days"]


def test_environments_tell_how_far_their_replay_is():
    env, seed, told = Film(), np.arange(4), []
    vector = env.make(4)
    rollout = fleets.HostRollout(
        vector, fleets.begin(env, vector, seed), fleets.open_journal(env, seed), 0
    )
    for _ in range(30):
        rollout.advance(np.ones(4, np.int32))
    place = rollout.fleet, rollout.close(), 30
    fleets.replay_journal(env, env.make(4), *place, told.append)
    assert told == [Doing(REPLAYING, 4 * step, 120) for step in range(31)]
