"""Weights that a run keeps from early in training, to be looked at later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idrl.config import RunConfig
from idrl.errors import IdrlError
from idrl.storage import checkpoint
from idrl.storage.folder import RunFolder
from idrl.training.loop import Progress
from idrl.training.program import RunProgram


class Keeper:
    """After the first evaluation, the second, the fourth and so on, `training.keep_weights` times:
    what an agent learns early it learns fast. Which they are does not depend on how long a run is.

    They are checkpoints of weights alone, so they are there whole or not at all, with checksums.
    """

    def __init__(self, folder: RunFolder, config: RunConfig, steps: int):
        """`steps`: up to which evaluations have been made."""
        self.folder, self.count = folder, config.training.keep_weights
        self.every = config.evaluation.every_steps
        self.last = steps // self.every

    def keep(self, progress: Progress) -> None:
        scored = progress.scored
        if scored is None or scored.steps // self.every <= self.last:
            return
        self.last = scored.steps // self.every
        if self.is_kept(self.last):
            tree = {"params": scored.params, "prior": progress.state.agent.prior}
            checkpoint.save(self.folder.weights, scored.steps, tree, {}, keep=self.count)

    def is_kept(self, number: int) -> bool:
        """Of evaluation `number`, counted from 1."""
        return number & (number - 1) == 0 and number.bit_length() <= self.count


def evaluated(program: RunProgram, state: Any, meta: Mapping[str, Any]) -> int:
    """The steps up to which a checkpoint's run has made its evaluations."""
    iteration, due = meta.get("iteration", 0), bool(meta.get("pending"))
    if state is not None and state.judged is not None:
        iteration, due = int(state.judged.iteration[0]), True
    # One that is pending was due within the block that ends there, perhaps long before its end.
    made = program.cadence.begin(iteration) if due else iteration
    return program.cadence.steps_at(made) if made else 0


def discard_after(folder: RunFolder, steps: int) -> None:
    """A run that goes on from `steps` keeps what follows again."""
    for place in checkpoint.listed(folder.weights):
        if checkpoint.steps_of(place) > steps:
            checkpoint.discard(place)


def find_kept(folder: RunFolder, at: int):
    """Where the weights after `at` steps are."""
    places = {checkpoint.steps_of(place): place for place in checkpoint.listed(folder.weights)}
    if at not in places:
        there = ", ".join(f"{steps:,}" for steps in places)
        kept = (
            f"it has those after {there} steps" if there else "it kept none: train with "
            "--set training.keep_weights=4, and those after the evaluations 1, 2, 4 and 8 stay"
        )  # fmt: skip
        raise IdrlError(f"{str(folder.path)!r} has no weights of step {at:,}; {kept}.")
    checkpoint.read_meta(places[at])  # refuses what is damaged
    return places[at]
