"""Where the numbers of a run go besides its CSV files: TensorBoard, Weights & Biases, one's own.

A sink is a guest. One that cannot be opened stops the command before anything is trained; one that
fails later is dropped with a warning, and the run goes on, because the CSV files hold everything.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from idrl.errors import IdrlError, unknown
from idrl.schema import same_place

_STEPS = "evaluation/steps"  # W&B's axis of evaluations, which may come late
WANDB_PROJECT = "idrl"  # where WANDB_PROJECT does not say otherwise


class SinkRefused(IdrlError):
    """A sink could not be opened."""


class SinkRun(NamedTuple):
    """The run that a sink is opened for."""

    path: Path  # its folder
    name: str  # its own identity, which stays the same when it is resumed
    config: dict[str, Any]  # every setting of the run
    kept: str = ""  # what `Sink.keep` said when the run began


class Sink:
    """A place that the numbers of a run go to. It receives one seed at a time, in the order of its
    steps; evaluations that are played beside training (`evaluation.beside`) come late, with the
    steps of the weights that they are of. Register one with `@idrl.sink`.

    Args:
        run: the run that it is opened for.
    """

    kind: ClassVar[str] = ""
    package: ClassVar[str] = ""  # that it needs, and the extra of idrl that brings it

    def __init__(self, run: SinkRun):
        """What it raises ends the command before anything is trained."""

    @classmethod
    def keep(cls) -> str:
        """What a run remembers, so that a resumed run continues in the same place."""
        return ""

    def scalars(self, seed: int, steps: int, values: dict[str, float]) -> None:
        """A row of metrics (`train/…`) or of an evaluation (`evaluation/…`)."""

    def histograms(self, seed: int, steps: int, values: dict[str, np.ndarray]) -> None:
        """What the rule sees on the fixed batch of states."""

    def close(self) -> None:
        """The run has ended, or is interrupted."""


KINDS: dict[str, type[Sink]] = {}


def sink(kind: str) -> Callable[[type[Sink]], type[Sink]]:
    """Decorator: register the sink class below under a name, for `--sink` and
    `idrl.train(sinks=…)`.

    Args:
        kind: the name, in lower case.
    """
    if not isinstance(kind, str) or not re.fullmatch(r"[a-z][a-z0-9_-]{0,63}", kind):
        raise IdrlError(
            'write @idrl.sink("name") above the class; a name is a word in lower case letters.'
        )

    def add(made: type[Sink]) -> type[Sink]:
        if not isinstance(made, type) or not issubclass(made, Sink):
            raise IdrlError(f"the sink {kind!r} is a class derived from idrl.Sink, not {made!r}.")
        if kind in KINDS and not same_place(KINDS[kind], made):
            raise IdrlError(f"a sink named {kind!r} is registered already; choose another name.")
        made.kind, KINDS[kind] = kind, made
        return made

    return add


def check_installed(kinds: Iterable[str]) -> None:
    for kind in kinds:
        if kind not in KINDS:
            raise unknown("sink", kind, KINDS)
        package = KINDS[kind].package
        if not package:
            continue
        found = importlib.util.find_spec(package)
        # A folder of that name in reach counts as a package too, and W&B makes such folders.
        if found is None or found.origin is None:
            raise SinkRefused(
                f"--{kind} needs the {kind} package: pip install 'idrl[{kind}]' "
                f"(or --no-{kind} to continue without it)."
            )


def settings(kinds: Iterable[str]) -> dict[str, str]:
    """What a run remembers of its sinks, so that a resumed one goes on in the same places."""
    return {kind: KINDS[kind].keep() for kind in kinds}


def open_sinks(chosen: dict[str, str], path: Path, name: str, config: dict[str, Any]) -> Sinks:
    """The sinks of the run in `path`, `chosen` by `settings`; `name` is the run's own identity."""
    opened: dict[str, Sink] = {}
    try:
        for kind, kept in chosen.items():
            opened[kind] = KINDS[kind](SinkRun(path, name, config, kept))
    except Exception as error:  # whatever a package of others may raise
        Sinks(opened).close()
        raise SinkRefused(f"{kind} cannot be used: {_one_line(error)}") from None
    return Sinks(opened)


class Sinks:
    """All sinks of a run as one, which never raises."""

    def __init__(self, sinks: dict[str, Sink]):
        self.sinks = dict(sinks)

    def scalars(self, seed: int, steps: int, values: dict[str, float]) -> None:
        finite = {name: value for name, value in values.items() if math.isfinite(value)}
        self._tell(lambda sink: sink.scalars(seed, steps, finite), f"at step {steps:,}")

    def histograms(self, seed: int, steps: int, values: dict[str, np.ndarray]) -> None:
        finite = {name: x[np.isfinite(x)] for name, x in values.items()}
        finite = {name: x for name, x in finite.items() if x.size}
        self._tell(lambda sink: sink.histograms(seed, steps, finite), f"at step {steps:,}")

    def close(self) -> None:
        self._tell(lambda sink: sink.close(), "when it was closed")
        self.sinks = {}

    def _tell(self, call: Callable[[Sink], None], when: str) -> None:
        for kind, sink in list(self.sinks.items()):
            try:
                call(sink)
            except Exception as error:  # a guest must not end the run
                del self.sinks[kind]
                warnings.warn(
                    f"{kind} failed {when} and records no more of this run, which continues; its "
                    f"CSV files are complete. {_one_line(error)}",
                    stacklevel=3,
                )


@sink("tensorboard")
class TensorBoard(Sink):
    """Events per seed, written with the `tensorboard` package (an optional extra)."""

    package = "tensorboard"

    def __init__(self, run: SinkRun):
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.plugins.histogram.summary_v2 import histogram_pb
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary, self._writer = Event, Summary, EventFileWriter
        self._histogram = histogram_pb
        self._folder = run.path / "tensorboard"
        self._files: dict[int, Any] = {}

    def scalars(self, seed: int, steps: int, values: dict[str, float]) -> None:
        entries = [self._summary.Value(tag=tag, simple_value=v) for tag, v in values.items()]
        self._add(seed, steps, self._summary(value=entries))

    def histograms(self, seed: int, steps: int, values: dict[str, np.ndarray]) -> None:
        for tag, x in values.items():
            self._add(seed, steps, self._histogram(tag, x.astype(np.float64)))

    def _add(self, seed: int, steps: int, summary: Any) -> None:
        if seed not in self._files:
            self._files[seed] = self._writer(str(self._folder / f"seed-{seed}"))
        self._files[seed].add_event(self._event(wall_time=time.time(), step=steps, summary=summary))

    def close(self) -> None:
        for file in self._files.values():
            file.close()


@sink("wandb")
class Wandb(Sink):
    """A W&B run for each seed, in a group named like the run folder.

    Their ids come from the run's own identity, so a resumed run goes on in the same curves. Numbers
    carry the agent's steps: what is said again after a resume from an older checkpoint W&B leaves
    out, and it is the same anyway. It would leave out evaluations that come late, too, so these
    have an axis of their own, on which one that is said again is the same point.
    """

    package = "wandb"

    @classmethod
    def keep(cls) -> str:
        """The project."""
        return os.environ.get("WANDB_PROJECT") or WANDB_PROJECT

    def __init__(self, run: SinkRun):
        import wandb

        path, name, config, project = run
        self._histogram = wandb.Histogram
        self._runs: dict[int, Any] = {}
        first = int(config["seed"])
        try:
            for seed in range(first, first + int(config["seeds"])):
                self._runs[seed] = wandb.init(
                    project=project, group=path.name, name=f"{path.name}-seed-{seed}",
                    id=f"{name}-{seed}", resume="allow", dir=str(path),
                    config=config | {"seed": seed},
                    # Several at once; what is printed belongs to none of them.
                    reinit="create_new",
                    settings=wandb.Settings(console="off", silent=True, symlink=False),
                )  # fmt: skip
                self._runs[seed].define_metric("evaluation/*", step_metric=_STEPS)
            _remove_links(path / "wandb")  # to a log of its own, whatever the settings say
        except BaseException:
            self.close()
            raise

    def scalars(self, seed: int, steps: int, values: dict[str, float]) -> None:
        run = self._runs[seed]
        if not any(name.startswith("evaluation/") for name in values):
            run.log(values, step=steps)
        else:
            run.log({_STEPS: steps, **values}, step=steps if steps >= run.step else None)

    def histograms(self, seed: int, steps: int, values: dict[str, np.ndarray]) -> None:
        self._runs[seed].log({tag: self._histogram(x) for tag, x in values.items()}, step=steps)

    def close(self) -> None:
        for run in self._runs.values():
            run.finish()


def _remove_links(folder: Path) -> None:
    """A run folder with a link in it is refused."""
    for path in folder.rglob("*"):
        if path.is_symlink():
            path.unlink()


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
