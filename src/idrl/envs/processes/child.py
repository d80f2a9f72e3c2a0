"""A process of environments, as the run that started it sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from multiprocessing import Pipe
from typing import Any

import cloudpickle

from idrl.envs.processes import messages
from idrl.errors import IdrlError, in_a_line

_PATIENCE_S = 5.0  # for it to end by itself
# Not `-m`: a run need not be of an installed idrl, and its environments need what it can import.
_RUN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from idrl.envs.processes.worker import main; main(*map(int, sys.argv[2:]))"
)


class Child:
    """It makes environments, and is `busy` with that at first."""

    def __init__(self, name: str, given: tuple[Any, slice, int, float], memory: int):
        """`given`: environment, which of how many it steps, how long a call of one may take."""
        self.name, self.part, self.replayed = name, given[1], 0
        self.error: IdrlError | None = None
        try:
            packed = cloudpickle.dumps(given)
        except Exception as error:  # of a class of anyone's
            raise IdrlError(
                f"{name} cannot be made in another process ({in_a_line(error)}); set "
                "training.env_processes=1, or pass a function that makes it."
            ) from None
        self.link, theirs = Pipe()
        files = theirs.fileno(), memory
        # A GPU belongs to the run: what its environments do with JAX they do on a CPU.
        self.process = subprocess.Popen(
            [sys.executable, "-c", _RUN, json.dumps(sys.path), *map(str, files)],
            stdin=subprocess.DEVNULL, pass_fds=files, env=os.environ | {"JAX_PLATFORMS": "cpu"},
        )  # fmt: skip
        theirs.close()
        self.busy = False
        self.tell(packed)

    def tell(self, message: bytes) -> None:
        """It is busy with that until `listen` has heard so."""
        self.busy, self.replayed = True, 0
        try:
            self.link.send_bytes(message)
        except OSError:
            self._gone()

    def listen(self) -> None:
        """The next that it says, when it does."""
        try:
            said = self.link.recv_bytes()
        except (EOFError, OSError):
            self._gone()
            return
        kind, rest = said[:1], said[1:]
        if kind == messages.WARNED:
            warnings.warn(rest.decode(), stacklevel=2)
        elif kind == messages.DID:
            self.replayed = int.from_bytes(rest, "little")
        else:
            self.busy = False
            if kind == messages.REFUSED:
                self.error = IdrlError(rest.decode())
            elif kind == messages.FAILED:
                self.error = IdrlError(f"{self.name} failed in a process: {rest.decode()}.")

    def forget(self) -> IdrlError | None:
        """What went wrong since the last time."""
        error, self.error = self.error, None
        return error

    def dismiss(self) -> None:
        self.link.close()

    def end(self) -> None:
        """It ends when it finds that nobody listens, unless it hangs."""
        try:
            self.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _gone(self) -> None:
        self.busy = False
        status = self.process.wait()
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        self.error = IdrlError(
            f"a process of {self.name} ended ({how}); the run goes on from its last checkpoint "
            "with --resume, and training.env_processes=1 uses no such processes."
        )
