"""What a run consists of while it goes, and the one seam between the loop and its two kinds of
programs: `compiled.Compiled` (environments on the device) and `hosted.Hosted` (on the host)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from idrl.agents import Agent, AgentState
from idrl.replay import ring as ring
from idrl.training.doing import Between, Tell, nothing
from idrl.training.evaluation import Score
from idrl.training.spec import Cadence


class Best(NamedTuple):
    """The weights of the best evaluation so far."""

    score: jax.Array
    params: Any


class Judged(NamedTuple):
    """Weights whose evaluation goes on while training does."""

    iteration: Any  # [S], the same for all: after how many it began
    fine: Any  # [S] whose numbers were numbers then
    params: Any


class TrainState(NamedTuple):
    """Everything that changes, with a leading axis of seeds."""

    agent: AgentState
    replay: ring.Replay
    worlds: Any  # the environments: rollout.Worlds, or env_state.HostEnvState
    best: Best
    task: Any
    key: jax.Array  # as raw data, so that it can be saved like any array
    failed: jax.Array  # the update whose numbers were not finite, or health.FINE
    states: Any = None  # the fixed batch of distributions.py, or None where they are off
    judged: Any = None  # Judged, or None between evaluations


# What a step on the host has no use for is not handed over: each array costs the host time, and a
# state has a hundred of them.


def acting_view(state: TrainState) -> TrainState:
    """What acting reads."""
    nothing: Any = None
    agent = AgentState(state.agent.params, None, None, state.agent.prior)
    return state._replace(
        agent=agent, replay=nothing, worlds=None, best=nothing, failed=nothing, states=None,
        judged=None,
    )  # fmt: skip


def learning_view(state: TrainState) -> TrainState:
    """What updates read and change."""
    nothing: Any = None
    return state._replace(worlds=None, best=nothing, states=None, judged=None)


def playing_view(state: TrainState) -> TrainState:
    """What playing with the best weights reads."""
    nothing: Any = None
    return state._replace(replay=nothing, worlds=None, failed=nothing, states=None, judged=None)


class Episodes(NamedTuple):
    """Completed episodes of one stretch of vector steps: `[steps, S, E]` each."""

    ended: Any
    returns: Any
    lengths: Any
    info: dict[str, Any]


class Stopped(Exception):
    """Raised by `between` where a run is to stop before the call is done."""


class Beside(Protocol):
    """Evaluations that are played beside the blocks that follow. Their scores are those of
    `Program.evaluate` at the same place, to the bit."""

    wanted: bool  # else there is only one where a run of before stopped in the middle of it

    def begin(self, state: TrainState, iteration: int, /) -> TrainState:
        """The evaluation after `iteration` iterations: from now on `state.judged`."""

    def goes_on(self, state: TrainState, /) -> bool:
        """Whether another block brings it forward."""

    def end(
        self, state: TrainState, /, between: Between = nothing
    ) -> tuple[TrainState, tuple[Score, Any]]:
        """What `Program.evaluate` returns, once what is left has been played. Where `between`
        raises, the state is as good as before."""


class Program(Protocol):
    """What the loop drives. A state in, the next one out: whatever a program keeps besides
    (compiled code, live environments) can be had again from the state alone."""

    envs: int  # of each seed
    cadence: Cadence
    debug: bool  # states are not used up, so that a block that failed can be looked into

    def start(self, keys: jax.Array, /, between: Between = nothing) -> tuple[TrainState, Episodes]:
        """Fresh seeds, after their random steps."""

    def bring(self, state: TrainState, iteration: int, /, between: Between = nothing) -> TrainState:
        """Before a run goes on from `state` after so many iterations: whatever is live is brought
        to where the state says it is."""

    def block(
        self, state: TrainState, start: Any, /, tell: Tell = nothing
    ) -> tuple[TrainState, tuple[Episodes, dict[str, Any]]]:
        """The iterations from `start` to `cadence.end(start)`; the state is used up. `tell` is told
        on the way where a block may take long."""

    def distributions(self, state: TrainState, steps: int, /) -> dict[str, Any]:
        """What the rule sees on the fixed batch of states: `[S, states, actions]` each."""

    def evaluate(
        self, state: TrainState, number: Any, /, between: Between = nothing
    ) -> tuple[TrainState, tuple[Score, Any]]:
        """Score every seed and keep its weights where they are its best so far (`[S]` booleans).
        Where `between` raises, the state is as good as before."""

    @property
    def beside(self) -> Beside | None:
        """None: training waits for evaluations."""

    def locate(self, state: TrainState, start: Any, index: int) -> str:
        """The operation that spoils seed `index` in the block from `state` on; empty where the
        seed alone comes through."""


class Frames(Protocol):
    """The frames of a replay that is too large to be saved whole (see hosted/tape.py)."""

    tape: Callable[[int, np.ndarray], None] | None  # told each row: its number, and `[N, ...]`

    def without(self, state: Any) -> Any:
        """A state, or the shapes of one, without its frames."""

    def refill(self, state: Any, iteration: int, pieces: Iterable[tuple[int, np.ndarray]]) -> Any:
        """What was left out, from pieces: the number of the first row, and rows `[n, N, ...]`."""

    def span(self, iteration: int) -> tuple[int, int, int]:
        """After `iteration` iterations: the oldest row in the replay, the first that is not in it
        yet, and the first that the tape was not told yet."""

    @property
    def row(self) -> tuple[tuple[int, ...], Any]:
        """Shape and dtype of what the tape is told."""


class RunProgram(Program, Protocol):
    """What a run needs besides: to begin, to be saved and loaded, to score its best weights."""

    agent: Agent
    masked: int  # actions that its environments allow or not; 0: they always allow all

    @property
    def frames(self) -> Frames | None:
        """None: a state is saved whole."""

    def seed_keys(self, seed: int) -> jax.Array:
        """The keys of the run's seeds, the first of which is `seed`."""

    def like(self) -> TrainState:
        """The shapes of a state, for what reads one from a file; None is a length unknown."""

    def ahead(self, fresh: bool, iteration: int = 0) -> None:
        """Begin to compile what a run calls, whether `fresh` or going on after so many iterations.
        Nothing depends on it: what was not compiled ahead is compiled when it is called."""

    def place(self, tree: Any) -> Any:
        """A state as it was read from a file, laid over the devices."""

    def score_best(self, state: TrainState, episodes: int, limit_steps: int) -> Score:
        """The best weights of every seed over whole episodes."""

    def score_window(self, state: TrainState, steps: int) -> Score:
        """The same over the episodes that so many steps complete."""

    def close(self) -> None:
        """Give back what the process would otherwise hold to its end."""
