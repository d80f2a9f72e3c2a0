"""How long a run takes to get going, from the command on.

    python -m benchmarks.start c51-ids atari/pong --steps 100000 --csv FILE \
        --set training.envs=128 learning.precision=mixed

Seconds since the process was started, until

- `stepping`: the first environments have made a step, or the first of the random steps are done;
- `random`: all steps before learning are done;
- `learning`: the first updates are under way, their programs compiled;
- `steps`: so many steps are done, as `--steps` says.

A run is one of the whole length, stopped there. Each round has two: `cold` compiles everything, and
`warm` finds it in the cache. A block is about a second, and so is the resolution.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import idrl
from benchmarks.tables import write

COLUMNS = ("agent", "env", "what", "cache", "seconds", "spread", "rounds", "settings", "cores")
PARTS = ("stepping", "random", "learning", "steps")


class Clock:
    """A display that shows nothing, and stops the run after so many steps."""

    def __init__(self, began: float, steps: int):
        self.began, self.steps = began, steps
        self.seen: dict[str, float] = {}

    def note(self, what: str) -> None:
        self.seen.setdefault(what, round(time.time() - self.began, 2))

    def start(self) -> None:
        pass

    def busy(self, doing: Any, config: Any) -> None:
        if doing.done > 0:
            self.note("stepping")
        if doing.what == "learning":
            self.note("learning")
        if doing.done >= self.steps:
            self.note("steps")

    def update(self, progress: Any, config: Any) -> None:
        self.note("random")  # what comes first is the end of the random steps
        if progress.steps >= self.steps:
            self.note("steps")

    def over(self) -> bool:
        return "steps" in self.seen


def worker(job: dict[str, Any]) -> None:
    clock = Clock(job["began"], job["steps"])
    idrl.train(
        job["agent"], job["env"], settings=job["set"], out=job["out"], display=clock,
        until=clock.over,
    )  # fmt: skip
    print(json.dumps(clock.seen))


def started(job: dict[str, Any], cache: str, out: Path) -> dict[str, float]:
    """A run in a process of its own."""
    job = {**job, "out": str(out), "began": time.time()}
    command = [sys.executable, "-m", "benchmarks.start", "worker", json.dumps(job)]
    env = os.environ | {"XDG_CACHE_HOME": cache}  # where idrl's is; JAX's own keeps fewer programs
    env.pop("JAX_COMPILATION_CACHE_DIR", None)
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("agent")
    parser.add_argument("env")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--csv")
    args = parser.parse_args(argv)
    job = {name: getattr(args, name) for name in ("agent", "env", "steps", "set")}
    found: dict[str, list[dict[str, float]]] = {"cold": [], "warm": []}
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as folder:
            for cache, runs in found.items():
                runs.append(started(job, folder, Path(folder) / cache))
                print(cache, runs[-1], flush=True)
    rows = []
    for cache, runs in found.items():
        for what in PARTS:
            values = [seen[what] for seen in runs if what in seen]
            if not values:  # a task without random steps, say
                continue
            cells = (
                args.agent, args.env, what, cache, round(statistics.median(values), 1),
                f"{min(values):.1f}–{max(values):.1f}", len(values), " ".join(args.set),
                os.cpu_count(),
            )  # fmt: skip
            rows.append(dict(zip(COLUMNS, cells, strict=True)))
            print(*rows[-1].values(), sep="  ")
    if args.csv:
        write(args.csv, rows, COLUMNS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(json.loads(sys.argv[2]))
    else:
        main(sys.argv[1:])
