"""Import, help and compile time of ours: python -m benchmarks.peers.startup"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.peers.libraries import ROOT
from benchmarks.peers.tables import write_csv

REPEATS = 3
# The default run up to its first block: building, compiling, random steps and some updates.
DEFAULT = """
import time; began = time.time()
import numpy as np
from idrl.runs import api
from idrl.config import resolve
from idrl.system.devices import prepare
from idrl.envs import make_env
from idrl.runs.session import make_program
prepare()
config = resolve(None, None, changes=[{"seeds": api.DEFAULT_SEEDS}])
program = make_program(config, make_env(config.env))
began = time.time()
state, _ = program.start(program.seed_keys(0))
state, _ = program.block(state, np.int32(0))
state, (score, _) = program.evaluate(state, np.int32(1))
score.return_mean.block_until_ready()
print(time.time() - began)
"""
IMPORT = "import time; began = time.time(); {}; print(time.time() - began)"


def once(command: list[str], cache: str) -> tuple[float, float]:
    """Seconds on the wall (what the command says, or how long it ran) and of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"XDG_CACHE_HOME": cache}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    try:
        return float(done.stdout), cpu
    except ValueError:  # the help says no time
        return wall, cpu


def main() -> None:
    python = [sys.executable, "-c"]
    measures = {
        "import idrl": ([*python, IMPORT.format("import idrl")], 2.5),
        "import all that trains": ([*python, IMPORT.format("import idrl; idrl.train")], 2.5),
        "idrl --help": ([sys.executable, "-m", "idrl.cli", "--help"], 0.5),
        "compile the default run": ([*python, DEFAULT], 15.0),
        "the same from the cache": ([*python, DEFAULT], 15.0),
    }
    rows = []
    with tempfile.TemporaryDirectory() as warm:
        once(measures["the same from the cache"][0], warm)
        for what, (command, goal) in measures.items():
            found = []
            for _ in range(REPEATS):
                with tempfile.TemporaryDirectory() as cold:
                    found.append(once(command, warm if "cache" in what else cold))
            walls, cpus = zip(*found, strict=True)
            rows.append({
                "what": what, "seconds": statistics.median(walls), "least": min(walls),
                "most": max(walls), "process_cpu_s": statistics.median(cpus), "goal": goal,
            })  # fmt: skip
            print(rows[-1], flush=True)
    write_csv("startup.csv", rows, list(rows[0]))


if __name__ == "__main__":
    main()
