"""The search behind the study's settings: the same draws for every agent, seeds below 100.

    python results/noisy_chain/tune.py --jobs 15 --out FOLDER

Every agent gets the same 12 settings on noisy_chain/6: the preset, and 11 drawn at random. The
setting with the smallest regret (episodes of the first 1000 that missed the goal) is the agent's in
`study.py`. Writes `tried.csv` and `chosen.json`; one core a run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import numpy as np
from study import AGENTS, measure, write

SIZE = 6
SPACE = {
    "explore.lam": (0.1, 0.5, 1.0, 2.0),  # nothing to bootstrapped-dqn
    "heads.q.prior_scale": (0.0, 0.3, 1.0, 3.0),
    "heads.q.mask_prob": (0.5, 1.0),
    "optimiser.lr": (3e-4, 1e-3, 3e-3),
    "learning.target_every_steps": (100, 1_000, 3_000),
}


def drawn(count: int) -> list[dict[str, float]]:
    rng = np.random.default_rng(0)
    draws = [{name: rng.choice(values).item() for name, values in SPACE.items()} for _ in range(64)]
    different = [dict(t) for t in dict.fromkeys(tuple(d.items()) for d in draws)]
    return [{}, *different[: count - 1]]


def settings_of(agent: str, draw: dict[str, float]) -> dict:
    nested: dict = {}
    for name, value in draw.items():
        if name == "explore.lam" and agent == "bootstrapped-dqn":
            continue
        *path, last = name.split(".")
        table = nested
        for part in path:
            table = table.setdefault(part, {})
        table[last] = value
    return nested


def run_one(agent: str, draw: dict, seeds: int, out: str, steps: int | None) -> dict:
    import idrl

    run = idrl.train(
        agent, f"noisy_chain/{SIZE}", seeds=seeds, seed=0, out=out, steps=steps,
        settings=settings_of(agent, draw),
    )  # fmt: skip
    rows = run.episodes
    found = [measure(rows.where(seed=s), SIZE, run.config.learning.gamma, 1000) for s in run.seeds]
    return {name: float(np.mean([f[name] for f in found])) for name in ("regret", "gambles")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--steps", type=int, help="per seed; default: the preset's")
    parser.add_argument("--out", required=True)
    parser.add_argument("--one", help=argparse.SUPPRESS)  # a run of its own, as JSON
    args = parser.parse_args()
    if args.one:
        print("FOUND " + json.dumps(run_one(**json.loads(args.one))), flush=True)
        return
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    cores: Queue[int] = Queue()
    for core in sorted(os.sched_getaffinity(0))[-args.jobs :]:
        cores.put(core)
    tried: list[dict] = []

    def job(agent: str, number: int, draw: dict) -> None:
        core = cores.get()
        folder = str(out / f"{agent}-{number}")
        task = dict(agent=agent, draw=draw, seeds=args.seeds, out=folder, steps=args.steps)
        command = [sys.executable, __file__, "--out", str(out), "--one", json.dumps(task)]
        done = subprocess.run(
            ["taskset", "-c", str(core), *command], capture_output=True, text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )  # fmt: skip
        cores.put(core)
        lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
        found = json.loads(lines[-1][6:]) if lines else {"regret": np.nan, "gambles": np.nan}
        if not lines:
            print(done.stderr[-500:], flush=True)
        values = {name: draw.get(name) for name in SPACE}
        tried.append({"agent": agent, "number": number, **values, **found})
        print(tried[-1], flush=True)
        write(out / "tried.csv", sorted(tried, key=lambda r: (r["agent"], r["number"])))

    draws = drawn(args.draws)
    with ThreadPoolExecutor(args.jobs) as pool:
        jobs = [(agent, i, draw) for i, draw in enumerate(draws) for agent in AGENTS]
        list(pool.map(lambda one: job(*one), jobs))
    regret = {(r["agent"], r["number"]): r["regret"] for r in tried}
    chosen = {
        agent: settings_of(agent, draws[min(range(len(draws)), key=lambda i: regret[agent, i])])
        for agent in AGENTS
    }
    (out / "chosen.json").write_text(json.dumps(chosen, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(chosen), flush=True)


if __name__ == "__main__":
    main()
