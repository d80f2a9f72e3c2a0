"""What a run with environments on the host compiles ahead of its first calls.

Threads compile while the host makes its environments: ale-py makes one game after the other, and
128 of them in 14 s.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from idrl.training.evaluation import Played, score_of
from idrl.training.hosted import fleet as fleets
from idrl.training.hosted.shapes import begun_from, sums_like
from idrl.training.program import acting_view, learning_view


def compile_ahead(program: Any, fresh: bool, iteration: int) -> None:
    """In the order in which a run needs them, but the updates, which take longest, early."""
    p, c, number, compile = program, program.cadence, np.int32(0), program._ahead.compile
    if iteration >= c.total:
        return
    compile(p._keys, p._seed_numbers(0))
    given = begun_from(p)
    state = compile(p._begin, *given) if fresh else jax.eval_shape(p._begin.jitted, *given)
    state = p._placed(state)
    count = p.seeds * p.envs
    blank = fleets.blank(p.env, count)
    sums, parcel = p._placed(sums_like(p, state, p._show(blank))), p._packed(blank, 0)
    if p.host is None:  # else they go by the parts in which the host looks frames up
        for due in sorted(set(c.updates_due) - {0}):
            compile(p._update(due), learning_view(state), sums[1], number, number)
    moving = state.replay, state.worlds
    if fresh:
        compile(p._try, acting_view(state), moving, parcel, {})
    compile(p._act, acting_view(state), moving, parcel, sums[0])
    compile(p._renewed, learning_view(state), number)
    p._between_ahead(state, fresh and p.host is None)
    if c.eval_every_steps < c.steps_at(c.total):  # else the first is at the end
        compile(p.evaluator._choose, *p.evaluator.chosen_from(state))
        score = jax.eval_shape(jax.vmap(score_of, 1), _ends(p.seeds))
        fine = p._placed(jax.eval_shape(lambda failed: failed < 0, state.failed))
        compile(p._keep, state.best, state.agent.params, fine, score)  # that comes from the host
    p._ahead.that_is_all()


def _ends(seeds: int) -> Played:
    """The shapes of one end of an episode."""

    def of(dtype: Any) -> Any:
        return jax.ShapeDtypeStruct((1, seeds, 1), dtype)

    return Played(of(bool), of(bool), of(np.float32), of(np.float32), {})
