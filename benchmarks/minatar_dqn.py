"""Our `dqn` on MinAtar beside the same DQN in Stable-Baselines3, by the same rules.

    python -m benchmarks.minatar_dqn --out DIR [--games breakout asterix] [--seeds 5] [--seed 100] \
        [--steps 300000] [--what both|ours|sb3|table] [--limit 540] [--detach] [--sb3 PYTHON] \
        [--tiny]

The settings are those of MinAtar's own example (Young & Tian 2019): an update a frame, RMSProp.
Ours is the agent as it ships; the comparison is refused where its numbers are not these. The rules
are our game's for both: its smallest action set, sticky actions 0.1, no time limit. Both are judged
by the return of training episodes that ended in the last sixth of the frames (ε is 0.1 there), and
by fifty greedy episodes with the last weights, played by one evaluator.

Stable-Baselines3 has a process for each seed, all side by side and single-threaded on the CPU;
those that are not done after `--limit` seconds are ended and the table says how far they got.
`--detach` starts them and returns; `--what table` waits for them and writes the table. Every row is
on the disk as soon as it is known. PYTHON has stable-baselines3, PyTorch, JAX and gymnax; without
`--sb3` it is `.peers/minatar` (python -m benchmarks.peers.install minatar), or this one.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

ROOT = Path(__file__).parents[1]
SETTINGS = {
    "lr": 2.5e-4, "decay": 0.95, "eps_outside": 0.01, "replay": 100_000, "starts": 5_000,
    "batch": 32, "gamma": 0.99, "target_every": 1_000, "eps_end": 0.1, "eps_steps": 100_000,
}  # fmt: skip
TINY = {"replay": 1_000, "starts": 200, "target_every": 100, "eps_steps": 400}
EPISODES = ("who", "game", "seed", "steps", "return", "length")
SCORES = ("who", "game", "seed", "steps", "greedy", "length", "unfinished", "seconds")
OURS, THEIRS = "idrl", "Stable-Baselines3"
LAST = 6  # the last sixth of the frames: 50,000 of 300,000


def job_of(options: argparse.Namespace, game: str) -> dict[str, Any]:
    return {
        "game": game, "env": f"minatar/{game}", "out": str(options.out), "steps": options.steps,
        "look_every": max(1, options.steps // LAST), "episodes": 5 if options.tiny else 50,
        "settings": SETTINGS | (TINY if options.tiny else {}),
    }  # fmt: skip


def start_sb3(options: argparse.Namespace) -> list[subprocess.Popen]:
    """A process for each game and seed, each on a core of its own where there are enough."""
    jobs = [
        job_of(options, game) | {"seed": options.seed + number}
        for number in range(options.seeds)
        for game in options.games
    ]
    cores = sorted(os.sched_getaffinity(0))
    alone = len(cores) > len(jobs)
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {
        "PYTHONPATH": path, "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    }  # fmt: skip
    processes = []
    with open(options.out / "sb3.log", "a") as log:
        for index, job in enumerate(jobs):
            job["core"] = cores[-1 - index] if alone else None
            command = [options.sb3, "-m", "benchmarks.sb3_minatar", json.dumps(job)]
            how = {"stdout": log, "stderr": log, "start_new_session": options.detach}
            processes.append(subprocess.Popen(command, cwd=ROOT, env=env, **how))
    return processes


def start_ours(options: argparse.Namespace, runs: Path) -> list[subprocess.Popen]:
    """A process for each game, all seeds in one program."""
    change = {}
    if options.tiny:
        change = {
            "learning": {
                "replay_capacity": TINY["replay"], "learning_starts_steps": TINY["starts"],
                "target_every_steps": TINY["target_every"],
            },
            "explore": {"decay_steps": TINY["eps_steps"]},
        }  # fmt: skip
    env = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    processes = []
    for game in options.games:
        more = {"seed": options.seed, "seeds": options.seeds, "run": str(runs / game)}
        job = job_of(options, game) | more | {"change": change}
        command = [sys.executable, "-m", "benchmarks.minatar_ours", json.dumps(job)]
        processes.append(subprocess.Popen(command, cwd=ROOT, env=env))
    return processes


def wait(options: argparse.Namespace, processes: list[subprocess.Popen], until: float) -> None:
    """Until all of Stable-Baselines3's seeds have their last score, or the time is over."""
    wanted = len(options.games) * options.seeds
    while time.monotonic() < until:
        done = [row for row in read(options.out / "scores.csv", SCORES) if row["who"] == THEIRS]
        if sum(int(row["steps"]) == options.steps for row in done) >= wanted:
            return
        if processes and all(process.poll() is not None for process in processes):
            break
        time.sleep(1)
    for process in processes:
        process.terminate()


def read(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file, columns))
    return [row for row in rows if row[columns[-1]]]  # a last line may be half written


def summarise(options: argparse.Namespace) -> str:
    """`curves.csv`, `seeds.csv` and the table."""
    episodes = read(options.out / "episodes.csv", EPISODES)
    scores = read(options.out / "scores.csv", SCORES)
    last, bins = options.steps // LAST, max(1, options.steps // 30)
    curves, seeds = [], []
    for who, game, seed in dict.fromkeys((r["who"], r["game"], r["seed"]) for r in episodes):
        same = [r for r in episodes if (r["who"], r["game"], r["seed"]) == (who, game, seed)]
        steps = np.array([int(row["steps"]) for row in same])
        returns = np.array([float(row["return"]) for row in same])
        for end in range(bins, options.steps + 1, bins):
            inside = (steps > end - bins) & (steps <= end)
            if inside.any():
                curves.append((who, game, seed, end, f"{returns[inside].mean():.4g}", inside.sum()))
        looks = [r for r in scores if (r["who"], r["game"], r["seed"]) == (who, game, seed)]
        final = looks[-1] if looks else {}
        reached = max(int(steps.max()), int(final.get("steps", 0)))
        inside = steps > reached - last
        seeds.append({
            "who": who, "game": game, "seed": seed, "frames": reached,
            "training": float(returns[inside].mean()), "episodes": int(inside.sum()),
            "greedy": float(final.get("greedy", "nan")), "greedy_at": final.get("steps", ""),
            "unfinished": final.get("unfinished", ""), "seconds": final.get("seconds", ""),
        })  # fmt: skip
    write(
        options.out / "curves.csv", ("who", "game", "seed", "frames", "return", "episodes"), curves
    )
    if seeds:
        write(options.out / "seeds.csv", list(seeds[0]), [list(row.values()) for row in seeds])
    text = table(options, seeds)
    (options.out / "table.md").write_text(text)
    return text


def write(path: Path, columns, rows) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def table(options: argparse.Namespace, seeds: list[dict[str, Any]]) -> str:
    lines = [
        "| game | who | seeds | frames | training return | greedy return | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for game in options.games:
        found: dict[str, dict[str, list[float]]] = {}
        for who in (OURS, THEIRS):
            mine = [row for row in seeds if (row["game"], row["who"]) == (game, who)]
            if not mine:
                lines.append(f"| {game} | {who} | 0 | — | — | — | — |")
                continue
            found[who] = {m: [row[m] for row in mine] for m in ("training", "greedy")}
            frames = min(row["frames"] for row in mine)
            seconds = max(float(row["seconds"] or "nan") for row in mine)
            shown = " | ".join(mean_of(found[who][m]) for m in ("training", "greedy"))
            lines.append(f"| {game} | {who} | {len(mine)} | {frames:,} | {shown} | {seconds:.0f} |")
        if len(found) == 2:
            shown = " | ".join(
                difference(found[OURS][m], found[THEIRS][m]) for m in ("training", "greedy")
            )
            lines.append(f"| {game} | difference | | | {shown} | |")
    lines += [
        "",
        "Mean over seeds ± half of the 95% interval (Student; of the difference, Welch's). "
        f"Training return: of episodes that ended in the last {options.steps // LAST:,} frames. "
        "Greedy: the first episode of each of fifty games, last weights. Frames: of the slowest "
        "seed.",
        "",
    ]
    return "\n".join(lines)


def mean_of(values: list[float]) -> str:
    half = float("nan")
    if len(values) > 1:
        half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return f"{np.mean(values):.2f} ± {half:.2f}"


def difference(ours: list[float], theirs: list[float]) -> str:
    mean = np.mean(ours) - np.mean(theirs)
    if min(len(ours), len(theirs)) < 2:
        return f"{mean:+.2f}"
    interval = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    return f"{mean:+.2f} ({interval.low:+.2f} to {interval.high:+.2f})"


def main() -> None:
    began = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--games", nargs="+", default=["breakout", "asterix"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--what", choices=("both", "ours", "sb3", "table"), default="both")
    parser.add_argument("--limit", type=float, default=540, help="seconds for Stable-Baselines3")
    parser.add_argument("--detach", action="store_true", help="with --what sb3: do not wait")
    parser.add_argument("--sb3", help="a Python with stable-baselines3")
    parser.add_argument("--tiny", action="store_true", help="a small replay, few random steps")
    options = parser.parse_args()
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    own = ROOT / ".peers" / "minatar" / "bin" / "python"
    options.sb3 = options.sb3 or (str(own) if own.exists() else sys.executable)
    theirs = start_sb3(options) if options.what in ("both", "sb3") else []
    if options.what in ("both", "ours"):
        with tempfile.TemporaryDirectory() as runs:
            failed = [each.args for each in start_ours(options, Path(runs)) if each.wait()]
        if failed:
            print(f"ours failed: {failed}", flush=True)
    if options.what == "sb3" and options.detach:
        return
    if options.what != "ours":
        wait(options, theirs, began + options.limit)
    print(summarise(options), flush=True)


if __name__ == "__main__":
    main()
