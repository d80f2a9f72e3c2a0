"""A process of environments, as the run that started it sees it."""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import subprocess
import sys
import time
import warnings
from multiprocessing import Pipe

from idrl.envs.processes import messages
from idrl.envs.processes.messages import text
from idrl.errors import IdrlError
from idrl.system.signals import NUMBERS

# For a process to end by itself: one that waits for its next step, and one that is busy.
_PATIENCE_S, _PATIENCE_WITH_BUSY_S = 5.0, 1.0
# Not `-m`: a run need not be of an installed idrl, and its environments need what it can import.
_RUN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from idrl.envs.processes.worker import main; main(*map(int, sys.argv[2:]))"
)


class Lost(IdrlError):
    """A process is gone, or could not make its environments: nothing is known of these."""


class Child:
    """It makes the environments `part` of all, and is `busy` with that at first."""

    def __init__(self, name: str, part: slice, cores: int, memory: int, packed: int):
        """`memory` and `packed` are files: see `Shared` and `packing`."""
        self.name, self.part, self.busy = name, part, True
        self.error: IdrlError | None = None
        self.made, self.steps, self.replayed = False, 0, 0
        self.link, theirs = Pipe()
        files = theirs.fileno(), memory, packed
        # -P: nothing is imported from where the run happens to be. A GPU belongs to the run: what
        # its environments do with JAX they do on a CPU.
        how = ["-P", *(f"-W{option}" for option in sys.warnoptions)]
        numbers = *files, part.start, part.stop, cores
        places = json.dumps([place for place in sys.path if isinstance(place, str)])
        # Signals to all processes of a terminal are the run's, from the first moment on.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
        try:
            self.process = subprocess.Popen(
                [sys.executable, *how, "-c", _RUN, places, *map(str, numbers)],
                stdin=subprocess.DEVNULL, pass_fds=files,
                env=os.environ | {"JAX_PLATFORMS": "cpu"},
            )  # fmt: skip
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        # A process that it has started may keep the other end of the link open.
        self.ends = [self.link.fileno()]
        if hasattr(os, "pidfd_open"):
            self.ends.append(os.pidfd_open(self.process.pid))
        self.poller = select.poll()
        for end in self.ends:
            self.poller.register(end, select.POLLIN)

    def tell(self, message: bytes) -> None:
        """It is busy with that until `listen` has heard so."""
        if isinstance(self.error, Lost):
            return
        self.busy = True
        try:
            self.link.send_bytes(message)
        except OSError:
            self._gone()

    def replay(self, message: bytes, steps: int) -> None:
        """The same, of so many steps; `replayed` is how many it has told of."""
        self.steps, self.replayed = steps, 0
        self.tell(message)

    def listen(self) -> None:
        """The next that it says, when it does."""
        try:
            if self.link.fileno() not in {end for end, _ in self.poller.poll()}:
                raise EOFError
            said = self.link.recv_bytes()
        except (EOFError, OSError):
            self._gone()
            return
        kind, rest = said[:1], said[1:]
        if kind == messages.WARNED:
            self._warn(rest)
        elif kind == messages.DID:
            self.replayed = int.from_bytes(rest, "little")
        else:
            self._over(kind, text(rest))

    def _over(self, kind: bytes, told: str) -> None:
        self.busy, self.replayed = False, self.steps
        failed = f"{self.name} failed in another process: {told}"
        if kind == messages.DONE:
            self.made = True
        elif not self.made:
            hint = f"{failed}; training.env_processes=1 makes it in this one."
            self.error = Lost(told if kind == messages.REFUSED else hint)
        else:
            self.error = IdrlError(told if kind == messages.REFUSED else f"{failed}.")

    def _warn(self, packed: bytes) -> None:
        try:
            told, category, file, line = pickle.loads(packed)
        except Exception:  # of a class that is not known here
            return
        warnings.warn_explicit(told, category, file, line)

    def forget(self) -> IdrlError | None:
        """What went wrong since the last time; what is lost stays lost."""
        error = self.error
        if not isinstance(error, Lost):
            self.error = None
        return error

    def dismiss(self) -> None:
        """It ends when it finds that nobody listens."""
        self.link.close()

    def end(self, dismissed_s: float) -> None:
        """See that it has ended. `dismissed_s`: when, by the monotonic clock."""
        patience = _PATIENCE_WITH_BUSY_S if self.busy else _PATIENCE_S
        try:
            self.process.wait(max(0.0, dismissed_s + patience - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for end in self.ends[1:]:
            os.close(end)
        self.ends = []

    def _gone(self) -> None:
        self.busy = False
        status = self.process.wait()
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        self.error = Lost(
            f"a process of {self.name} ended ({how}); the run goes on from its last checkpoint "
            "with --resume, and training.env_processes=1 uses no such processes."
        )
