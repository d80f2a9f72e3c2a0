"""Errors meant for people: one sentence on what is wrong and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class IdrlError(ValueError):
    """Bad input. The command line prints its sentence and exits with status 2."""


class RunFailed(RuntimeError):
    """A run that cannot continue. Its last checkpoint is intact; the command line exits with status
    1."""


class TrainingDiverged(RunFailed):
    """Losses, gradients or Q-values of every seed stopped being finite."""


class Interrupted(KeyboardInterrupt):
    """A signal (Ctrl-C, SIGTERM, SIGHUP) stopped a run, which can be resumed. Like any Ctrl-C it is
    not an `Exception`: a program that continues after the errors of one run does not continue after
    this.

    Args:
        path: the run's folder, which is an attribute, too.
        steps: of its newest checkpoint; None: it has none yet, and begins again when resumed.
    """

    def __init__(self, path: Path, steps: int | None):
        super().__init__(
            "Stopped before its first checkpoint; it begins again when resumed."
            if steps is None
            else f"Stopped at step {steps:,}; nothing is lost."
        )
        self.path = path


def in_a_line(error: BaseException) -> str:
    """Somebody else's error as part of a sentence: its kind, and what it says without the end."""
    said = " ".join(str(error).split())[:200].rstrip(".")
    return f"{type(error).__name__}: {said}".rstrip(": ")


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` where some known name is close, else the list of known names."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}." if names else "there is none."


def unknown(what: str, name: str, known: Iterable[str]) -> IdrlError:
    return IdrlError(f"unknown {what} {name!r}; {nearest(name, known)}")
