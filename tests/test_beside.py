"""Evaluations that are played beside training find what they find when training waits for them."""

import functools
from types import SimpleNamespace

import gymnasium
import jax
import numpy as np
import pytest
from displays import Dies
from films import Film, Reel
from mazes import GymMaze
from safetensors.numpy import load_file

import idrl
from idrl.cli.app import main
from idrl.config import resolve
from idrl.envs.processes import ProcessVector
from idrl.runs import saving, session
from idrl.runs.session import make_program
from idrl.storage import checkpoint
from idrl.training.doing import EVALUATING
from idrl.training.hosted import fleet as fleets
from idrl.training.loop import train
from idrl.training.program import Stopped
from idrl.training.seeding import env_seeds, seed_key

SETTINGS = {
    "trunk": {"kind": "mlp", "hidden": [4]},
    "learning": {
        "learning_starts_steps": 45, "replay_capacity": 120, "target_every_steps": 50,
        "batch_size": 2, "update_every_steps": 4,
    },
    "training": {
        "steps": 400, "envs": 2, "log_every_steps": 70, "distributions_every_steps": 0,
        "reseed_every": 2, "keep_weights": 3,  # after the first, second, fourth evaluation
    },
    "evaluation": {"every_steps": 100, "steps": 60, "envs": 2, "beside": True},
}  # fmt: skip
WAITING = {"evaluation": {"beside": False}}


def settings(*more):
    return functools.reduce(idrl.schema.merge, more, SETTINGS)


def trained(agent, env, out, *more, **how):
    return idrl.train(agent, env, settings=settings(*more), out=out, **how)


def check_same(run, other):
    for name in ("evaluations.csv", "episodes.csv", "metrics.csv"):
        assert (run.path / name).read_bytes() == (other.path / name).read_bytes(), name
    assert run.kept_weights == other.kept_weights
    for place in ("checkpoints", "weights"):
        mine, theirs = (checkpoint.listed(r.path / place)[-1] for r in (run, other))
        assert mine.name == theirs.name
        one, two = (load_file(p / checkpoint.ARRAYS) for p in (mine, theirs))
        assert one.keys() == two.keys()
        assert all(np.array_equal(one[name], two[name], equal_nan=True) for name in one)


def test_nothing_changes_but_when_it_is_told(tmp_path):
    """With masks, two seeds and steps of environments that an evaluation does not divide."""
    late = []

    class Watch(idrl.Callback):
        def on_progress(self, progress):
            self.steps = progress.steps

        def on_evaluation(self, evaluation):
            late.append(self.steps - evaluation.steps)

    more = {"seeds": 2, "training": {"steps": 300}}
    beside = trained("dqn-ids", GymMaze, tmp_path / "beside", more, callbacks=[Watch()])
    waiting = trained("dqn-ids", GymMaze, tmp_path / "waiting", more, WAITING)
    check_same(beside, waiting)
    assert beside.kept_weights == [102, 202]
    assert len(late) == 3
    assert min(late[:2]) > 0
    assert late[2] == 0


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "env", "more"), [
    ("dqn", Film, {}),
    ("c51-ids", Film, {"seeds": 2, "learning": {"replay_place": "host"}}),
    ("sac", lambda: gymnasium.make("Pendulum-v1"), {"training": {"env_processes": 2}}),
    # An evaluation is longer than the training between two.
    ("dqn", Film, {"evaluation": {"steps": 500}}),
    # Nobody ends an episode in time.
    ("dqn", Film, {"evaluation": {"steps": 2}}),
])  # fmt: skip
def test_for_whatever_is_trained(agent, env, more, tmp_path):
    run = trained(agent, env, tmp_path / "beside", more)
    check_same(run, trained(agent, env, tmp_path / "waiting", more, WAITING))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_environments_of_this_process_are_stepped_while_others_are(elsewhere):
    """Those in processes are not waited for first: the others may step in `recv` alone."""
    told = []

    class Training(Reel):
        def send(self, action, seed):
            told.append("training is sent")
            super().send(action, seed)

        def recv(self):
            told.append("training is received")
            return super().recv()

    class Beside:
        def send(self):
            told.append("evaluation is sent")

        def recv(self):
            told.append("evaluation is received")

    Training.elsewhere = elsewhere
    env, seed = Film(), np.arange(2)
    vector = Training(2)
    fleet = fleets.begin(env, vector, seed)
    told.clear()
    rollout = fleets.HostRollout(vector, fleet, fleets.open_journal(env, seed), 0)
    rollout.advance(np.zeros(2, np.int32), Beside())
    received = ["training is received", "evaluation is received"]
    sent = ["training is sent", "evaluation is sent"]
    assert told == [*sent, *(reversed(received) if elsewhere else received)]
    assert ProcessVector.elsewhere


# -- the loop ---------------------------------------------------------------------------------


@functools.cache
def program(steps, beside=True):
    """Evaluations are 150 vector steps apart, and take a hundred where they take 200 `steps`."""
    changes = settings(
        {"training": {"steps": 1000}},
        {"evaluation": {"every_steps": 300, "steps": steps, "beside": beside}},
    )
    return make_program(resolve("dqn", "film", changes=[changes], obs_shape=Film.obs_shape), Film())


def collect(p, state=None, iteration=0, **how):
    state = None if state is None else p.place(state)
    for progress in train(p, state, iteration, p.seed_keys(0), **how):
        yield jax.tree.map(np.array, progress)


def rest(p, begun):
    return collect(p, begun.state, int(begun.iteration), pending=bool(begun.pending))


def scores(parts):
    return [
        [x.tolist() for x in (p.scored.steps, p.scored.alive, *p.score[:4], p.better)]
        for p in parts
        if p.score is not None
    ]


def check_bits(parts, whole):
    assert str(scores(parts)) == str(scores(whole))
    pairs = zip(*map(jax.tree.leaves, (parts[-1].state, whole[-1].state)), strict=True)
    assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


@pytest.fixture
def hurried():
    jax.config.update("jax_disable_most_optimizations", True)  # compiling takes all the time here
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [150, 250, 400], ids=["in a block", "in two", "in more"])
def test_from_every_block(hurried, steps):
    """By who waits for evaluations, too."""
    whole = list(collect(program(steps)))
    under_way = {(p.state.judged is not None, bool(p.pending)) for p in whole}
    assert under_way == {(False, False), (True, False), (False, True), (True, True)}
    check_bits(whole, list(collect(program(steps, beside=False))))
    for beside in (True, False):
        for number, begun in enumerate(whole[:-1], 1):
            check_bits([*whole[:number], *rest(program(steps, beside), begun)], whole)


@pytest.mark.slow
def test_from_an_evaluation_that_was_cut_short(hurried):
    """One under way that the next or the end waits for, and the last one."""
    p = program(400)
    whole, found = list(collect(p)), set()
    for at in (1, 40, 60, 110, 300):
        evaluating = []

        def between(doing=None, evaluating=evaluating, at=at):
            evaluating.append(doing is not None and doing.what == EVALUATING)
            if sum(evaluating) == at:
                raise Stopped

        parts = list(collect(p, between=between))
        cut = parts[-1]
        assert cut.score is None
        assert cut.pending
        found.add((int(cut.steps), cut.state.judged is None))
        check_bits([*parts, *rest(p, cut)], whole)
    assert found == {(602, False), (902, False), (1002, False), (1002, True)}


# -- runs -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("now", [True, False])
def test_a_killed_run_ends_with_the_same_bits(now, tmp_path, monkeypatch):
    """Its checkpoint is of the middle of an evaluation; another may be resumed without."""
    monkeypatch.setattr(saving, "CHECKPOINT_SECONDS", 0)
    more = {"evaluation": {"every_steps": 300, "steps": 400}, "training": {"steps": 700}}
    whole = trained("dqn", Film, tmp_path / "whole", more)
    with pytest.raises(MemoryError):
        trained("dqn", Film, tmp_path / "killed", more, display=Dies(600))
    path = tmp_path / "killed"
    (place,) = checkpoint.listed(path / "checkpoints")[-1:]
    assert "judged/iteration" in load_file(place / checkpoint.ARRAYS)
    run = idrl.train(resume=path, env=Film, settings={"evaluation": {"beside": now}})
    check_same(run, whole)


LONG = {"evaluation": {"every_steps": 300, "steps": 400}, "training": {"steps": 900}}


class StopsAt(idrl.Callback):
    def __init__(self, steps):
        self.steps = steps

    def on_progress(self, progress):
        assert progress.metrics or progress.steps < 100  # none after random steps alone
        return progress.steps < self.steps


@pytest.mark.slow
def test_a_run_that_is_made_shorter_has_the_evaluation_under_way(tmp_path):
    runs = []
    for name, more in (("beside", {}), ("waiting", WAITING)):
        run = trained("dqn", Film, tmp_path / name, LONG, more, callbacks=[StopsAt(400)])
        runs.append(idrl.train(resume=run, env=Film, steps=run.steps))
        assert runs[-1].evaluations["steps"].tolist()[:1] == [302]
    check_same(*runs)


@pytest.mark.slow
def test_weights_to_keep_are_counted_from_the_first_evaluation(tmp_path):
    """Where none were kept before, and one under way is not told yet."""
    for name, steps, more, kept in (
        ("waiting", 400, {"training": {"steps": 450}, **WAITING}, []),
        ("beside", 400, {"training": {"steps": 450}}, [402]),
    ):
        run = trained(
            "dqn", Film, tmp_path / name, {"training": {"keep_weights": 0}}, more,
            callbacks=[StopsAt(steps)],
        )  # fmt: skip
        run = idrl.train(resume=run, env=Film, settings={"training": {"keep_weights": 3}})
        assert run.kept_weights == kept


@pytest.mark.slow
def test_a_run_that_is_stopped_at_its_last_step_is_finished(tmp_path):
    """By a callback or `until`: its evaluations are made first."""
    runs = []
    for name, how in (("beside", {}), ("waiting", WAITING)):
        callbacks, more = [StopsAt(402)], {"training": {"steps": 402}}
        runs.append(trained("dqn", Film, tmp_path / name, LONG, more, how, callbacks=callbacks))
        assert runs[-1].finished
    assert runs[0].evaluations["steps"].tolist() == [302, 402]
    check_same(*runs)


@pytest.mark.slow
def test_timings_have_the_last_evaluations(tmp_path, monkeypatch):
    """Here a second passes between two words of progress."""

    class Clock:
        seconds = 0

        def start(self):
            pass

        def update(self, progress, config):
            self.seconds += 1

    clock = Clock()
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: clock.seconds))
    run = trained("dqn", Film, tmp_path / "run", LONG, display=clock)
    assert run.timings["seconds"].sum() == clock.seconds - 1
    assert run.timings["steps"].tolist()[-3:] == [902, 902, 902]


class BadReel(Reel):
    """Rewards are no number after a while where a game began with one of the `bad` seeds."""

    def __init__(self, count, bad):
        super().__init__(count)
        self.bad, self.t_all, self.spoiled = bad, 0, np.zeros(count, bool)

    def recv(self):
        self.spoiled |= np.isin(self.asked[1], self.bad)
        self.t_all += 1
        seen = super().recv()
        if self.t_all < 250:
            return seen
        return seen._replace(reward=np.where(self.spoiled, np.float32(np.nan), seen.reward))


class BadFilm(Film):
    """Of the first run seed."""

    def make(self, count, timeout_s=0.0):
        key = jax.random.key_data(seed_key(np.uint32(0)))
        return BadReel(count, env_seeds(key[None], "env", 0, 2))


BAD = {
    "optimiser": {"lr": 0.01}, "learning": {"unit": "task"}, "training": {"reseed_every": 1000},
    "evaluate": {"kind": "epsilon_greedy", "start": 0.3, "end": 0.3},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*It is frozen there")
@pytest.mark.parametrize("debug", [False, True])
def test_a_seed_that_is_frozen_meanwhile_is_scored_all_the_same(debug, tmp_path):
    """--debug-nans plays the block again, and not what is beside it."""
    more = functools.reduce(idrl.schema.merge, [LONG, BAD, {"seeds": 2}])
    runs = [
        trained("dqn", BadFilm, tmp_path / name, more, how, debug_nans=debug)
        for name, how in (("beside", {}), ("waiting", WAITING))
    ]
    (step,) = runs[0].frozen["steps"].tolist()
    assert 302 < step < 602
    assert runs[0].evaluations.where(seed=0)["steps"].tolist() == [302]
    check_same(*runs)


@pytest.mark.slow
def test_the_last_seed_is_scored_before_the_run_fails(tmp_path):
    """What is saved is from before, so that the seed may be trained again."""
    heard = []

    class Hears(idrl.Callback):
        def on_evaluation(self, evaluation):
            heard.append(evaluation.steps)

    with pytest.raises(idrl.TrainingDiverged):
        trained("dqn", BadFilm, tmp_path / "run", idrl.schema.merge(LONG, BAD), callbacks=[Hears()])
    run = idrl.open_run(tmp_path / "run")
    assert heard == [302]
    assert run.evaluations["steps"].tolist() == [302]
    assert run.kept_weights == [302]
    assert run.steps == 0


@pytest.mark.slow
def test_nobody_hides_that_the_last_seed_failed(tmp_path):
    """Neither what stops a run with its last score, nor what raises there."""
    scored = []

    class Stops(idrl.Callback):
        def on_evaluation(self, evaluation):
            scored.append(evaluation.steps)
            return False

    class Raises(idrl.Callback):
        def on_evaluation(self, evaluation):
            raise KeyError

    more = idrl.schema.merge(LONG, BAD)
    for name, how in (
        ("callback", {"callbacks": [Stops()]}),
        ("until", {"until": (tmp_path / "until" / "evaluations.csv").exists}),
    ):
        with pytest.raises(idrl.TrainingDiverged):
            trained("dqn", BadFilm, tmp_path / name, more, **how)
    with pytest.raises(idrl.RunFailed, match=r"Nothing is saved yet; begin it again with idrl\.tr"):
        trained("dqn", BadFilm, tmp_path / "raises", more, callbacks=[Raises()])
    assert scored == [302]


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, WAITING])
def test_a_run_is_not_finished_in_its_last_evaluation(how, tmp_path):
    class Ends:
        """Where the last evaluation is made, and the one before has been told."""

        scored = None

        def start(self):
            pass

        def update(self, progress, config):
            self.scored = progress.scored.steps if progress.scored else None

        def busy(self, doing, config):
            if doing.what == EVALUATING and doing.done == 702 and (how or self.scored == 602):
                raise MemoryError

    with pytest.raises(MemoryError):
        trained(
            "dqn", Film, tmp_path / "run", LONG, {"training": {"steps": 700}}, how, display=Ends()
        )
    assert not idrl.open_run(tmp_path / "run").finished
    run = idrl.train(resume=tmp_path / "run", env=Film)
    assert run.finished
    assert run.evaluations["steps"].tolist() == [302, 602, 702]


@pytest.mark.slow
def test_a_run_that_is_to_stop_plays_no_evaluation_meanwhile(hurried):
    p = program(400)
    begun = next(x for x in collect(p) if x.state.judged is not None)
    state, iteration = p.place(begun.state), int(begun.iteration)
    parts = train(p, state, iteration, p.seed_keys(0), tell=lambda doing: True)
    next(parts)  # a resumed run plays it first
    made = []
    for progress in parts:
        if p.beside.judged is not None and progress.state.judged is not None:
            made.append(p.beside.player.t)
        if len(made) == 2:
            break
    first, second = made
    assert first <= 2  # an iteration's
    assert second - first <= 2


def test_a_task_on_the_device_refuses_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "dqn", "deep_sea/4", "--set", "evaluation.beside=true"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("idrl: evaluation.beside is for environments that run on the host; ")
    assert said.endswith("deep_sea/4 runs on the device: omit it.\n")
    assert list(tmp_path.iterdir()) == []
