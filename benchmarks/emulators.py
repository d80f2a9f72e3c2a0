"""Atari's games in one process and in several: making them, stepping them, replaying them.

    python -m benchmarks.emulators 1 4 16 --games 128 --csv FILE

Needs no GPU. The numbers are of processes, 1 being the one that asks; they take turns, in every
round in another order, and a ratio is to the first of them in the same round. What is measured:

- `ready`: seconds until all games have shown their first frame (made, and reset with seeds);
- `steps`: random steps of all games, frames/s;
- `replay`: what a resumed run does again, in steps/s of all games; journals are as long as they are
  in a run, from none to all of the steps, and those who wait for the longest count for nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np

from benchmarks.tables import write
from idrl.envs import make_env
from idrl.envs.host import NO_SEED, History
from idrl.envs.processes import make_vector

COLUMNS = ("what", "processes", "games", "game", "rounds", "median", "unit", "ratio", "cores")
UNITS = {"ready": "s", "steps": "frames/s", "replay": "steps/s"}


def measure(env, games: int, processes: int, steps: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    nobody, actions = np.full(games, NO_SEED), rng.integers(0, env.num_actions, (steps, games))
    begin = time.perf_counter()
    vector = make_vector(env, games, 0.0, processes)
    try:
        vector.step(env.no_actions(games), np.arange(games))
        found = {"ready": time.perf_counter() - begin}
        begin = time.perf_counter()
        for action in actions:
            vector.step(action, nobody)
        found["steps"] = 4 * actions.size / (time.perf_counter() - begin)
        since = rng.integers(0, steps, games)
        since[0] = 0
        begin = time.perf_counter()
        vector.replay(env, History(np.arange(games), since, actions), lambda done: None)
        found["replay"] = (actions.size - since.sum()) / (time.perf_counter() - begin)
    finally:
        vector.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("processes", nargs="+", type=int)
    parser.add_argument("--game", default="pong")
    parser.add_argument("--games", type=int, default=128)
    parser.add_argument("--steps", type=int, default=300, help="of each game")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--csv")
    args = parser.parse_args()
    env, rounds = make_env(f"atari/{args.game}"), []
    for r in range(args.rounds):
        order = (
            args.processes[r % len(args.processes) :] + args.processes[: r % len(args.processes)]
        )
        rounds.append({p: measure(env, args.games, p, args.steps) for p in order})
        print(f"round {r + 1}:", rounds[-1], flush=True)
    rows = []
    for what, unit in UNITS.items():
        for p in args.processes:
            values = [found[p][what] for found in rounds]
            ratios = [found[p][what] / found[args.processes[0]][what] for found in rounds]
            spread = f"{statistics.median(ratios):.3g} ({min(ratios):.3g} to {max(ratios):.3g})"
            median = float(f"{statistics.median(values):.4g}")
            cells = what, p, args.games, args.game, args.rounds, median, unit, spread
            rows.append(dict(zip(COLUMNS, (*cells, os.cpu_count()), strict=True)))
            print(*rows[-1].values(), sep="  ", flush=True)
    if args.csv:
        write(args.csv, rows, COLUMNS)


if __name__ == "__main__":
    main()
