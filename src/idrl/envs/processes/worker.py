"""The process of some of a run's environments: `main` does what it is told until nobody listens."""

from __future__ import annotations

import contextlib
import pickle
import signal
import time
import warnings
from multiprocessing.connection import Connection
from typing import Any

from idrl.envs.host import Seen, Vector
from idrl.envs.processes import messages
from idrl.envs.processes.memory import Shared
from idrl.errors import IdrlError, in_a_line

_TOLD_S = 0.25  # between two words on how far a replay is


def main(link: int, memory: int) -> None:
    # The run is told of these, and decides when it is over.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(Alone):
        Worker(Connection(link), memory).serve()


class Alone(BaseException):
    """Nobody listens any more. No error, which an environment might catch."""


class Worker:
    def __init__(self, link: Connection, memory: int):
        self.link, self.file = link, memory
        self.vector: Vector | None = None
        self.told_s = 0.0
        warnings.showwarning = self._warned

    def serve(self) -> None:
        self._answer(self._make, self._hear())
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
            said = messages.REFUSED + str(error).encode()
        except Exception as error:
            said = messages.FAILED + in_a_line(error).encode()
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
        self.env, self.part, count, timeout_s = pickle.loads(given)
        self.memory = Shared(self.env, count, self.file)
        self.vector = self.env.make(self.part.stop - self.part.start, timeout_s)

    def _step(self, given: bytes) -> None:
        action, seed = (self.memory[name][self.part] for name in ("action", "seed"))
        self._show(self._made().step(action.copy(), seed.copy()))

    def _replay(self, given: bytes) -> None:
        self._show(self._made().replay(self.env, pickle.loads(given), self._did))

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

    def _made(self) -> Vector:
        if self.vector is None:
            raise IdrlError(f"{self.env.name} could not be made.")
        return self.vector

    def _warned(self, message: Any, *more: Any, **others: Any) -> None:
        self._say(messages.WARNED + str(message).encode())
