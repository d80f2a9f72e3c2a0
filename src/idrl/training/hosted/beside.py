"""An evaluation beside training: in each vector step of a block its environments make one, too.

Its acting is queued behind that of training and before the updates, so that the device does not
wait for it, and its environments are stepped while the others are. It plays a copy of the weights
in environments of its own: what it finds does not depend on when it does.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from idrl.training.doing import Between, nothing
from idrl.training.evaluation import Score
from idrl.training.hosted.evaluation import Player
from idrl.training.hosted.playing import Playing
from idrl.training.program import Judged, TrainState


class BesideTraining:
    """The evaluation under way of a `Hosted`, if there is one."""

    def __init__(self, program: Any):
        self.program = program
        self.wanted: bool = program.evaluation.beside
        self.judged: Judged | None = None  # what is played; that of another state is played anew
        self.playing: Playing
        self.player: Player

    def begin(self, state: TrainState, iteration: int) -> TrainState:
        program, number = self.program, self.program.cadence.evaluation(iteration)
        params = program._duplicate(state.agent.params)
        iterations = jnp.full_like(state.failed, iteration)
        judged = Judged(iterations, state.failed < 0, params)
        state = program.reseeded(state._replace(judged=judged), number)
        self._open(state)
        return state

    def _open(self, state: TrainState) -> None:
        self.judged = judged = state.judged
        number = self.program.cadence.evaluation(int(judged.iteration[0]))
        self.playing, self.player = self.program.evaluator.playing(state, judged.params, number)

    def of(self, state: TrainState) -> BesideTraining | None:
        """What a block from `state` on plays besides."""
        return self if self.goes_on(state) else None

    def choose(self, state: TrainState) -> None:
        """Queue the acting of its vector step."""
        self.player.look(state)
        self.playing.choose()

    def send(self) -> None:
        self.playing.send()

    def recv(self) -> None:
        self.playing.recv()

    def goes_on(self, state: TrainState) -> bool:
        live = self.judged is not None and self.judged is state.judged
        return live and not self.playing.over

    def end(
        self, state: TrainState, between: Between = nothing
    ) -> tuple[TrainState, tuple[Score, Any]]:
        if self.judged is not state.judged:  # a run that was stopped in the middle of it
            self._open(state)
        self.player.look(state)
        score = self.program.evaluator.summed(self.playing.finish(between))
        _, fine, params = state.judged
        self.judged = None
        return self.program.decided(state._replace(judged=None), params, fine, score)
