"""Drives a program block by block, as a generator: what to do with what happened (records,
display, checkpoints) is the business of whoever iterates."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from idrl.training.doing import EVALUATING, LEARNING, Between, Doing, Tell, nothing
from idrl.training.health import Failure, examine
from idrl.training.program import Program, Stopped, TrainState
from idrl.training.spec import Cadence, due


class Finished(NamedTuple):
    """Completed episodes, one entry each, in the order of their ends."""

    seed: np.ndarray  # index of the seed within the run
    steps: np.ndarray  # agent steps of that seed when it ended
    returns: np.ndarray
    lengths: np.ndarray
    info: dict[str, np.ndarray]


class Scored(NamedTuple):
    """What a score is of."""

    steps: int  # agent steps of each seed by then
    alive: np.ndarray  # as in Progress, then
    params: Any


class Progress(NamedTuple):
    """What one block brought. `state` is current until the generator is resumed."""

    state: TrainState
    iteration: int
    steps: int  # agent steps of each seed so far
    episodes: Finished
    metrics: dict[str, np.ndarray] | None  # [S] each
    log: bool  # a row of metrics is due
    score: Any | None  # the Score of an evaluation, [S] each, of the weights that `scored` says
    better: np.ndarray | None  # [S] which seeds set a new best
    alive: np.ndarray  # [S] whose numbers are numbers; the others are frozen
    failures: list[Failure] = []  # who was frozen just now
    pending: bool = False  # an evaluation is due that was not made yet
    distributions: dict[str, np.ndarray] | None = None  # [S, states, actions] each
    scored: Scored | None = None  # of `state`, or of earlier weights, judged beside training


def train(
    program: Program,
    state: TrainState | None,
    iteration: int,
    keys,
    *,
    pending: bool = False,
    between: Between = nothing,
    tell: Tell = nothing,
) -> Iterator[Progress]:
    """From `state` at `iteration`, or from the beginning; ends with the last block, or where
    `between`, which whatever takes long calls now and then, raises `Stopped`. Both `between` and
    `tell`, which cannot stop a run, are told what it is doing.

    `pending`: the state is from such an end and its evaluation is still to be made.
    """
    c = program.cadence
    envs = program.envs
    if state is None:
        try:
            state, episodes = program.start(keys, between=between)
        except Stopped:
            return
        yield Progress(
            state, 0, c.warmup_steps, _finished(episodes, 0, envs), None, False, None, None,
            np.asarray(state.failed) < 0,
            distributions=_distributions(
                program, state, c.warmup_steps, c.distributions_every_steps > 0
            ),
        )  # fmt: skip
    elif iteration < c.total:
        try:
            state = program.bring(state, iteration, between=between)
        except Stopped:
            return
    total, judge = c.total, _Judge(program, between)
    failed = np.asarray(state.failed)
    if pending:
        state = yield from judge.apart(state, iteration)
    while state is not None and iteration < total:
        if judge.is_over(state):
            state = yield from judge.end(state, iteration)
            if state is None:
                return
        before, iteration = iteration, c.end(iteration)
        first_vector_step = c.warmup_vector_steps + before * c.vector_steps
        begun = state if program.debug else None
        state, (episodes, metrics) = program.block(state, np.int32(before), tell=tell)
        metrics = jax.device_get(metrics)
        tell(_doing(LEARNING, c, iteration))
        state, failures = examine(state, failed, metrics, c, iteration)
        if begun is not None:
            failures = [
                f._replace(operation=program.locate(begun, before, f.seed)) for f in failures
            ]
        failed = np.asarray(state.failed)
        if state.judged is not None and not (failed < 0).any():  # the run ends here
            state = yield from judge.end(state, iteration)
            if state is None:
                return
        last = iteration >= total
        steps_before, steps = c.steps_at(before), c.steps_at(iteration)
        judging = last or due(steps_before, steps, c.eval_every_steps)
        apart = judge.is_apart(state)
        score = better = None
        stopped = False
        if judging and not apart:
            try:
                state, score, better = judge.evaluate(state, iteration)
            except Stopped:
                stopped = True
        every = c.distributions_every_steps
        seen = every > 0 and (last or due(steps_before, steps, every))
        yield Progress(
            state,
            iteration,
            steps,
            _finished(episodes, first_vector_step, envs),
            metrics,
            last or due(steps_before, steps, c.log_every_steps),
            score,
            better,
            failed < 0,
            failures,
            judging and (apart or stopped),
            _distributions(program, state, steps, seen),
            judge.scored(state, iteration) if score is not None else None,
        )
        if stopped:
            return
        if judging and apart:
            state = yield from judge.apart(state, iteration)
    if state is not None and state.judged is not None:  # a run that was made shorter
        yield from judge.end(state, iteration)


# What was done: the state after it, or None where the run was to stop.
Done = Generator[Progress, None, TrainState | None]


class _Judge:
    """Makes the evaluations that are due.

    One that is played beside training is told of apart from blocks, since it ends later and is of
    other weights; `pending` where the next is due by then.
    """

    def __init__(self, program: Program, between: Between):
        self.program, self.cadence, self.between = program, program.cadence, between
        self.beside = program.beside

    def evaluate(self, state: TrainState, iteration: int):
        number = np.int32(self.cadence.evaluation(iteration))
        state, found = self.program.evaluate(state, number, between=self._between(iteration))
        return state, *jax.device_get(found)

    def is_apart(self, state: TrainState) -> bool:
        """Whether an evaluation that is due now is told of apart."""
        return self.beside is not None and (self.beside.wanted or state.judged is not None)

    def apart(self, state: TrainState, iteration: int) -> Done:
        """The evaluation under way ends, and the one that is due begins, or is made."""
        if state.judged is not None:
            done = yield from self.end(state, iteration, pending=True)
            if done is None:
                return None
            state = done
        if self.beside is not None and self.beside.wanted and iteration < self.cadence.total:
            return self.beside.begin(state, iteration)
        try:
            state, score, better = self.evaluate(state, iteration)
        except Stopped:
            yield self._told(state, iteration, pending=True)
            return None
        yield self._told(state, iteration, score, better, self.scored(state, iteration))
        return state

    def is_over(self, state: TrainState) -> bool:
        """Whether no block brings the evaluation under way forward."""
        on = state.judged is not None
        return on and self.beside is not None and not self.beside.goes_on(state)

    def end(self, state: TrainState, iteration: int, pending: bool = False) -> Done:
        assert self.beside is not None
        c, judged = self.cadence, state.judged
        try:
            state, found = self.beside.end(state, between=self._between(iteration))
        except Stopped:
            yield self._told(state, iteration, pending=pending)
            return None
        score, better = jax.device_get(found)
        of = Scored(c.steps_at(int(judged.iteration[0])), np.asarray(judged.fine), judged.params)
        yield self._told(state, iteration, score, better, of, pending)
        return state

    def scored(self, state: TrainState, iteration: int) -> Scored:
        steps = self.cadence.steps_at(iteration)
        return Scored(steps, np.asarray(state.failed) < 0, state.agent.params)

    def _between(self, iteration: int) -> Between:
        doing = _doing(EVALUATING, self.cadence, iteration)
        return lambda _=None: self.between(doing)

    def _told(
        self, state: TrainState, iteration: int, score: Any = None, better: Any = None,
        of: Scored | None = None, pending: bool = False,
    ) -> Progress:  # fmt: skip
        steps, alive = self.cadence.steps_at(iteration), np.asarray(state.failed) < 0
        return Progress(
            state, iteration, steps, _nobody(), None, False, score, better, alive,
            pending=pending, scored=of,
        )  # fmt: skip


def _doing(what: str, c: Cadence, iteration: int) -> Doing:
    return Doing(what, c.steps_at(iteration), c.steps_at(c.total))


def _distributions(program: Program, state: TrainState, steps: int, wanted: bool):
    return jax.device_get(program.distributions(state, steps)) if wanted else None


def _finished(episodes, first_vector_step: int, envs: int) -> Finished:
    """The ends of episodes out of `[steps, S, E]` arrays."""
    episodes = jax.device_get(episodes)
    step, seed, env = np.nonzero(episodes.ended)
    steps = (first_vector_step + step + 1) * envs
    info = {name: values[step, seed, env] for name, values in episodes.info.items()}
    return Finished(
        seed, steps, episodes.returns[step, seed, env], episodes.lengths[step, seed, env], info
    )


def _nobody() -> Finished:
    none = np.zeros(0, np.int64)
    return Finished(none, none, none.astype(np.float32), none, {})
