"""The hosted loop from any block on, and from an evaluation that was cut short, where environments
and updates do not divide each other and new seeds are rare."""

import functools
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from films import Film

from idrl.config import resolve
from idrl.runs.session import make_program
from idrl.training.doing import EVALUATING, REPLAYING, Doing
from idrl.training.loop import train
from idrl.training.program import Stopped

SETTINGS = {
    "trunk": {"kind": "mlp", "hidden": [2]},
    "heads": {"q": {"hidden": [2]}},
    "learning": {
        "learning_starts_steps": 45, "replay_capacity": 120, "target_every_steps": 50,
        "batch_size": 2, "update_every_steps": 4,
    },
    "training": {
        "steps": 310, "envs": 6, "log_every_steps": 70, "distributions_every_steps": 0,
        "reseed_every": 2,
    },
    "evaluation": {"every_steps": 60, "steps": 15, "envs": 3},
}  # fmt: skip


@functools.cache
def program():
    config = resolve("dqn", "film", changes=[SETTINGS], obs_shape=Film.obs_shape)
    return make_program(config, Film())


def collect(state=None, iteration=0, **how):
    p = program()
    for progress in train(p, state, iteration, p.seed_keys(0), **how):
        yield progress._replace(state=jax.device_get(progress.state))


@pytest.fixture(scope="module")
def whole():
    jax.config.update("jax_disable_most_optimizations", True)  # compiling takes all the time here
    yield list(collect())
    jax.config.update("jax_disable_most_optimizations", False)


def rows(progress):
    """What a run would write down."""
    for p in progress:
        yield from zip(*(x.tolist() for x in p.episodes[:4]), strict=True)
        if p.log:
            yield p.steps, {name: x.tolist() for name, x in p.metrics.items()}
        if p.score is not None:
            yield p.steps, [x.tolist() for x in (*p.score[:4], p.better)]


def check_same(parts, whole):
    assert str(list(rows(parts))) == str(list(rows(whole)))
    pairs = zip(*map(jax.tree.leaves, (parts[-1].state, whole[-1].state)), strict=True)
    assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


def test_from_every_block(whole):
    """Before, between and after the evaluations 2, 4 and 6, which hand out new seeds."""
    pending = [(p.state.worlds.journal.next_seed >= 0).all().item() for p in whole]
    assert pending == [False, False, True, False, True, False, True]
    assert [p.steps for p in whole] == [48, 60, 120, 180, 240, 300, 312]
    for number, begun in enumerate(whole[:-1], 1):
        rest = list(collect(program().place(begun.state), begun.iteration))
        check_same([*whole[:number], *rest], whole)


@pytest.mark.parametrize("number", [2, 6], ids=["between seeds", "at the end"])
def test_from_an_evaluation_that_was_cut_short(whole, number):
    evaluating = []

    def between(doing=None):
        evaluating.append(doing is not None and doing.what == EVALUATING)
        if sum(evaluating) == 3:
            raise Stopped

    begun = whole[number - 1]
    (cut,) = collect(program().place(begun.state), begun.iteration, between=between)
    assert cut.pending
    assert cut.score is None
    rest = list(collect(program().place(cut.state), cut.iteration, pending=True))
    check_same([*whole[:number], cut, *rest], whole)


def test_a_replay_can_be_stopped(whole):
    """And what it had told by then."""
    told, begun = [], whole[3]

    def between(doing=None):
        told.append(doing)
        if len(told) == 5:
            raise Stopped

    assert list(collect(program().place(begun.state), begun.iteration, between=between)) == []
    total = len(begun.state.worlds.journal.actions) * 6
    assert told == [Doing(REPLAYING, 6 * step, total) for step in range(5)]


def test_updates_queued_by_a_thread(whole, monkeypatch):
    """As on a GPU."""
    with ThreadPoolExecutor(1) as thread:
        monkeypatch.setattr(program(), "thread", thread)
        check_same(list(collect()), whole)
