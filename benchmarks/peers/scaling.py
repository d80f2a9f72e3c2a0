"""How our cost grows with the work: python -m benchmarks.peers.scaling [--only seeds batch …]

`dqn` on CartPole unless said otherwise. A cost is the processor time per unit of work: on a shared
machine it varies less than the clock on the wall, which stands beside it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace
from typing import Any

from benchmarks.peers import work
from benchmarks.peers.ours import program_of, runner
from benchmarks.peers.tables import write_csv

STRETCHES = 3
COLUMNS = ("what", "value", "unit", "wall_us", "cpu_us", "spread", "wall_growth", "cpu_growth")

# what: values, the unit of work, how many units one update of all seeds is
SERIES = {
    "seeds": ((1, 2, 4, 8, 16, 32, 64), "update of a seed"),
    "replay": ((10_000, 100_000, 1_000_000), "update"),
    "k": ((1, 2, 5, 10, 20, 50), "update and head"),
    "batch": ((32, 128, 512, 1_024), "transition learned from"),
}


def build(what: str, value: int):
    """A program, and the units of work in one update."""
    task, agent, seeds, change, units = work.CARTPOLE, "dqn", 1, {}, 1
    if what == "seeds":
        seeds = units = value
    elif what == "replay":
        task = replace(task, replay=value)
    elif what == "batch":
        task, units = replace(task, batch=value), value
    else:
        agent, units = "bootstrapped-dqn", value
        change = {"heads": {"q": {"k": value}}, "evaluate": {"kind": "greedy"}}
        if value == 1:  # there is nothing to draw a head from
            agent, change = "ddqn", {}
    return program_of(task, agent, seeds, change), units


def measure(what: str, value: int) -> dict[str, Any]:
    program, units = build(what, value)
    steps = max(2_000, 40_000 // units)
    stretch = runner(program, steps)
    wall, cpu = [], []
    for _ in range(STRETCHES):
        began, used = time.perf_counter(), time.process_time()
        updates = stretch() / work.CARTPOLE.update_every
        wall.append(1e6 * (time.perf_counter() - began) / updates / units)
        cpu.append(1e6 * (time.process_time() - used) / updates / units)
    middle = statistics.median(wall)
    return {
        "what": what, "value": value, "unit": SERIES[what][1], "wall_us": middle,
        "cpu_us": statistics.median(cpu), "spread": (max(wall) - min(wall)) / middle,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", default=list(SERIES), choices=list(SERIES))
    rows = []
    for what in parser.parse_args().only:
        series = [measure(what, value) for value in SERIES[what][0]]
        for (
            row
        ) in series:  # 1: as much a unit as at the smallest; above: grows faster than the work
            row["wall_growth"] = row["wall_us"] / series[0]["wall_us"]
            row["cpu_growth"] = row["cpu_us"] / series[0]["cpu_us"]
            print({key: row[key] for key in COLUMNS}, flush=True)
        rows += series
        write_csv("scaling.csv", rows, COLUMNS)


if __name__ == "__main__":
    main()
