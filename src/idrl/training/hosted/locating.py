"""Which operation of a hosted block made the first number that is not finite."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

from idrl.training.locating import first_bad_operation
from idrl.training.program import TrainState


class _Found(Exception):
    """The operation that was looked for."""


def locate(program: Any, state: TrainState, start: Any, index: int) -> str:
    """Plays the block again, up to the update that fails."""
    update = program._update

    def again(state, written, first, *drawn, count):
        batches = program.host.batches(*drawn) if drawn else None
        return program._updates(state, written, first, count, batches)

    def watch(count: int):
        def watched(state, sums, written, first, *given):
            after, sums = update(count)(state, sums, written, first, *given)
            if np.asarray(after.failed)[index] >= 0 > np.asarray(state.failed)[index]:
                one = jax.tree.map(lambda x: np.asarray(x)[index : index + 1], state)
                # what was drawn before has the seeds behind the updates
                drawn = jax.tree.map(lambda x: np.asarray(x)[:, index : index + 1], given)
                updates = functools.partial(again, count=count)
                raise _Found(first_bad_operation(updates, one, written, first, *drawn))
            return after, sums

        return watched

    program._update = watch
    try:
        program.block(state._replace(judged=None), start)  # its evaluation goes on from where it is
    except _Found as found:
        return str(found)
    finally:
        program._update = update
    return ""
