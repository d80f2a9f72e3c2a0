"""Environments on the host in other processes: the same as in this one, and what goes wrong."""

import os
import signal
import threading
import time
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from films import Film
from gymnasium import spaces
from mazes import GymMaze

import idrl
from idrl.cli.app import main
from idrl.envs.adapters.gymnasium_env import GymnasiumEnv
from idrl.envs.families.atari.env import AtariEnv
from idrl.envs.host import NO_SEED, History
from idrl.envs.processes import Lost, how_many, make_vector
from idrl.training.hosted import fleet as fleets

SETTINGS = {
    "trunk": {"hidden": [8]},
    "heads": {"q": {"hidden": [8]}},
    "learning": {"learning_starts_steps": 40, "replay_capacity": 600, "target_every_steps": 50},
    "training": {"steps": 300, "envs": 3, "log_every_steps": 100},
    "evaluation": {"every_steps": 100, "steps": 30, "envs": 2},
}


class Walk(gymnasium.Env):
    """Two continuous actions; it warns at its first step and breaks when both actions are 1."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.t = self.np_random.normal(size=2), 0
        return self.at, {}

    def step(self, action):
        self.t += 1
        if (action == 1).all():
            raise RuntimeError("no such road")
        if self.t == 1:
            warnings.warn("the road is wet", RuntimeWarning, stacklevel=1)
        self.at = self.at + action
        return self.at, float(self.at.sum()), self.t == 7, False, {}


def check_same(a, b):
    assert (a.allowed is None) == (b.allowed is None)
    assert (a.life_lost is None) == (b.life_lost is None)
    for name, x in a._asdict().items():
        assert x is None or np.array_equal(x, getattr(b, name)), name


def maze_actions(seen, rng):
    """What may be done, at random; who does nothing useful in a maze does not end."""
    return np.array([rng.choice(np.flatnonzero(row)) for row in seen.allowed], np.int32)


def test_processes_do_what_one_does_and_replay_it():
    """Masks, in shares of unequal size. Of unequal histories each process replays its own part."""
    env = GymnasiumEnv(lambda: GymMaze(limit=9))
    here, there = env.make(5), make_vector(env, 5, 20.0, 3)
    rng, nobody, history = np.random.default_rng(0), np.full(5, NO_SEED), []
    seed = np.arange(5)
    seen = here.step(env.no_actions(5), seed)
    check_same(seen, there.step(env.no_actions(5), seed))
    for t in range(40):
        action = maze_actions(seen, rng)
        anew = np.where(t == 10 + np.arange(5), 100 + t, nobody)
        before = seen
        seen = here.step(action, anew)
        there.send(action, anew)
        got = there.recv()
        check_same(seen, got)
        history.append(action)
    check_same(before, before)  # what was handed out stays as it is
    assert not np.array_equal(before.obs, got.obs)
    told = []
    past = History(100 + 10 + np.arange(5), 11 + np.arange(5), np.stack(history))
    past = past._replace(since=past.since - 11, actions=past.actions[11:])
    again = there.replay(env, past, told.append)
    assert np.array_equal(again.obs, seen.obs)
    assert np.array_equal(again.allowed, seen.allowed)
    assert told == sorted(told)
    assert max(told[:-1]) <= past.actions.size
    assert told[-1] == past.actions.size
    with pytest.raises(RuntimeError, match="recv must follow send"):
        there.recv()
    here.close()
    there.close()


def test_a_failure_there_is_the_sentence_that_it_is_here():
    """With the environment's number among all; the others go on, and so does that one."""
    env = GymnasiumEnv(Walk)
    vector = make_vector(env, 2, 20.0, 2)
    vector.step(env.no_actions(2), np.arange(2))
    with pytest.warns(RuntimeWarning, match="the road is wet"):
        vector.step(np.zeros((2, 2), np.float32), np.full(2, NO_SEED))
    with pytest.raises(idrl.IdrlError, match=r"Walk raised .* of environment 1, .* no such road"):
        vector.step(np.array([[0, 0], [1, 1]], np.float32), np.full(2, NO_SEED))
    here = env.make(2)
    again = np.full(2, 7)
    check_same(vector.step(env.no_actions(2), again), here.step(env.no_actions(2), again))
    os.kill(vector.children[0].process.pid, signal.SIGKILL)
    ended = pytest.raises(Lost, match=r"a process of Walk ended \(signal 9\); .*--resume")
    with ended:
        vector.step(np.zeros((2, 2), np.float32), np.full(2, NO_SEED))
    # A resumed run does not take that for environments that come out elsewhere.
    fleet = fleets.blank(env, 2)
    journal = fleets.open_journal(env, again)
    with ended:
        fleets.replay_journal(env, vector, fleet, journal, 0)
    vector.close()
    vector.close()


@pytest.mark.slow
def test_what_is_registered_here_is_there_and_what_lies_about_is_not(tmp_path, monkeypatch):
    """A process is a new interpreter, and nothing is imported from the folder one is in."""
    (tmp_path / "json.py").write_text("open('imported', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", gymnasium.registry.copy())
    monkeypatch.setattr(gymnasium, "registry", gymnasium.envs.registration.registry)
    gymnasium.register("lab/Walk-v0", entry_point=Walk)
    env = GymnasiumEnv(lambda: gymnasium.make("lab/Walk-v0", disable_env_checker=True))
    vector = make_vector(env, 2, 20.0, 2)
    seen = vector.step(env.no_actions(2), np.arange(2))
    check_same(seen, env.make(2).step(env.no_actions(2), np.arange(2)))
    vector.close()
    assert not (tmp_path / "imported").exists()


@pytest.mark.slow
def test_environments_that_cannot_be_made_there_say_why():
    def make():
        if os.getpid() != here:
            raise OSError("no display :0, says \udcff")
        return Walk()

    here = os.getpid()
    vector = make_vector(GymnasiumEnv(make), 2, 20.0, 2)
    for _ in range(2):
        with pytest.raises(Lost, match="Walk raised OSError at its making: no display :0"):
            vector.step(np.full((2, 2), np.nan, np.float32), np.arange(2))
    vector.close()


@pytest.mark.slow
def test_a_replay_that_is_stopped_ends_its_processes():
    class Enough(Exception):
        pass

    def stop(done):
        time.sleep(0.1)
        raise Enough

    vector = make_vector(Film(), 4, 0.0, 2)
    past = History(np.zeros(4, int), np.zeros(4, int), np.zeros((300_000, 4), np.int32))
    with pytest.raises(Enough):
        vector.replay(Film(), past, stop)
    began = time.monotonic()
    processes = [child.process for child in vector.children]
    vector.close()
    assert all(process.returncode is not None for process in processes)
    assert time.monotonic() - began < 20


def test_what_cannot_be_sent_to_a_process_is_refused():
    lock = threading.Lock()

    def make():
        assert not lock.locked()
        return Walk()

    with pytest.raises(
        idrl.IdrlError, match=r"Walk cannot be made in another process, .*processes=1"
    ):
        make_vector(GymnasiumEnv(make), 2, 0.0, 2)


def test_how_many_processes_there_are():
    class Games(Film):
        def processes(self, count, cores):
            return 5

    pong = AtariEnv("pong")
    assert [how_many(Film(), 8, asked) for asked in (0, 1, 3, 20)] == [1, 1, 3, 8]
    assert [how_many(Games(), count, 0) for count in (1, 4, 8)] == [1, 4, 5]
    games = {(128, 16): 16, (64, 16): 16, (32, 16): 8, (1, 16): 0, (128, 2): 1}
    assert {how: pong.processes(*how) for how in games} == games
    assert pong.part(8, 1).threads == pong.part(8, 2).threads == 2
    assert pong.part(8, 4).threads == 4
    assert AtariEnv("pong", threads=3).part(8, 2).threads == 3


def test_a_task_on_the_device_has_no_such_processes(tmp_path, capsys):
    out = str(tmp_path / "run")
    assert (
        main(["train", "dqn", "deep_sea/4", "--out", out, "--set", "training.env_processes=2"]) == 2
    )
    told = "training.env_processes is for environments that run on the host; deep_sea/4 runs"
    assert told in capsys.readouterr().err
    assert (
        main(
            ["train", "dqn", "gym/CartPole-v1", "--out", out, "--set", "training.env_processes=-1"]
        )
        == 2
    )
    assert "must be a number of processes, or 0" in capsys.readouterr().err
    assert not Path(out).exists()


def tables(run):
    return {name: (run.path / f"{name}.csv").read_text() for name in ("episodes", "evaluations")}


@pytest.mark.slow
def test_a_run_is_the_same_with_any_number_and_may_change_it(tmp_path):
    def train(processes, **how):
        training = SETTINGS["training"] | {"env_processes": processes}
        return idrl.train(
            "dqn", lambda: GymMaze(limit=9), settings=SETTINGS | {"training": training}, **how
        )

    one, two = train(1, out=tmp_path / "1"), train(2, out=tmp_path / "2")
    assert tables(one) == tables(two)
    longer = [
        idrl.train(resume=run.path, env=lambda: GymMaze(limit=9), steps=500,
                   settings={"training": {"env_processes": processes}})
        for run, processes in ((one, 3), (two, 1))
    ]  # fmt: skip
    assert tables(longer[0]) == tables(longer[1])
    assert longer[0].config.training.env_processes == 3


@pytest.mark.slow
@pytest.mark.parametrize("release", [False, True])
def test_games_do_the_same_in_processes(release, recwarn):
    env = AtariEnv("breakout", sticky=0.25, release=release)
    rng, nobody = np.random.default_rng(0), np.full(4, NO_SEED)
    for kind in (env, env.for_evaluation()):
        here, there = kind.make(4), make_vector(kind, 4, 60.0, 2)
        check_same(*(v.step(kind.no_actions(4), np.arange(4)) for v in (here, there)))
        for _ in range(120):
            action = rng.integers(0, kind.num_actions, 4).astype(np.int32)
            check_same(here.step(action, nobody), there.step(action, nobody))
        here.close()
        there.close()
    assert [
        str(one.message) for one in recwarn
    ] == []  # ale-py registers its games with Gymnasium, here and there
