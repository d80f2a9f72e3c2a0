"""Code of one's own that watches a run, and may stop it. It is shown copies: what it does to them
changes nothing about what the run computes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import jax
import numpy as np

from idrl.errors import IdrlError, RunFailed
from idrl.runs.run import Run
from idrl.runs.tables import RecordTable
from idrl.system.signals import is_ctrl_c
from idrl.training.evaluation import Score
from idrl.training.loop import Progress


@dataclass(frozen=True)
class TrainingProgress:
    """What happened since the last progress. Arrays are `[S]`, one entry per seed."""

    steps: int  # of each seed so far
    total_steps: int  # that each seed will have made
    seeds: np.ndarray  # their numbers
    alive: np.ndarray  # whose numbers are finite; the others are frozen
    # Means: losses, the gradient's norm, and of the decisions Q, σ and ρ². Empty at the start.
    metrics: dict[str, np.ndarray] = field(repr=False)
    # Completed since the last progress, in the columns of Run.episodes.
    episodes: RecordTable = field(repr=False)
    # What the rule sees on the fixed batch of states, when it is recorded: `[S, states, actions]`.
    distributions: dict[str, np.ndarray] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class EvaluationResult:
    """One evaluation of all seeds. Arrays are `[S]`, one entry per seed."""

    steps: int  # of each seed by then
    seeds: np.ndarray  # their numbers
    alive: np.ndarray  # whose numbers are finite; the others are frozen
    score: Score  # of this evaluation
    best: np.ndarray  # the highest mean return of an evaluation so far
    improved: np.ndarray  # whose best this one is


class Callback:
    """Watches a run; override what you need.

    `on_progress` and `on_evaluation` stop the run by returning False: it is saved, and
    `idrl.train(resume=run.path)` continues it.
    """

    def on_start(self, run: Run) -> None:
        """Training begins, or continues from `run.steps`."""

    def on_progress(self, progress: TrainingProgress) -> bool | None:
        """Called about once a second and where an evaluation is due. The rows are already in the
        run's tables."""

    def on_evaluation(self, evaluation: EvaluationResult) -> bool | None:
        """Called at every evaluation, after `on_progress`. One that is played beside training
        (`evaluation.beside`) is told of when it has ended, without `on_progress`."""

    def on_end(self, run: Run) -> None:
        """Called once if `on_start` was called: the run is finished (`run.finished`), or was
        stopped, interrupted or failed. Its folder is no longer in use."""


class CallbackFailed(RunFailed):
    """A callback raised; `begun`: not before anything was trained."""

    def __init__(self, text: str, begun: bool = True):
        super().__init__(text)
        self.begun = begun


class Watchers:
    """A run's callbacks as one. As a context it ends them, however the run ends."""

    def __init__(self, callbacks: Sequence[Callback], run: Run):
        self.callbacks, self.run = callbacks, run
        self.started: list[Callback] = []
        self.seeds = np.array(run.seeds)

    def __enter__(self) -> Watchers:
        return self

    def start(self) -> None:
        for one in self.callbacks:
            try:
                self._ask(one, "on_start", self.run)
            except CallbackFailed as failed:
                raise CallbackFailed(f"{failed}. Nothing was trained.", False) from failed.__cause__
            self.started.append(one)

    def tell(self, progress: Progress, episodes: Sequence[dict[str, Any]]) -> bool:
        """Whether all of them want the run to go on, which all are asked."""
        if not self.callbacks:
            return True
        answers = []
        if progress.metrics is not None or progress.iteration == 0:  # else nothing was trained
            brought = self._progress(progress, episodes)
            answers = [self._ask(one, "on_progress", brought) for one in self.callbacks]
        if progress.score is not None:
            found = self._evaluation(progress)
            answers += [self._ask(one, "on_evaluation", found) for one in self.callbacks]
        return not any(isinstance(answer, bool | np.bool_) and not answer for answer in answers)

    def _progress(self, progress: Progress, episodes: Sequence[dict[str, Any]]) -> TrainingProgress:
        return TrainingProgress(
            steps=progress.steps,
            total_steps=self.run.config.training.steps,
            seeds=self.seeds.copy(),
            alive=_copied(progress.alive),
            metrics=_copied(progress.metrics or {}),
            episodes=RecordTable.of_rows(episodes, "episodes"),
            distributions=_copied(progress.distributions),
        )

    def _evaluation(self, progress: Progress) -> EvaluationResult:
        # `best` is part of the state, whose memory the next block takes over.
        scored = progress.scored
        assert scored is not None
        return EvaluationResult(
            scored.steps, self.seeds.copy(), _copied(scored.alive), _copied(progress.score),
            _copied(progress.state.best.score), _copied(progress.better),
        )  # fmt: skip

    def _ask(self, one: Callback, method: str, about: Any) -> Any:
        try:
            return getattr(one, method)(about)
        except BaseException as error:
            if is_ctrl_c(error):
                raise
            raise CallbackFailed(_sentence(one, method, error)) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        failed: CallbackFailed | None = None
        for one in self.started:
            try:
                self._ask(one, "on_end", self.run)
            except CallbackFailed as wrong:
                if failed is None and error is None:
                    failed = wrong  # once the others have ended, too
                else:
                    warnings.warn(f"{wrong}.", stacklevel=2)
        if failed is not None:
            raise CallbackFailed(f"{failed}. The run itself is saved.") from failed.__cause__


def check_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """Refuse what is none before anything is made."""
    if isinstance(callbacks, Callback) or not isinstance(callbacks, Sequence):
        raise IdrlError(
            f"callbacks is {_kind(callbacks)}; it must be a list of idrl.Callback objects."
        )
    for one in callbacks:
        if isinstance(one, type) and issubclass(one, Callback):
            raise IdrlError(
                f"callbacks holds the class {one.__name__}; make one: {one.__name__}()."
            )
        if not isinstance(one, Callback):
            raise IdrlError(f"callbacks holds one {_kind(one)}; each is an idrl.Callback.")
    return tuple(callbacks)


def _kind(value: Any) -> str:
    return f"of type {type(value).__name__}"


def _sentence(one: Callback, method: str, error: BaseException) -> str:
    line = " ".join(str(error).split()).rstrip(".")
    said = f": {line}" if line else ""
    return f"{type(one).__name__}.{method} raised {type(error).__name__}{said}"


def _copied(tree: Any) -> Any:
    return jax.tree.map(np.array, tree)
