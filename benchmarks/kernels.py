"""What a GPU does in an update at Atari's size, or in an iteration of a compiled task: its kernels
and what each takes.

    python -m benchmarks.kernels c51-ids/128/mixed [AGENT/ENVS/PRECISION...] \
        [--compiled c51-ids/minatar/breakout/10 [AGENT/TASK/SEEDS...]] [--out DIR]

Beside the table in DIR: `NAME.csv`, a row for every kernel, and `NAME.hlo.gz`, the compiled
program, in which a kernel's name says what it computes. Updates draw from a replay that no game has
written: timing does not depend on its contents. Programs are compiled side by side and measured one
at a time.
"""

from __future__ import annotations

import argparse
import collections
import csv
import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks import atari
from benchmarks.turns import Group, Row, Worker, serve
from idrl.config import resolve
from idrl.envs import make_env
from idrl.runs.session import make_program
from idrl.system.devices import prepare
from idrl.training.hosted import fleet as fleets
from idrl.training.program import learning_view

UPDATES = 64  # between two looks at the clock
ITERATIONS = 512


class Update:
    """Updates of an Atari run, without environments."""

    def __init__(self, job: Row):
        agent, envs, precision = job["what"].split("/")
        self.program: Any = atari.program_of(agent, "pong", int(envs), precision, 1_000_000)
        self.count = max(1, int(envs) // 4)
        self.turns = max(1, UPDATES // self.count)
        self.each = self.turns * self.count
        self.state = atari.blank_state(self.program)
        fleet = fleets.blank(self.program.env, self.program.envs)
        self.sums = self.program._zeros(self.state, fleet)[1]
        self.call()

    def call(self) -> None:
        for _ in range(self.turns):
            self.state, self.sums = self.program._improve(
                self.state, self.sums, self.count, self.program.replay_rows, 0
            )
        jax.block_until_ready(self.state.agent.params)

    def text(self) -> str:
        given = learning_view(self.state), self.sums, np.int32(0), np.int32(0)
        return self.program._update(self.count).jitted.lower(*given).compile().as_text()


class Iteration:
    """Whole iterations of a compiled task."""

    def __init__(self, job: Row):
        agent, family, task, seeds = job["what"].split("/")
        changes = {
            "seeds": int(seeds), "learning": {"update_every_steps": 4},
            "training": {"envs": 4, "distributions_every_steps": 0},
        }  # fmt: skip
        config = resolve(agent, f"{family}/{task}", changes=[changes])
        self.program: Any = make_program(config, make_env(config.env))
        self.program.ahead(fresh=True)
        self.state, _ = self.program.start(self.program.seed_keys(0))
        self.run = self.program._run(ITERATIONS)
        self.each = ITERATIONS
        self.call()

    def call(self) -> None:
        self.state, out = self.run(self.state, np.int32(0))
        jax.block_until_ready(out)

    def text(self) -> str:
        return self.run.jitted.lower(self.state, np.int32(0)).compile().as_text()


def kernels(call: Any) -> dict[str, list[float]]:
    """Microseconds of every kernel that `call` starts."""
    found: dict[str, list[float]] = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            call()
        for path in Path(folder).rglob("*.xplane.pb"):
            for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
                if not plane.name.startswith("/device:"):
                    continue
                for line in plane.lines:
                    if not line.name.startswith("Stream"):
                        continue
                    for event in line.events:
                        found[event.name].append(event.duration_ns / 1e3)
    return found


def rows(job: Row, subject: Any):
    times = atari.repeated(subject.call, job["seconds"])
    each = statistics.median(times) / subject.each * 1e6
    out, name = Path(job["out"]), job["what"].replace("/", "-")
    found = kernels(subject.call)
    table = sorted(((sum(v), len(v), k) for k, v in found.items()), reverse=True)
    with open(out / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("kernel", "times", "us_each", "us"))
        for total, count, kernel in table:
            writer.writerow(
                (kernel, f"{count / subject.each:.3g}", f"{total / count:.2f}",
                 f"{total / subject.each:.2f}")
            )  # fmt: skip
    with gzip.open(out / f"{name}.hlo.gz", "wt", encoding="utf-8") as text:
        text.write(subject.text())
    yield {
        "what": job["what"], "us": round(each, 1), "spread": atari.spread(
            [t / subject.each * 1e6 for t in times]
        ),
        "busy_us": round(sum(t for t, *_ in table) / subject.each, 1),
        "kernels": round(sum(n for _, n, _ in table) / subject.each, 1),
        "start_s": round(subject.start_s), "device": jax.local_devices()[0].device_kind,
        "jax": jax.__version__,
        "top": [f"{t / subject.each:.1f} us in {n / subject.each:.2g} {k[:60]}" for t, n, k in
                table[: job["top"]]],
    }  # fmt: skip


def worker(job: Row) -> None:
    prepare()
    began = time.perf_counter()
    subject = (Iteration if job["compiled"] else Update)(job)
    subject.start_s = time.perf_counter() - began
    serve(lambda: rows(job, subject))
    os._exit(0)  # threads of environments have nothing to give back


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("what", nargs="*")
    parser.add_argument("--compiled", nargs="+", default=[])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--top", type=int, default=24, help="kernels to print")
    parser.add_argument("--out", default=".")
    args = parser.parse_args(argv)
    os.makedirs(args.out, exist_ok=True)
    same = {"seconds": args.seconds, "out": args.out, "top": args.top}
    jobs = [{"what": what, "compiled": False, **same} for what in args.what]
    jobs += [{"what": what, "compiled": True, **same} for what in args.compiled]
    with Group([Worker("benchmarks.kernels", job) for job in jobs]) as group:
        for one in group:
            for row in one.measure():
                top = row.pop("top")
                print(json.dumps(row), *top, sep="\n  ", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(json.loads(sys.argv[2]))
    else:
        main(sys.argv[1:])
