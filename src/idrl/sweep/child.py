"""The process of one run: some of the machine's cores, and an end when its parent ends.

`python -m idrl.sweep.child PARENT CORES COMMAND…`, CORES such as 0,3 or - for all.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, places, *command = sys.argv[1:]
    if sys.platform == "linux":
        # Whoever kills a worker kills its run: another one may go on with it at once.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):
            sys.exit(1)
        if places != "-":
            os.sched_setaffinity(0, [int(core) for core in places.split(",")])
    os.execv(sys.executable, [sys.executable, "-m", "idrl.cli", *command])


if __name__ == "__main__":
    main()
