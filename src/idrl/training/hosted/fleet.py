"""N environments on the host in the middle of their episodes, and how to get there again.

An environment on the host cannot be copied into a checkpoint. But it does the same again when it is
reset with the same seed and given the same actions, so the journal keeps for each its last seeded
reset and the actions since. So that this stays short, evaluations (`training.reseed_every`) hand
out new seeds, which each environment takes at the next natural end of an episode: on a schedule,
not when a checkpoint happens to be written, because the clock must not decide what a run computes.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Protocol

import numpy as np

from idrl.envs.host import NO_SEED, History, HostEnv, Vector
from idrl.envs.processes import Lost
from idrl.errors import IdrlError
from idrl.training.doing import REPLAYING, Between, Doing, nothing
from idrl.training.program import Episodes


class Fleet(NamedTuple):
    """What is known of each environment after a step, `[N, ...]` each."""

    obs: np.ndarray
    allowed: np.ndarray | None  # [N, A] actions that may follow
    first: np.ndarray  # obs is the first of an episode
    ended: np.ndarray  # an episode was completed by this step; the next one only resets
    reward: np.ndarray  # of this step
    terminated: np.ndarray  # by this step, or a life was lost: nothing follows for who learns
    episode_return: np.ndarray
    episode_length: np.ndarray

    @property
    def truncated(self) -> np.ndarray:
        """Which episodes a time limit ended; of environments that tell of no lost lives."""
        return self.ended & ~self.terminated

    @property
    def valid(self) -> np.ndarray:
        """Whether this step was a transition, not a reset."""
        return ~self.first


class Journal(NamedTuple):
    """How each environment got where it is after `t` vector steps."""

    seed: np.ndarray  # [N] of its last seeded reset
    since: np.ndarray  # [N] the first vector step after that reset
    next_seed: np.ndarray  # [N] for the end of its episode, or NO_SEED
    actions: np.ndarray  # [L, N, ...] of the last L vector steps; the earliest `since` is t - L


def blank(env: HostEnv, count: int) -> Fleet:
    """Nothing known yet."""
    numbers, no = np.zeros(count), np.zeros(count, bool)
    return Fleet(
        np.zeros((count, *env.shown_shape), env.obs_dtype),
        np.zeros((count, env.num_actions), bool) if env.masked else None,
        no, no, numbers.astype(np.float32), no, numbers, np.zeros(count, np.int64),
    )  # fmt: skip


def begin(env: HostEnv, vector: Vector, seed: np.ndarray) -> Fleet:
    """All at the start of an episode."""
    return advance(vector, blank(env, seed.size), env.no_actions(seed.size), seed)


def advance(vector: Vector, fleet: Fleet, action: np.ndarray, seed: np.ndarray) -> Fleet:
    """One step of each; `seed` other than NO_SEED resets with it."""
    vector.send(action, seed)
    return received(vector, fleet, seed)


def received(vector: Vector, fleet: Fleet, seed: np.ndarray) -> Fleet:
    """What the step brought that was sent to `fleet`."""
    seen = vector.recv()
    lost = seen.life_lost
    anew = seen.reset & (fleet.ended | (seed != NO_SEED))  # else a game goes on after a lost life
    return Fleet(
        seen.obs,
        seen.allowed,
        first=seen.reset,
        ended=seen.terminated | seen.truncated,
        reward=seen.reward,
        terminated=seen.terminated if lost is None else seen.terminated | lost,
        episode_return=np.where(anew, 0.0, fleet.episode_return) + seen.reward,
        episode_length=np.where(anew, 0, fleet.episode_length + ~seen.reset),
    )


def open_journal(env: HostEnv, seed: np.ndarray) -> Journal:
    """Of environments that were just reset with `seed`, before vector step 0."""
    nobody = np.full_like(seed, NO_SEED)
    return Journal(seed, np.zeros_like(seed), nobody, env.no_actions(len(seed))[None][:0])


class Ends:
    """Collects the ends of episodes over a stretch of steps."""

    def __init__(self, seeds: int):
        self.seeds = seeds
        self.rows: list[tuple[np.ndarray, ...]] = []

    def add(self, fleet: Fleet) -> None:
        self.rows.append((fleet.ended, fleet.episode_return, fleet.episode_length))

    def episodes(self) -> Episodes:
        parts = (np.stack(part) for part in zip(*self.rows, strict=True))
        ended, returns, lengths = (x.reshape(len(x), self.seeds, -1) for x in parts)
        return Episodes(ended, returns, lengths, {})


def for_all(action: Any) -> np.ndarray:
    """`[S, E, ...]` from the device as `[S·E, ...]`."""
    action = np.asarray(action)
    return action.reshape(-1, *action.shape[2:])


def by_seed(x: np.ndarray | None, seeds: int) -> Any:
    """`[S·E, ...]` as `[S, E, ...]`: seed s has the environments from number s·E on."""
    return None if x is None else x.reshape(seeds, -1, *x.shape[1:])


class Steps(Protocol):
    """Steps of other environments."""

    def send(self) -> None: ...

    def recv(self) -> None: ...


class HostRollout:
    """A stretch of vector steps from `t` on, with the journal kept."""

    def __init__(self, vector: Vector, fleet: Fleet, journal: Journal, t: int):
        self.vector, self.fleet, self.t = vector, fleet, t
        self.journal = journal
        self.actions = [journal.actions]

    def advance(self, action: np.ndarray, beside: Steps | None = None) -> Fleet:
        """One step, and one of `beside` at the same time."""
        seed, since, next_seed, _ = self.journal
        anew = self.fleet.ended & (next_seed != NO_SEED)
        given = np.where(anew, next_seed, NO_SEED)
        self.vector.send(action, given)
        if beside is not None:
            beside.send()
            if self.vector.elsewhere:  # others may be stepped in this process meanwhile
                beside.recv()
        self.fleet = received(self.vector, self.fleet, given)
        if beside is not None and not self.vector.elsewhere:
            beside.recv()
        self.actions.append(action[None])
        self.t += 1
        if anew.any():
            self.journal = self.journal._replace(
                seed=np.where(anew, next_seed, seed),
                since=np.where(anew, self.t, since),
                next_seed=np.where(anew, NO_SEED, next_seed),
            )
        return self.fleet

    def close(self) -> Journal:
        """The journal up to now, without what no environment needs any more."""
        actions = np.concatenate(self.actions)
        needed = self.t - int(self.journal.since.min())
        return self.journal._replace(actions=actions[len(actions) - needed :])


def check(env: HostEnv, journal: Journal, t: int) -> None:
    """Refuse a journal, which may be out of a file, that no environment can have kept."""
    box, start = getattr(env, "action_box", None), t - len(journal.actions)
    seeds = (journal.seed >= 0) & (journal.seed < 2**31)
    later = (journal.next_seed >= NO_SEED) & (journal.next_seed < 2**31)
    since = (journal.since >= start) & (journal.since <= t)
    actions = np.isnan(journal.actions)
    if box is None:
        actions |= (journal.actions >= -1) & (journal.actions < env.num_actions)
    else:  # rounding may leave the box
        low, high = np.array(box.low), np.array(box.high)
        actions |= np.abs(journal.actions - (low + high) / 2) <= 0.51 * (high - low)
    if start < 0 or not all(x.all() for x in (seeds, later, since, actions)):
        raise IdrlError(
            f"the checkpoint's journal of {env.name} is forged: its values are impossible."
        )


def replay_journal(
    env: HostEnv, vector: Vector, fleet: Fleet, journal: Journal, t: int,
    between: Between = nothing,
) -> tuple[Fleet, Journal]:  # fmt: skip
    """Bring `vector` to where `fleet` was after `t` vector steps.

    An environment that does not come out where it was (it draws chance from elsewhere than its
    seed) starts a new episode with the next step.
    """
    check(env, journal, t)
    count, start = len(journal.seed), t - len(journal.actions)
    total = count * len(journal.actions)
    history = History(journal.seed, journal.since - start, journal.actions)
    try:
        seen = vector.replay(env, history, lambda done: between(Doing(REPLAYING, done, total)))
        same = (seen.obs == fleet.obs).reshape(count, -1).all(1)
    except Lost:  # nothing is known of them
        raise
    except IdrlError:  # an action that was fine then is refused now
        same = np.zeros(count, bool)
    if same.all():
        return fleet, journal
    warnings.warn(
        f"{count - int(same.sum())} of {count} environments {env.name} did not come out where they "
        "were, though seed and actions are the same; they start new episodes, so this run will "
        "not equal an uninterrupted one.",
        stacklevel=2,
    )
    another = (journal.seed + 1) % 2**31
    return (
        fleet._replace(ended=fleet.ended | ~same),
        journal._replace(next_seed=np.where(same, journal.next_seed, another)),
    )
