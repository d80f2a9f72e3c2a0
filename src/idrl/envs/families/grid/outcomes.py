"""Finite tasks written as rules, laid out as tables of what can follow each action."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

_SWEEPS = 20_000  # of a task without time limit: one that takes longer has no optimum here


class Consequence(NamedTuple):
    """What an action may lead to, and how likely."""

    state: Any
    reward: float = 0.0
    ends: bool = False
    chance: float = 1.0


@dataclass(frozen=True)
class Rules:
    """A task in words of its own states, which may be anything that can be hashed."""

    line: str  # for a list of tasks
    actions: int
    starts: Sequence[Any]  # one is drawn, each as likely
    follow: Callable[[Any, int], Sequence[Consequence]]
    see: Callable[[Any], np.ndarray]  # the observation of a state, zeros and ones
    limit: int  # steps after which an episode is truncated; 0: never
    steps: int  # of a training run
    sparse: bool = False  # almost every step pays nothing


class Outcomes(NamedTuple):
    """S states that can be reached, A actions, at most K outcomes of each."""

    obs: np.ndarray  # [S, …]
    starts: np.ndarray  # the states an episode begins in
    state: np.ndarray  # [S, A, K]
    chance: np.ndarray  # [S, A, K]
    reward: np.ndarray  # [S, A, K]
    ends: np.ndarray  # [S, A, K]


def lay_out(rules: Rules) -> Outcomes:
    """All states that can be reached from a start, in the order in which they are found."""
    found: dict[Any, int] = {state: i for i, state in enumerate(dict.fromkeys(rules.starts))}
    queue, last, rows = list(found), set[Any](), []
    for state in queue:  # grows
        if state in last:  # an episode has ended here: nothing follows
            rows.append([[Consequence(state, ends=True)]] * rules.actions)
            continue
        row = [list(rules.follow(state, action)) for action in range(rules.actions)]
        rows.append(row)
        for outcome in (outcome for outcomes in row for outcome in outcomes):
            if outcome.state not in found:
                found[outcome.state] = len(queue)
                queue.append(outcome.state)
                if outcome.ends:
                    last.add(outcome.state)
    most = max(len(outcomes) for row in rows for outcomes in row)
    shape = (len(queue), rules.actions, most)
    to, ends = np.zeros(shape, np.int32), np.ones(shape, bool)
    chance, reward = np.zeros(shape), np.zeros(shape)
    for s, row in enumerate(rows):
        for a, outcomes in enumerate(row):
            for k, one in enumerate(outcomes):
                to[s, a, k], reward[s, a, k] = found[one.state], one.reward
                chance[s, a, k], ends[s, a, k] = one.chance, one.ends
    obs = np.stack([rules.see(s) for s in queue]).astype(np.uint8)
    starts = np.array([found[s] for s in rules.starts], np.int32)
    return Outcomes(obs, starts, to, chance, reward, ends)


def exact(table: Outcomes, gamma: float, sweeps: int = 2_000) -> tuple[np.ndarray, np.ndarray]:
    """Q* and the variance of the return of the optimal policy, `[S, A]` each, by dynamic
    programming on the first two moments. Time limits are no part of the value."""
    q = second = np.zeros(table.state.shape[:2])
    reward, going = table.reward, gamma * ~table.ends
    for _ in range(sweeps):
        best = q.argmax(1)
        ahead = going * q.max(1)[table.state]
        ahead2 = going**2 * second[np.arange(len(q)), best][table.state]
        q = (table.chance * (reward + ahead)).sum(-1)
        second = (table.chance * (reward**2 + 2 * reward * ahead + ahead2)).sum(-1)
    return q, np.maximum(second - q**2, 0)


def best_return(table: Outcomes, limit: int) -> float | None:
    """The largest expected undiscounted return of an episode; None where there is none, or where
    it takes too long to find."""
    value = np.zeros(len(table.obs))
    for _ in range(limit or _SWEEPS):
        ahead = ~table.ends * value[table.state]
        before, value = value, (table.chance * (table.reward + ahead)).sum(-1).max(1)
        if not limit and np.abs(value - before).max() < 1e-9:
            break
    else:
        if not limit:
            return None
    return float(value[table.starts].mean())
