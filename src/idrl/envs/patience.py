"""Gives up on an environment that does not return.

The environments are stepped in the main thread, where they may need to be (windows, OpenGL). A
thread looks at the clock; when a call is overdue it signals the main thread, which leaves whatever
Python code or waiting it is in. Foreign code that does not come back to Python is left by ending
the process: the run's folder is valid at any instant.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from idrl.envs.shown import Wrong
from idrl.errors import IdrlError
from idrl.system.signals import is_ctrl_c

T = TypeVar("T")
GRACE_S = 5.0  # for the main thread to come back to Python


class Hung(BaseException):
    """Not an Exception: an environment that catches those shall not catch this."""


class Patience:
    """Calls of one environment, each of which may take `seconds` (0: for ever)."""

    def __init__(self, name: str, seconds: float):
        self.name, self.seconds = name, seconds
        self.since: float | None = None  # the call that is under way
        self.late: float | None = None  # the call that is overdue
        self.where: Callable[[], str] = str
        # Only the main thread can be signalled; elsewhere nobody watches.
        self.watching = seconds > 0 and threading.current_thread() is threading.main_thread()
        self.over = threading.Event()
        if self.watching:
            self.before: Any = signal.signal(signal.SIGALRM, self._alarm)
            threading.Thread(target=self._watch, daemon=True).start()

    def call(
        self, function: Callable[[], T], where: Callable[[], str],
        passing: type[Exception] | tuple[()] = (),
    ) -> T:  # fmt: skip
        """`function()`; whatever it raises is told with the place that `where()` names, but for
        what is `passing`. That is also what would end the process, or pass for Ctrl-C."""
        self.where, self.since = where, time.monotonic()
        try:
            return function()
        except Hung:
            raise IdrlError(self._sentence()) from None
        except passing:
            raise
        except Wrong as error:
            raise IdrlError(f"{self.name} {error} at {where()}.") from None
        except BaseException as error:
            if is_ctrl_c(error):
                raise
            line = " ".join(str(error).split()).rstrip(".")
            raise IdrlError(
                f"{self.name} raised {type(error).__name__} at {where()}"
                f"{': ' if line else ''}{line}."
            ) from error
        finally:
            self.since = None

    def close(self) -> None:
        self.over.set()
        if self.watching and signal.getsignal(signal.SIGALRM) == self._alarm:
            signal.signal(signal.SIGALRM, self.before or signal.SIG_DFL)
        self.watching = False

    def _alarm(self, number, frame) -> None:
        if self.since is not None and self.since == self.late:
            raise Hung
        if callable(self.before):
            self.before(number, frame)

    def _watch(self) -> None:
        main = threading.main_thread().ident
        assert main is not None
        tick = min(1.0, self.seconds / 4)
        call, waited, before = self.since, 0.0, time.monotonic()
        while not self.over.wait(tick):
            # Time in which this process itself was stopped (SIGSTOP) is not the environment's.
            passed, before = min(time.monotonic() - before, 2 * tick), time.monotonic()
            call, waited = self.since, waited + passed if self.since == call else 0.0
            if call is None or waited <= self.seconds:
                continue
            self.late = call
            signal.pthread_kill(main, signal.SIGALRM)
            if not self.over.wait(GRACE_S) and self.since == call:
                print(f"idrl: {self._sentence()}", file=sys.stderr, flush=True)
                os._exit(1)

    def _sentence(self) -> str:
        return (
            f"{self.name} did not return from {self.where()} within {self.seconds:g} s, which is "
            "how long training.env_timeout_s waits."
        )
