"""Where the numbers of a run go besides its CSV files: TensorBoard, Weights & Biases.

A sink is a guest. One that cannot be opened stops the command before anything is trained; one that
fails later is dropped with a warning, and the run goes on, because the CSV files hold everything.
"""

from __future__ import annotations

import importlib.util
import math
import os
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from idrl.errors import IdrlError

KINDS = ("tensorboard", "wandb")  # each is the name of its flag, its package and its extra
WANDB_PROJECT = "idrl"  # where WANDB_PROJECT does not say otherwise


class SinkRefused(IdrlError):
    """A sink could not be opened."""


class Sink(Protocol):
    """Hears of one seed at a time, in the order of its steps."""

    def scalars(self, seed: int, steps: int, values: dict[str, float]) -> None: ...

    def histograms(self, seed: int, steps: int, values: dict[str, np.ndarray]) -> None: ...

    def close(self) -> None: ...


def check_installed(kinds: Iterable[str]) -> None:
    for kind in kinds:
        found = importlib.util.find_spec(kind)
        # A folder of that name in reach counts as a package too, and W&B makes such folders.
        if found is None or found.origin is None:
            raise SinkRefused(
                f"--{kind} needs the {kind} package: pip install 'idrl[{kind}]' "
                f"(or --no-{kind} to go on without it)."
            )


def settings(kinds: Iterable[str]) -> dict[str, str]:
    """What a run remembers of its sinks, so that a resumed one goes on in the same places."""
    project = os.environ.get("WANDB_PROJECT") or WANDB_PROJECT
    return {kind: project if kind == "wandb" else "" for kind in kinds}


def open_sinks(chosen: dict[str, str], path: Path, name: str, config: dict[str, Any]) -> Sinks:
    """The sinks of the run in `path`, `chosen` by `settings`; `name` is the run's own identity."""
    opened: dict[str, Sink] = {}
    try:
        for kind, project in chosen.items():
            if kind == "tensorboard":
                opened[kind] = TensorBoard(path / "tensorboard")
            else:
                opened[kind] = Wandb(path, project, name, config)
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
                    f"{kind} failed {when} and hears no more of this run, which goes on; its CSV "
                    f"files are complete. {_one_line(error)}",
                    stacklevel=3,
                )


class TensorBoard:
    """Events per seed, written with the `tensorboard` package (an optional extra)."""

    def __init__(self, folder: Path):
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.plugins.histogram.summary_v2 import histogram_pb
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary, self._writer = Event, Summary, EventFileWriter
        self._histogram = histogram_pb
        self._folder = folder
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


class Wandb:
    """A W&B run for each seed, in a group named like the run folder.

    Their ids come from the run's own identity, so a resumed run goes on in the same curves. Numbers
    carry the agent's steps: what is said again after a resume from an older checkpoint W&B leaves
    out, and it is the same anyway.
    """

    def __init__(self, path: Path, project: str, name: str, config: dict[str, Any]):
        import wandb

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
                    # Links have no place in a run folder.
                    settings=wandb.Settings(console="off", silent=True, symlink=False),
                )  # fmt: skip
        except BaseException:
            self.close()
            raise

    def scalars(self, seed: int, steps: int, values: dict[str, float]) -> None:
        self._runs[seed].log(values, step=steps)

    def histograms(self, seed: int, steps: int, values: dict[str, np.ndarray]) -> None:
        self._runs[seed].log({tag: self._histogram(x) for tag, x in values.items()}, step=steps)

    def close(self) -> None:
        for run in self._runs.values():
            run.finish()


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
