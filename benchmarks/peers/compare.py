"""Speed beside the peers: python -m benchmarks.peers.compare [--tasks cartpole …] [--algos dqn …]

In every round each library takes its turn, ours first; a ratio is ours over theirs within a round,
by processor time, which a busy machine stretches least, and by the clock on the wall. Results go to
results/speed/peers*.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from typing import Any

from benchmarks.peers import tables, work
from benchmarks.peers.libraries import ALL, LIBRARIES, Missing, ask, finish, start

MANY = 8
# What ours is asked: every row that somebody else can do.
OURS = {
    "cartpole": ALL, "cartpole-2000": ("dqn",), "breakout": ("dqn", "qr-dqn"),
    "screens": ("dqn", "qr-dqn"),
}  # fmt: skip
# Threads that suit PyTorch: two of them make small networks slower, not faster.
THREADS = {"screens": 2}
MANY_SEEDS = ("cartpole", "cartpole-2000", "breakout")


def jobs_of(algos: Iterable[str], task: str, many: bool) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = [{"algo": algo, "seeds": 1} for algo in algos]
    if many and task in MANY_SEEDS and any(job["algo"] == "dqn" for job in jobs):
        jobs.append({"algo": "dqn", "seeds": MANY})
    return jobs


def ours(task: str, asked: Iterable[str], cache: str) -> list[dict[str, Any]]:
    request = {"task": task, "jobs": jobs_of(_both(OURS[task], asked), task, True)}
    return ask("idrl", request, XDG_CACHE_HOME=cache)


def theirs(library: str, task: str, asked: Iterable[str]) -> list[dict[str, Any]]:
    about = LIBRARIES[library]
    request = {"task": task, "threads": THREADS.get(task, 1)}
    algos = _both(about.algos[task], asked)
    found = ask(library, request | {"jobs": jobs_of(algos, task, about.own_seeds)})
    if not about.own_seeds and library == "sb3" and task in MANY_SEEDS:
        found.append(side_by_side(library, request))
    return found


def _both(algos: Iterable[str], asked: Iterable[str]) -> list[str]:
    return [algo for algo in algos if algo in asked]


def side_by_side(library: str, request: dict[str, Any]) -> dict[str, Any]:
    """Many seeds of a library that has one a process: two processes at a time, one a core. A seed
    after the other changes no rate."""
    job = {"jobs": [{"algo": "dqn", "seeds": 1}]}
    both = [start(library, request | job | {"threads": 1}) for _ in range(2)]
    found = [finish(each)[0] for each in both]
    summed = {
        name: sum(one[name] for one in found)
        for name in ("steps_per_s", "updates_per_s", "steps", "peak_mib")
    }
    slowest = {name: max(one[name] for one in found) for name in ("import_s", "ready_s", "seconds")}
    return found[0] | {"seeds": MANY} | summed | slowest


def measure(task: str, rounds: int, asked: Iterable[str], cache: str) -> list[dict[str, Any]]:
    """The first round finds nothing compiled: how soon a library is ready is told from it."""
    rows: list[dict[str, Any]] = []

    def add(library: str, number: int, found: list[dict[str, Any]]) -> None:
        for one in found:
            rows.append({"task": task, "library": library, "round": number, **one})
            print(
                f"{task} {number} {library:12s} {one['algo']:7s} {one['seeds']} seeds: "
                f"{one['steps_per_s']:,.0f} steps/s, ready {one['ready_s']:.1f} s",
                flush=True,
            )

    for number in range(rounds):
        add("idrl", number, ours(task, asked, cache))
        for library, about in LIBRARIES.items():
            if not _both(about.algos.get(task, ()), asked):
                continue
            try:
                add(library, number, theirs(library, task, asked))
            except Missing as error:
                print(f"{task} {number} {library}: — ({error})", flush=True)
                rows.append({"task": task, "library": library, "round": number, "why": str(error)})
            tables.write_raw(task, rows)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", nargs="*", default=list(work.TASKS), choices=list(work.TASKS))
    parser.add_argument("--algos", nargs="*", default=list(ALL), choices=list(ALL))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for task in options.tasks:
        with tempfile.TemporaryDirectory() as cache:
            measure(task, options.rounds, options.algos, cache)
        tables.summarise()


if __name__ == "__main__":
    main()
