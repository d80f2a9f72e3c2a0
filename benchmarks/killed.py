"""A run that is stopped, resumed, killed and resumed, beside one that is not: are they equal?

    python -m benchmarks.killed --out DIR AGENT TASK [options of `idrl train`]

Both are made with --deterministic. The second is stopped by SIGTERM at a third of its steps, which
makes a checkpoint, resumed, killed by SIGKILL at two thirds, and resumed from that checkpoint.
Compared are all arrays of the last checkpoint, bit by bit (frames of a replay that lie in files of
their own are not in it), and the tables of episodes and evaluations. Exit status 1 where anything
differs, where the run ended before it was stopped, or where SIGTERM made no checkpoint: a run that
begins again is equal, too.
"""

from __future__ import annotations

import argparse
import atexit
import csv
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

TABLES = ("episodes.csv", "evaluations.csv")


def started(out: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "idrl.cli", "train", *arguments]
    with open(out.with_suffix(".log"), "ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


def steps_of(run: Path) -> int:
    """That its table of metrics has reached."""
    try:
        with open(run / "metrics.csv", encoding="utf-8", newline="") as file:
            return max((int(row["steps"]) for row in csv.DictReader(file)), default=0)
    except (OSError, ValueError, KeyError):
        return 0


def ended(process: subprocess.Popen[bytes], run: Path, steps: float, how: signal.Signals) -> int:
    """Send `how` to it once it has made so many steps; the steps that it had made."""
    while steps_of(run) < steps and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(how)
    if process.wait() == 0:
        sys.exit(f"{run}: the run ended before it could be stopped; give it more steps.")
    return steps_of(run)


def total_steps(run: Path) -> int:
    return tomllib.loads((run / "config.toml").read_text("utf-8"))["training"]["steps"]


def differences(a: Path, b: Path) -> tuple[int, list[str]]:
    """How many arrays were compared, and what is not the same."""
    last = [max((run / "checkpoints").iterdir(), key=lambda path: path.name) for run in (a, b)]
    if last[0].name != last[1].name:
        return 0, [f"last checkpoints {last[0].name} and {last[1].name}"]
    one, two = (load_file(path / "state.safetensors") for path in last)
    found = list(one.keys() ^ two.keys())
    for name in one.keys() & two.keys():
        x, y = (np.ascontiguousarray(arrays[name]) for arrays in (one, two))
        if x.shape != y.shape or x.tobytes() != y.tobytes():
            found.append(name)
    found += [name for name in TABLES if text_of(a / name) != text_of(b / name)]
    return len(one), sorted(found)


def text_of(table: Path) -> bytes | None:
    """Of a table, which is not there before its first row."""
    return table.read_bytes() if table.exists() else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--apart", action="store_true", help="one after the other")
    options, arguments = parser.parse_known_args()
    options.out.mkdir(parents=True)
    whole, killed = options.out / "whole", options.out / "killed"
    began = time.time()
    beside = started(whole, *arguments, "--deterministic", "--out", str(whole))
    atexit.register(beside.kill)  # where this ends before it does
    if options.apart:
        beside.wait()
    process = started(killed, *arguments, "--deterministic", "--out", str(killed))
    while not (killed / "config.toml").exists() and process.poll() is None:
        time.sleep(0.05)
    if process.poll() is not None:
        sys.exit(f"the run did not start; see {killed.with_suffix('.log')}.")
    total = total_steps(killed)
    print("stopped at", ended(process, killed, total / 3, signal.SIGTERM), flush=True)
    if not any(killed.glob("checkpoints/step-*")):
        sys.exit(f"{killed}: SIGTERM made no checkpoint; see {killed.with_suffix('.log')}.")
    process = started(killed, "--resume", str(killed))
    print("killed at", ended(process, killed, 2 * total / 3, signal.SIGKILL), flush=True)
    again = time.time()
    if started(killed, "--resume", str(killed)).wait() or beside.wait():
        print("a run failed; see", options.out)
        return 1
    count, found = differences(whole, killed)
    print(
        f"{total} steps; {count} arrays and {len(TABLES)} tables compared, {len(found)} differ",
        *found[:8], f"({time.time() - began:.0f} s, the last part {time.time() - again:.0f})",
    )  # fmt: skip
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
