"""Learning beside the peers: python -m benchmarks.peers.learning [--tasks cartpole …]

Our `dqn` against Stable-Baselines3's and rejax's with the same hyperparameters; where a library
fixes something (loss, clipping, first weights), ours is set to the same. Ten seeds each, the mean
of 20 greedy episodes. Not part of `make bench`: PyTorch's seeds take an hour or so.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.peers import work
from benchmarks.peers.libraries import ask
from benchmarks.peers.tables import write_csv

COLUMNS = ("task", "library", "like", "seed", "steps", "value")


def curves(task: str) -> list[dict[str, Any]]:
    seeds = list(range(work.FIRST_SEED, work.FIRST_SEED + work.SEEDS))
    rows = []

    def add(library: str, like: str, found: list[dict[str, Any]]) -> None:
        rows.extend({"task": task, "library": library, "like": like, **one} for one in found)
        print(task, library, like, "done", flush=True)

    for like in ("sb3", "rejax"):
        add("idrl", like, ask("idrl", {"learn": task, "like": like, "seeds": seeds}))
    add("rejax", "rejax", ask("rejax", {"learn": task, "seeds": seeds}))
    with ThreadPoolExecutor(2) as two:  # a process a core
        each = two.map(lambda seed: ask("sb3", {"learn": task, "seeds": [seed]}), seeds)
        add("sb3", "sb3", [one for found in each for one in found])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = list(work.LEARNING)
    parser.add_argument("--tasks", nargs="*", default=names, choices=names)
    for task in parser.parse_args().tasks:
        write_csv(f"learning_{task}.csv", curves(task), COLUMNS)


if __name__ == "__main__":
    main()
