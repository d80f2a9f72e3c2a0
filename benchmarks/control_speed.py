"""Steps a second of TD3 beside Stable-Baselines3's and SBX's, in turns.

    python -m benchmarks.control_speed [--rounds 3] [--seconds 8] [--csv FILE]

Pendulum, two layers of 64 units, batches of 64, one environment, one seed, an update a step, after
compiling and the random steps; ours compiled with the environment and with Gymnasium on the host,
and 8 seeds in one program. The others live where `make bench-setup` puts them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time

import jax
import numpy as np

from benchmarks.peers.libraries import HOME
from benchmarks.tables import write
from benchmarks.turns import Group, Worker, serve
from idrl.config import resolve
from idrl.envs import make_env
from idrl.runs.session import make_program
from idrl.system.devices import prepare

HIDDEN, BATCH = [64, 64], 64
COLUMNS = ("who", "seeds", "steps_per_s", "least", "most", "cpu_share", "ahead_of_it")
OURS = {"idrl, compiled": ("pendulum", 1), "idrl, on the host": ("gym/Pendulum-v1", 1),
        "idrl, compiled, 8 seeds": ("pendulum", 8)}  # fmt: skip


def work(job: dict) -> None:
    heads = {"q": {"hidden": HIDDEN}, "actor": {"hidden": HIDDEN}}
    changes = {
        "heads": heads, "seeds": job["seeds"],
        "learning": {"batch_size": BATCH, "replay_capacity": 100_000},
        "training": {"steps": 10_000_000, "distributions_every_steps": 0},
    }  # fmt: skip
    prepare()
    config = resolve("td3", job["env"], changes=[changes])
    program = make_program(config, make_env(job["env"]))
    state, _ = program.start(program.seed_keys(0))
    c, box = program.cadence, [state, 0]

    def block() -> None:
        box[0], _ = program.block(box[0], np.int32(box[1]))
        box[1] = c.end(box[1])
        jax.block_until_ready(box[0].agent)

    def rows():
        first, wall, cpu = box[1], time.perf_counter(), time.process_time()
        while time.perf_counter() - wall < job["seconds"]:
            block()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        steps = (box[1] - first) * c.steps * job["seeds"]
        yield {"steps_per_s": steps / wall, "cpu_share": cpu / wall}

    block()  # compiles
    serve(rows)
    program.close()


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--csv")
    args = parser.parse_args(argv)
    workers = {
        who: Worker("benchmarks.control_speed", {"env": env, "seeds": n, "seconds": args.seconds})
        for who, (env, n) in OURS.items()
    }
    there = HOME / "sb3" / "bin" / "python"
    others = {"Stable-Baselines3": "stable_baselines3", "SBX": "sbx"}
    if not there.exists():
        print("Stable-Baselines3 and SBX: — (make bench-setup puts them into place)")
        others = {}
    for who, library in others.items():
        job = {"agent": "td3", "env": "Pendulum-v1", "library": library, "seconds": args.seconds}
        workers[who] = Worker("benchmarks.sb3_control", job, str(there))
    found: dict[str, list[dict]] = {who: [] for who in workers}
    with Group(list(workers.values())) as group:
        for _ in range(args.rounds):
            for who, worker in workers.items():
                found[who] += worker.measure() if worker in group else []
    table = []
    ours = [one["steps_per_s"] for one in found["idrl, on the host"]]
    for who, turns in found.items():
        rates = [one["steps_per_s"] for one in turns]
        if not rates:
            continue
        # Of each round, ours on the host over theirs: the same environment, stepped from Python.
        ratios = [a / b for a, b in zip(ours, rates, strict=False)]
        ahead = f"{statistics.median(ratios):.2f}" if ratios else ""
        row = {
            "who": who, "seeds": OURS.get(who, ("", 1))[1],
            "steps_per_s": round(statistics.median(rates)), "least": round(min(rates)),
            "most": round(max(rates)), "ahead_of_it": ahead,
            "cpu_share": f"{statistics.median(one['cpu_share'] for one in turns):.2f}",
        }  # fmt: skip
        table.append(row)
        print(*row.values(), sep="  ", flush=True)
    if args.csv:
        write(args.csv, table, COLUMNS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        work(json.loads(sys.argv[2]))
    else:
        main(sys.argv[1:])
