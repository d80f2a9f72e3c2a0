"""Numbers gone wrong, seed by seed: the seed is frozen as it last was, the others go on.

Inside a block only the first update is noted whose losses or gradient are not finite; at its end
the weights of such seeds are put back to what they were at its beginning, about a second before,
and so after every later block. Not taking the one update would mean a choice between old and new
weights at every update; this is a copy of the weights a block (`benchmarks/survival.py`).
Q-values are looked at between blocks, in what the acting rule saw.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.training.program import TrainState
from idrl.training.spec import Cadence

FINE = -1  # `TrainState.failed` of a seed that goes on; else the number of the update that failed

_Q = ("q_max", "sigma_max")  # what the acting rule saw of Q: its mean over heads and their spread


class Failure(NamedTuple):
    """A seed that was frozen."""

    seed: int  # its index within the run
    steps: int  # its agent steps by then
    what: str  # which numbers
    operation: str = ""  # what made them, where that was looked for


def describe_failure(failure: Failure, first_seed: int) -> str:
    by = f" ({failure.operation})" if failure.operation else ""
    return (
        f"At step {failure.steps:,} {failure.what} of seed {first_seed + failure.seed} is not a "
        f"finite number{by}."
    )


def noted(state: TrainState, metrics: dict[str, jax.Array], update) -> TrainState:
    """`state` with the number of this update where it is the first that is not finite."""
    finite = jnp.isfinite(sum(metrics[name] for name in metrics if _of_an_update(name)))
    failed = jnp.where((state.failed < 0) & ~finite, jnp.int32(update), state.failed)
    return state._replace(failed=failed)


def hold(state: TrainState, before: Any) -> TrainState:
    """`state` at the end of a block, with the weights of failed seeds as they were `before` it.
    Their target and optimiser stay as they are: they are not used again."""

    def pick(new, old):
        failed = (state.failed >= 0).reshape(-1, *[1] * (new.ndim - 1))
        return jnp.where(failed, old, new)

    params = jax.tree.map(pick, state.agent.params, before)
    return state._replace(agent=state.agent._replace(params=params))


def examine(
    state: TrainState,
    before: np.ndarray,
    metrics: dict[str, np.ndarray],
    c: Cadence,
    iteration: int,
) -> tuple[TrainState, list[Failure]]:
    """Who failed in the block that ended at `iteration`; `before`: who had failed before it."""
    failed = np.asarray(state.failed)
    wrong = np.zeros(len(failed), bool)
    for name in _Q:
        wrong |= ~np.isfinite(metrics.get(name, 0.0))
    wrong &= failed < 0
    if wrong.any():
        failed = np.where(wrong, np.int32(iteration * c.updates - 1), failed)
        state = state._replace(failed=jax.device_put(failed, state.failed.sharding))
    new = np.flatnonzero((failed >= 0) & (before < 0))
    return state, [
        Failure(i, c.steps_at(int(failed[i]) // c.updates + 1), _what(metrics, i))
        for i in new.tolist()
    ]


def _of_an_update(name: str) -> bool:
    return name.startswith("loss_") or name == "grad_norm"


def _what(metrics: dict[str, np.ndarray], index: int) -> str:
    """In the order in which one leads to the other."""
    wrong = [name for name, values in metrics.items() if not np.isfinite(values[index])]
    heads = [name.removeprefix("loss_") for name in wrong if name.startswith("loss_")]
    if heads:
        return " and ".join(f"the loss of head {head}" for head in heads)
    return "Q" if any(name in wrong for name in _Q) else "the gradient"
