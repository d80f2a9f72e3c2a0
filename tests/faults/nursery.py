"""A process that has imported everything and forks the runs that are to be killed.

Importing JAX takes longer than the runs. The fork happens before JAX starts a thread, and each
child is a process of its own: it is killed as any other. Orders come as lines of JSON on the
standard input; answers are lines of JSON: first the child's number, then how it ended.
"""

import builtins
import json
import os
import resource
import shutil
import signal
import sys
import time

import gymnasium  # noqa: F401
import jax
import matplotlib.pyplot  # noqa: F401
import optax  # noqa: F401
from matplotlib.figure import Figure

import idrl.runs.display  # noqa: F401
from idrl.cli import app as cli
from idrl.storage import arrays, records


class Deaths:
    """Kills this process at the n-th moment at which something is being written."""

    def __init__(self, at: int, log: str | None):
        self.at, self.count, self.log = at, 0, log
        for module, name in (
            (os, "fsync"), (os, "rename"), (os, "replace"), (os, "truncate"), (shutil, "rmtree"),
        ):  # fmt: skip
            setattr(module, name, self._before(getattr(module, name)))
        self._arrays, arrays.save_file = arrays.save_file, self._half_arrays
        records.open = self._open
        Figure.savefig = self._half_figure(Figure.savefig)

    def due(self) -> bool:
        self.count += 1
        return self.count == self.at

    def _before(self, function):
        def call(*args, **kwargs):
            if self.due():
                die()
            return function(*args, **kwargs)

        return call

    def _half_arrays(self, tensors, path, metadata=None):
        due = self.due()
        self._arrays(tensors, path, metadata)
        if due:
            with builtins.open(path, "r+b") as file:
                file.truncate(os.path.getsize(path) // 2)
            die()

    def _half_figure(self, draw):
        def savefig(figure, target, **options):
            due = self.due()
            draw(figure, target, **options)
            if due:
                os.truncate(target, os.path.getsize(target) // 2)
                die()

        return savefig

    def _open(self, path, mode="r", **options):
        file = builtins.open(path, mode, **options)  # noqa: SIM115
        if mode == "a" and self.due():
            write = file.write

            def half(text):
                write(text[: len(text) // 2])
                file.flush()
                die()

            file.write = half
        return file

    def close(self):
        if self.log:
            with builtins.open(self.log, "w") as file:
                file.write(str(self.count))


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def set_clock_back(seconds: float) -> None:
    """The time of day is further back whenever somebody looks."""
    real, looks = time.time, iter(range(1, 10**9))
    time.time = lambda: real() - seconds * next(looks)


def child(order) -> int:
    os.chdir(order["cwd"])
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ["COLUMNS"] = "200"
    for name, value in order.get("jax", {}).items():
        jax.config.update(name, value)
    if "envs" in order:
        here = os.path.dirname(os.path.abspath(__file__))
        sys.path[:0] = [here, os.path.dirname(here)]
        import odd_envs

        odd_envs.register()
    deaths = Deaths(order.get("die", 0), order.get("log"))
    for name in order.get("ignore", ()):
        signal.signal(signal.Signals[name], signal.SIG_IGN)
    if "clock_back_s" in order:
        set_clock_back(order["clock_back_s"])
    if "largest_file" in order:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["largest_file"],) * 2)
    try:
        return cli.main(order["arguments"])
    finally:
        deaths.close()


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        number = os.fork()
        if number == 0:
            status = 70
            try:
                status = child(order)
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        print(json.dumps({"pid": number}), flush=True)
        _, status = os.waitpid(number, 0)
        print(json.dumps({"status": os.waitstatus_to_exitcode(status)}), flush=True)


if __name__ == "__main__":
    main()
