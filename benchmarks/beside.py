"""Evaluations beside training, and training that waits for them: seconds of the same run.

    python -m benchmarks.beside --sleep-ms 4 --set training.envs=4 training.env_processes=4 \
        evaluation.every_steps=2000 evaluation.steps=2000 evaluation.envs=4
    python -m benchmarks.beside c51-ids atari/pong --steps 600000 --set training.envs=128 \
        evaluation.every_steps=100000 evaluation.steps=50000 learning.precision=mixed

The two take turns, in every round in the other order; a first, shorter run of each compiles.
Seconds are of a whole run, from before its environments are made to the end of its last evaluation,
and a ratio is within a round. Where the tables of evaluations differ the exit status is 1, but on a
GPU without `--deterministic`, which repeats no run. `--sleep-ms` is for environments of Gymnasium:
every step of theirs takes that long, and no processor time.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium
import jax

import idrl
from benchmarks.tables import write

COLUMNS = ("agent", "env", "round", "beside_s", "waiting_s", "ratio", "evaluations", "equal", "set")


class Slow(gymnasium.Wrapper):
    def __init__(self, env: gymnasium.Env, seconds: float):
        super().__init__(env)
        self.seconds = seconds

    def step(self, action):
        time.sleep(self.seconds)
        return self.env.step(action)


def made(
    args: argparse.Namespace, steps: int, beside: bool, out: Path
) -> tuple[float, list[dict[str, str]]]:
    """The seconds of a run, and its evaluations."""
    task = args.env
    if args.sleep_ms:

        def task():
            return Slow(gymnasium.make(args.env.removeprefix("gym/")), args.sleep_ms / 1000)

    begin = time.perf_counter()
    run = idrl.train(
        args.agent, task, steps=steps, seed=args.seed, out=out,
        settings=[*args.set, f"evaluation.beside={str(beside).lower()}"],
        deterministic=args.deterministic,
    )  # fmt: skip
    seconds = time.perf_counter() - begin
    with open(run.path / "evaluations.csv", encoding="utf-8", newline="") as file:
        return seconds, list(csv.DictReader(file))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("agent", nargs="?", default="dqn-ids")
    parser.add_argument("env", nargs="?", default="gym/CartPole-v1")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sleep-ms", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--csv")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    different = False
    with tempfile.TemporaryDirectory() as folder:
        for r in range(args.rounds + 1):
            steps = args.steps if r else args.steps // 4
            found = {
                beside: made(args, steps, beside, Path(folder) / f"{r}-{beside}")
                for beside in ((True, False) if r % 2 else (False, True))
            }
            (seconds, tables) = zip(found[True], found[False], strict=True)
            equal = tables[0] == tables[1]
            different |= not equal
            said = f"beside {seconds[0]:.1f} s, waiting {seconds[1]:.1f} s"
            same = f"{len(tables[0])} evaluations {'equal' if equal else 'DIFFER'}"
            print(f"round {r}" if r else "compiling", said, same, sep="; ", flush=True)
            if r:
                ratio = round(seconds[0] / seconds[1], 4)
                each = (round(x, 2) for x in seconds)
                cells = (args.agent, args.env, r, *each, ratio, len(tables[0]), equal)
                rows.append(dict(zip(COLUMNS, (*cells, " ".join(args.set)), strict=True)))
                if args.csv:
                    write(args.csv, rows)
    if rows:
        ratios = [row["ratio"] for row in rows]
        spread = f"({min(ratios):.3g} to {max(ratios):.3g})"
        print(f"beside / waiting: {statistics.median(ratios):.3g} {spread}")
    repeats = args.deterministic or jax.default_backend() == "cpu"
    return int(different and repeats)


if __name__ == "__main__":
    sys.exit(main())
