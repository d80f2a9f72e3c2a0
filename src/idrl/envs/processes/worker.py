"""The process of some of a run's environments: `main` does what it is told until nobody listens."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import threading
import time
import warnings
from multiprocessing.connection import Connection
from typing import Any

from idrl.envs.host import Seen, Vector
from idrl.envs.processes import messages
from idrl.envs.processes.memory import Shared
from idrl.envs.processes.packing import unpacked
from idrl.errors import IdrlError, in_a_line
from idrl.system.signals import NUMBERS

_TOLD_S = 0.25  # between two words on how far a replay is
_GRACE_S = 5.0  # to end by itself once nobody listens


def main(link: int, memory: int, packed: int, first: int, end: int, cores: int) -> None:
    # The run is told of these, and decides when it is over. Until now they were blocked. Not
    # ignored: programs that environments start would ignore them too.
    for number in NUMBERS:
        signal.signal(number, lambda *given: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)
    for file in (link, memory, packed):  # nor are these theirs
        os.set_inheritable(file, False)
    threading.Thread(target=_watch, args=(link,), daemon=True).start()
    with contextlib.suppress(Alone):
        Worker(Connection(link), memory, packed).serve(slice(first, end), cores)


def _watch(link: int) -> None:
    """End where an environment hangs and nobody waits for it any more."""
    poller = select.poll()
    poller.register(link, 0)  # tells of nothing but the end
    poller.poll()
    time.sleep(_GRACE_S)
    os._exit(1)


class Alone(BaseException):
    """Nobody listens any more. No error, which an environment might catch."""


class Worker:
    def __init__(self, link: Connection, memory: int, packed: int):
        self.link, self.files = link, (memory, packed)
        self.vector: Vector | None = None
        self.told_s = 0.0
        warnings.showwarning = self._warned

    def serve(self, part: slice, cores: int) -> None:
        self.part, self.cores = part, cores
        self._answer(self._make, b"")
        try:
            while True:
                told = self._hear()
                kind, rest = told[:1], told[1:]
                self._answer(self._step if kind == messages.STEP else self._replay, rest)
        finally:
            if self.vector is not None:
                self.vector.close()

    def _answer(self, do: Any, given: bytes) -> None:
        said = messages.DONE
        try:
            do(given)
        except IdrlError as error:
            said = messages.REFUSED + messages.data(str(error))
        except Exception as error:
            said = messages.FAILED + messages.data(in_a_line(error))
        self._say(said)

    def _hear(self) -> bytes:
        try:
            return self.link.recv_bytes()
        except (EOFError, OSError):
            raise Alone from None

    def _say(self, message: bytes) -> None:
        try:
            self.link.send_bytes(message)
        except OSError:
            raise Alone from None

    def _make(self, given: bytes) -> None:
        memory, packed = self.files
        env, count, timeout_s = unpacked(packed)
        self.env = env.part(self.part.start, self.cores)
        self.memory = Shared(self.env, count, memory)
        self.vector = self.env.make(self.part.stop - self.part.start, timeout_s)

    def _step(self, given: bytes) -> None:
        action, seed = (self.memory[name][self.part] for name in ("action", "seed"))
        assert self.vector is not None
        self._show(self.vector.step(action.copy(), seed.copy()))

    def _replay(self, given: bytes) -> None:
        assert self.vector is not None
        self._show(self.vector.replay(self.env, pickle.loads(given), self._did))

    def _did(self, steps: int) -> None:
        now = time.monotonic()
        if now - self.told_s >= _TOLD_S:
            self.told_s = now
            self._say(messages.DID + steps.to_bytes(8, "little"))

    def _show(self, seen: Seen) -> None:
        for name, x in seen._asdict().items():
            into = self.memory.part(name, self.part)
            if into is not None and x is not None:
                into[:] = x
        self.memory["tells_lives"][self.part] = seen.life_lost is not None

    def _warned(
        self, message: Any, category: type[Warning], filename: str, lineno: int, *more: Any,
        **others: Any,
    ) -> None:  # fmt: skip
        told = str(message), category, filename, lineno
        try:
            packed = pickle.dumps(told)
        except Exception:  # of a class that only this process knows
            packed = pickle.dumps((told[0], UserWarning, *told[2:]))
        self._say(messages.WARNED + packed)
