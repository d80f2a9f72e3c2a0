"""When the hosted loop learns, copies to the target and is evaluated: Atari's numbers, counted."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from films import Film

from idrl.agents.spec import Learning
from idrl.config import resolve
from idrl.runs.session import make_program
from idrl.training.spec import Evaluation, Training, cadence, due

STEPS, EVERY, TARGET = 1_100_000, 250_000, 40_000  # the length is no multiple of evaluations


def of(envs, steps=STEPS):
    training = Training(steps=steps, envs=envs)
    return cadence(training, Evaluation(every_steps=EVERY), Learning(), 100, flexible=True)


def blocks(c, start=0):
    while start < c.total:
        yield start, c.end(start)
        start = c.end(start)


def first_at(c, count):
    """Steps of the first iteration that ends at or past a count."""
    return next(s for s in itertools.count(c.warmup_steps, c.steps) if s >= count)


@pytest.mark.parametrize("envs", [1, 4, 6, 64])
def test_evaluations_are_at_their_counts_and_numbered_by_them(envs):
    c = of(envs)
    assert all(0 < end - start <= c.block for start, end in blocks(c))
    ends = [
        end
        for start, end in blocks(c)
        if end == c.total or due(c.steps_at(start), c.steps_at(end), EVERY)
    ]
    expected = [first_at(c, count) for count in (*range(EVERY, STEPS, EVERY), STEPS)]
    assert [c.steps_at(end) for end in ends] == expected
    assert [c.evaluation(end) for end in ends] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("envs", [1, 4, 6, 64])
def test_the_target_is_copied_at_its_counts(envs):
    c = of(envs)
    copied = [c.steps_at(i) for i in range(1, c.total + 1) if c.copies(i)]
    counts = range(TARGET * (c.warmup_steps // TARGET + 1), STEPS + 1, TARGET)
    assert copied == [first_at(c, count) for count in counts]


def test_where_an_iteration_is_a_vector_step_counts_are_met_in_it():
    """That is where the steps of an update divide the environments."""
    for envs in (4, 64):
        assert of(envs).vector_steps == 1
    assert of(1).steps == 4  # all counts are multiples of it
    assert of(6).vector_steps == 2


@pytest.mark.parametrize("envs", [1, 4, 6, 64])
def test_a_run_goes_on_from_any_block_in_the_same_ones(envs):
    c, longer = of(envs), of(envs, 4 * EVERY + STEPS)
    whole = list(blocks(c))
    for start, _ in whole[1:20:3]:
        assert list(blocks(c, start)) == whole[whole.index((start, c.end(start))) :]
    # One that ended at an evaluation, and is made longer, too.
    short = of(envs, 2 * EVERY)
    assert list(blocks(short)) == [b for b in blocks(longer) if b[1] <= short.total]
    assert short.evaluation(short.total) == longer.evaluation(short.total) == 2


@pytest.mark.parametrize("flexible", [True, False])
@pytest.mark.parametrize("envs", [1, 3, 8])
@pytest.mark.parametrize(("every", "starts"), [(250, 50), (100, 64), (1_000, 1_000), (10**6, 20)])
def test_blocks_do_not_depend_on_the_length_of_a_run(envs, every, starts, flexible):
    learning = Learning(update_every_steps=2, target_every_steps=24, learning_starts_steps=starts)

    def of(steps):
        training = Training(steps=steps, envs=envs, log_every_steps=150)
        return cadence(training, Evaluation(every_steps=every), learning, 90, flexible=flexible)

    long = of(7_000)
    whole, cuts = list(blocks(long)), 0
    for steps in range(starts + 40, 3_000, 37):
        c = of(steps)
        mine = list(blocks(c))
        assert c.block == long.block
        assert 0 <= c.steps_at(c.total) - max(steps, c.steps_at(1)) < c.steps
        assert mine[:-1] == whole[: len(mine) - 1]  # a longer run goes on from there
        assert mine[-1][0] == c.last
        assert [c.begin(end) for _, end in mine] == [begin for begin, _ in mine]
        ends = mine[-1] == whole[len(mine) - 1]
        steps_of = c.steps_at(c.last), c.steps_at(c.total)
        assert c.cut == (not (ends and due(*steps_of, every) and due(*steps_of, 150)))
        cuts += c.cut
    assert cuts


def test_an_evaluation_is_an_eighth_of_its_period_late_at_most():
    learning = Learning(update_every_steps=1, target_every_steps=4, learning_starts_steps=50)
    c = cadence(Training(steps=5_000), Evaluation(every_steps=250), learning, 748)
    assert c.block == 40  # 4 divides it, and nothing from 16 on divides 50 and 250
    ends = [
        c.steps_at(end)
        for start, end in blocks(c)
        if end == c.total or due(c.steps_at(start), c.steps_at(end), 250)
    ]
    assert len(ends) == 20
    assert all(0 <= end % 250 <= 31 for end in ends)


@pytest.mark.parametrize("envs", [1, 4, 6, 64])
def test_the_loop_does_what_the_cadence_says(envs, monkeypatch):
    """Without a device: what is queued, and in which vector step."""
    small = {
        "learning": {"learning_starts_steps": 500, "target_every_steps": 400},
        "training": {"steps": 3_000, "envs": envs},
        "evaluation": {"every_steps": 1_000},
    }
    config = resolve("dqn", "film", changes=[small], obs_shape=Film.obs_shape)
    p = make_program(config, Film())
    c, queued = p.cadence, []
    state = SimpleNamespace(agent=SimpleNamespace(params=None), judged=None)

    class HostRollout:
        fleet = None

        def __init__(self, t):
            self.t = t

        def advance(self, action, beside):
            self.t += 1

    def step(act, state, rollout, told):
        queued.append(("act", rollout.t))
        return state, told, np.zeros(envs, int)

    def improve(state, sums, count, written, first, copy):
        queued.extend(("update", number, written) for number in range(first, first + count))
        if copy is not None:
            queued.append(("copy", copy))
        return state, sums

    for name, stub in (
        ("_step", step), ("_improve", improve),
        ("bring", lambda state, iteration: state),
        ("_split", lambda state, iteration: (state, HostRollout(c.vector_steps_at(iteration)))),
        ("_join", lambda state, rollout, judged: state),
        ("_hold", lambda state, before: state), ("_duplicate", lambda params: None),
        ("_zeros", lambda state, fleet: ({}, {})),
    ):  # fmt: skip
        monkeypatch.setattr(p, name, stub)
    monkeypatch.setattr("idrl.training.hosted.program.Ends", lambda seeds: SimpleNamespace(
        add=lambda fleet: None, episodes=lambda: None
    ))  # fmt: skip
    for start, _ in blocks(c):
        p.block(state, start)
    acts = [q[1] for q in queued if q[0] == "act"]
    assert acts == list(range(c.warmup_vector_steps, c.warmup_vector_steps + len(acts)))
    updates = [q for q in queued if q[0] == "update"]
    assert [u[1] for u in updates] == list(range((len(acts) * envs) // 4))
    done = 0
    for number, (what, at, *_) in enumerate(queued):
        steps = sum(1 for q in queued[: number + 1] if q[0] == "act") * envs
        if what == "update":
            done += 1
            assert done * 4 <= steps < done * 4 + 4 + envs  # as soon as its steps are made
        if what == "copy":
            assert due(c.steps_at(at - 1), c.steps_at(at), 400)
            assert c.warmup_steps + steps == c.steps_at(at)
            assert done * 4 == steps  # behind the updates that are due
    copies = [c.steps_at(q[1]) for q in queued if q[0] == "copy"]
    assert [at // 400 for at in copies] == list(range(c.warmup_steps // 400 + 1, 8))
    for _, number, written in updates:
        assert written == c.warmup_vector_steps + -(-(number + 1) * 4 // envs) - 1
