"""Ctrl-C, SIGTERM, SIGHUP: asked politely first, and never waited for longer than some seconds."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

# SIGHUP: the terminal is gone.
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_S = 8.0  # the promise is ten seconds, and a process takes a moment to end


class CtrlC(KeyboardInterrupt):
    """What our handlers raise. After a `KeyboardInterrupt` itself in text that was executed, as in
    the making of a dataclass, `python -m` ends by SIGINT, whatever status it asks for."""


class Again(CtrlC):
    """The second signal: not to be waited for."""


def is_ctrl_c(error: BaseException) -> bool:
    """Whether an exception is from a signal, not from code that raised what Ctrl-C would."""
    if isinstance(error, CtrlC) or not isinstance(error, KeyboardInterrupt):
        return isinstance(error, CtrlC)
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def own_process() -> None:
    """For the command line: from here on Ctrl-C ends this process without a word, since nothing is
    begun; unless the process was started to ignore it, as a shell's jobs in the background are."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(130)


@contextlib.contextmanager
def interruptible(farewell: Callable[[], object]) -> Iterator[None]:
    """In a process of our own Ctrl-C raises `CtrlC`, so that what is open is closed. Where an
    exception would get lost Ctrl-C ends the process at once: in an import, which may make an
    `ImportError` of it, and in what Python calls by itself, such as JAX's callback of the garbage
    collector, where it would be printed as ignored and the work go on."""
    if signal.getsignal(signal.SIGINT) is not _leave:
        yield
        return

    def leave() -> None:
        farewell()
        os._exit(130)

    def handle(number: int, frame: FrameType | None) -> None:
        if _is_importing(frame):
            leave()
        raise CtrlC

    def lost(what: Any) -> None:
        if issubclass(what.exc_type, CtrlC):
            leave()
        before(what)

    before, sys.unraisablehook = sys.unraisablehook, lost
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _leave)
        sys.unraisablehook = before


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def signals() -> Iterator[threading.Event]:
    """Ctrl-C, SIGTERM and SIGHUP set the event; a second one interrupts at once. One that the
    process was started to ignore, as `nohup` does, stays ignored."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handle(number, frame):
        if stop.is_set():
            raise Again
        stop.set()

    heeded = [s for s in NUMBERS if signal.getsignal(s) is not signal.SIG_IGN]
    old = {s: signal.signal(s, handle) for s in heeded}
    try:
        yield stop
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def last_resort(farewell: Callable[[], None], patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Ends the process with status 130 where a signal was not obeyed in time.

    Python calls a handler only between two of its own instructions, so a long compilation, or an
    environment that hangs in foreign code, would hold it up. The signal's number is written to a
    socket at once, which a thread waits at. A run folder is valid at any instant, so nothing but
    what came after the last checkpoint is lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            number = ours.recv(1)
            if number and number[0] in NUMBERS and not over.wait(patience_s):
                farewell()
                os._exit(130)

    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        theirs.send(b"\0")
        thread.join(1)
        ours.close()
        theirs.close()
