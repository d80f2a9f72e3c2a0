"""A run folder to look at: its config and what it recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from idrl.config import RunConfig
from idrl.errors import IdrlError
from idrl.runs.reading import read_run
from idrl.runs.tables import RecordTable
from idrl.storage import checkpoint
from idrl.storage.folder import RunFolder
from idrl.storage.records import read_table
from idrl.system import words


@dataclass(frozen=True, repr=False)
class Run:
    """A run folder, finished or not. It stands for its folder wherever a path is expected."""

    path: Path  # its folder
    config: RunConfig  # every setting, resolved

    @property
    def evaluations(self) -> RecordTable:
        """One row per seed and evaluation: `steps`, `return_mean`, `best`, …"""
        return self._table("evaluations")

    @property
    def metrics(self) -> RecordTable:
        """Means over the last block before the row, about a second: losses, Q-values, σ, ρ², …; and
        `episode_return`, the mean over the episodes that ended since the row before."""
        return self._table("metrics")

    @property
    def episodes(self) -> RecordTable:
        """Every episode that was completed while training."""
        return self._table("episodes")

    @property
    def distributions(self) -> RecordTable:
        """Percentiles of σ², ρ², … on the fixed batch of states."""
        return self._table("distributions")

    @property
    def timings(self) -> RecordTable:
        """Seconds since the row before. Evaluations that are made after the last step have rows of
        their own."""
        return self._table("timings")

    @property
    def frozen(self) -> RecordTable:
        """Seeds whose numbers stopped being finite, with the step and the kind of number."""
        return self._table("frozen")

    @property
    def seeds(self) -> range:
        """The seeds, in the order of the records."""
        return range(self.config.seed, self.config.seed + self.config.seeds)

    @property
    def steps(self) -> int:
        """Steps of each seed in the newest checkpoint, from which a resumed run continues."""
        return max(
            map(checkpoint.steps_of, checkpoint.listed(self.path / "checkpoints")), default=0
        )

    @property
    def kept_weights(self) -> list[int]:
        """After how many steps weights were kept (`training.keep_weights`)."""
        return [*map(checkpoint.steps_of, checkpoint.listed(self.path / "weights"))]

    @property
    def finished(self) -> bool:
        """Whether it has all its steps, and the evaluation at their end."""
        return self.steps >= self.config.training.steps and not self._is_evaluating()

    @property
    def deterministic(self) -> bool:
        """Whether it was begun with `--deterministic`."""
        return bool(RunFolder.open(self.path).read_about().get("deterministic"))

    def _is_evaluating(self) -> bool:
        """Whether it was stopped where an evaluation is still to be made."""
        newest = checkpoint.listed(self.path / "checkpoints")[-1]
        try:
            return bool(checkpoint.read_manifest_alone(newest)["meta"].get("pending", False))
        except (ValueError, OSError, LookupError, AttributeError):  # damaged: others say so
            return False

    def _table(self, name: str) -> RecordTable:
        return RecordTable.of_rows(read_table(self.path / f"{name}.csv"), name)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        c, count = self.config, self.config.seeds
        seeds = f"seed {c.seed}" if count == 1 else f"seeds {c.seed} to {c.seed + count - 1}"
        made = f"{self.steps:,} of {c.training.steps:,} steps"
        return f"Run({words.title(c.agent, c.env)}, {seeds}, {made}, {str(self.path)!r})"


def open_run(path: str | Path | Run) -> Run:
    """Open a run folder.

    Args:
        path: the folder, or a run, which is returned as it is.
    """
    if isinstance(path, Run):
        return path
    folder = RunFolder.open(path)
    return Run(folder.path, read_run(folder))


def newest_checkpoint(run: Run) -> Path:
    """The newest that is whole."""
    place, damaged = checkpoint.newest(run.path / "checkpoints")
    if place is None:
        why = "; ".join(f"{n} is damaged: {w}" for n, w in damaged.items())
        raise IdrlError(
            f"{str(run.path)!r} has no weights to load: {why or 'it has no checkpoint yet'}."
        )
    return place
