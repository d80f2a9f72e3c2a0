"""The one protocol that compiled training knows: pure functions over a state.

An environment never resets itself: training does, because only there it is known what the last
observation of an episode is still needed for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax


class Step(NamedTuple):
    """What one action led to."""

    obs: jax.Array  # the observation after the action
    reward: jax.Array  # a float
    terminated: jax.Array  # whether the episode ended; cuts the bootstrap
    truncated: jax.Array  # whether it was cut off, as by a time limit; does not
    info: dict[str, jax.Array] = {}  # scalars that are recorded when the episode ends


@runtime_checkable
class Env(Protocol):
    """An environment as pure functions over a state.

    Its actions are integers below `num_actions` or, if it has an `action_box: idrl.Box` instead,
    float32 arrays `[D]` within that box.

    `task(key)` draws what differs between seeds and stays the same within one (an action mapping,
    physical constants): training and evaluation of a seed share it.

    An optional method `allowed(task, state)` returns booleans `[num_actions]`: the actions that may
    be taken in a state. Others are never taken, and targets maximise over these only. A state that
    allows none is worth 0.

    Two more optional things are for regret. `optimal_return(task)` is the largest expected
    undiscounted return of an episode (None: not known). Where rewards are noisy,
    `info["raw_return"]` is the return of the episode so far without that noise.
    """

    name: str
    num_actions: int
    obs_shape: tuple[int, ...]

    def task(self, key: jax.Array) -> Any:
        """What differs between seeds: any pytree, `()` for nothing."""
        ...

    def reset(self, task: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        """The first state of an episode, any pytree, and its observation."""
        ...

    def step(self, task: Any, state: Any, action: jax.Array, key: jax.Array) -> tuple[Any, Step]:
        """The next state, and what the action led to."""
        ...


def mask_of(env: Env) -> Callable[[Any, Any], jax.Array] | None:
    """Its `allowed`, where it has discrete actions and says so."""
    discrete = getattr(env, "action_box", None) is None
    return getattr(env, "allowed", None) if discrete else None
