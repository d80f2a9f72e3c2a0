"""Drives a program block by block, as a generator: what to do with what happened (records,
display, checkpoints) is the business of whoever iterates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from idrl.training.doing import EVALUATING, LEARNING, Between, Doing, Tell, nothing
from idrl.training.health import Failure, examine
from idrl.training.program import Program, Stopped, TrainState
from idrl.training.spec import due


class Finished(NamedTuple):
    """Completed episodes, one entry each, in the order of their ends."""

    seed: np.ndarray  # index of the seed within the run
    steps: np.ndarray  # agent steps of that seed when it ended
    returns: np.ndarray
    lengths: np.ndarray
    info: dict[str, np.ndarray]


class Progress(NamedTuple):
    """What one block brought. `state` is current until the generator is resumed."""

    state: TrainState
    iteration: int
    steps: int  # agent steps of each seed so far
    episodes: Finished
    metrics: dict[str, np.ndarray] | None  # [S] each
    log: bool  # a row of metrics is due
    score: Any | None  # the Score of an evaluation, [S] each
    better: np.ndarray | None  # [S] which seeds set a new best
    alive: np.ndarray  # [S] whose numbers are numbers; the others are frozen
    failures: list[Failure] = []  # who was frozen just now
    pending: bool = False  # an evaluation is due, but the run was to stop
    distributions: dict[str, np.ndarray] | None = None  # [S, states, actions] each


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
    total = c.total

    def evaluate(state: TrainState, iteration: int):
        number, doing = np.int32(c.evaluation(iteration)), told(EVALUATING, iteration)
        state, found = program.evaluate(state, number, between=lambda _=None: between(doing))
        return state, *jax.device_get(found)

    def told(what: str, iteration: int) -> Doing:
        return Doing(what, c.steps_at(iteration), c.steps_at(total))

    failed = np.asarray(state.failed)
    if pending:
        steps = c.steps_at(iteration)
        try:
            state, score, better = evaluate(state, iteration)
        except Stopped:
            return
        yield Progress(state, iteration, steps, _nobody(), None, False, score, better, failed < 0)
    while iteration < total:
        before, iteration = iteration, c.end(iteration)
        first_vector_step = c.warmup_vector_steps + before * c.vector_steps
        begun = state if program.debug else None
        state, (episodes, metrics) = program.block(state, np.int32(before), tell=tell)
        metrics = jax.device_get(metrics)
        tell(told(LEARNING, iteration))
        state, failures = examine(state, failed, metrics, c, iteration)
        if begun is not None:
            failures = [
                f._replace(operation=program.locate(begun, before, f.seed)) for f in failures
            ]
        failed = np.asarray(state.failed)
        score = better = None
        pending = False
        last = iteration >= total
        steps_before, steps = c.steps_at(before), c.steps_at(iteration)
        if last or due(steps_before, steps, c.eval_every_steps):
            try:
                state, score, better = evaluate(state, iteration)
            except Stopped:
                pending = True
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
            pending,
            _distributions(program, state, steps, seen),
        )
        if pending:
            return


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
