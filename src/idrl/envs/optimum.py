"""The best return that can be expected of a task, where it is known: what regret is measured by.

It is the undiscounted return of an episode, in expectation, of the best policy among those that
act on the observation alone, as the agents do.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np

from idrl.envs.tabular import FOREVER, Mdp

_SWEEPS = 10_000  # of a task without time limit: one that goes on for longer is not solved here
_POLICIES = 10_000  # that are tried one by one


def optimal_returns(env: Any, tasks: Any, seeds: int) -> np.ndarray | None:
    """`[S]`, one for each seed's task of `tasks` (NaN: not known), or None: `env` knows of none."""
    if not hasattr(env, "optimal_return"):
        return None
    tasks = jax.device_get(tasks)

    def of(seed: int) -> float:
        value = env.optimal_return(jax.tree.map(lambda x: x[seed], tasks))
        return np.nan if value is None else value

    values = np.array([of(seed) for seed in range(seeds)], float)
    return values if np.isfinite(values).any() else None


def best_return(mdp: Mdp) -> float | None:
    """Exactly, or None where the task is too large or its episodes go on for ever."""
    shown, index = np.unique(mdp.obs, axis=0, return_inverse=True)
    states, actions = mdp.reward.shape
    if len(shown) == states:
        return _iterate(mdp, lambda q: q.max(1))
    # States that look the same get the same action: the best for each is no policy.
    if actions ** len(shown) > _POLICIES:
        return None
    best = -np.inf
    for choice in itertools.product(range(actions), repeat=len(shown)):
        taken = np.array(choice)[index.reshape(-1), None]
        value = _iterate(mdp, lambda q, a=taken: np.take_along_axis(q, a, 1)[:, 0])
        if value is None:
            return None
        best = max(best, value)
    return float(best)


def _iterate(mdp: Mdp, back_up) -> float | None:
    """The value of the start, where `back_up` makes values `[S]` of a table `[S, A]`."""
    limit = int(mdp.limit)
    move, value = np.asarray(mdp.move, float), np.zeros(len(mdp.start))
    for _ in range(min(limit, _SWEEPS)):
        before, value = value, back_up(mdp.reward + (1 - mdp.ends) * (move @ value))
        if limit >= FOREVER and np.abs(value - before).max() < 1e-12:
            return float(mdp.start @ value)
    return float(mdp.start @ value) if limit <= _SWEEPS else None
