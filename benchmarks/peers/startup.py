"""Seconds until a run shows something, and what they go into: python -m benchmarks.peers.startup

    [--what small default cartpole breakout] [--seeds 1 64 256] [--repeats 3] [--csv FILE]

small     imports, the help, the programs of the default run up to its first block and evaluation
default   `idrl train`: from the start of the process to its first evaluation
cartpole  the same of `idrl train dqn cartpole`
breakout  DQN on MinAtar Breakout, the work of `work.py`, until the first block is done; on a GPU

Each with an empty cache of compiled programs and with a full one. Another version of the package is
measured where PYTHONPATH leads to it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.libraries import ROOT
from benchmarks.peers.tables import write_csv

# The default run up to its first block: building, compiling, random steps and some updates.
DEFAULT = """
import numpy as np
from idrl.runs import api
from idrl.config import resolve
from idrl.system.devices import prepare
from idrl.envs import make_env
from idrl.runs.session import make_program
prepare()
config = resolve(None, None, changes=[{"seeds": api.DEFAULT_SEEDS}])
program = make_program(config, make_env(config.env))
import time; began = time.time()
getattr(program, "ahead", lambda fresh: None)(fresh=True)  # versions before had none
state, _ = program.start(program.seed_keys(0))
state, _ = program.block(state, np.int32(0))
state, (score, _) = program.evaluate(state, np.int32(1))
score.return_mean.block_until_ready()
print(time.time() - began)
"""
IMPORT = "import time; began = time.time(); {}; print(time.time() - began)"
SMALL = {
    "import idrl": (["-c", IMPORT.format("import idrl")], 2.5),
    "import all that trains": (["-c", IMPORT.format("import idrl; idrl.train")], 2.5),
    "idrl --help": (["-m", "idrl.cli", "--help"], 0.5),
    "the default run's programs": (["-c", DEFAULT], 7.4),
}
PARTS = {
    "jaxpr_trace_duration": "tracing_s",
    "jaxpr_to_mlir_module_duration": "lowering_s",
    "backend_compile_duration": "compiling_s",
}
COLUMNS = (
    "what", "seeds", "cache", "seconds", "least", "most", "process_cpu_s", "goal", "import_s",
    "tracing_s", "lowering_s", "compiling_s", "compiling_sum_s", "other_s", "programs", "device",
    "longest",
)  # fmt: skip


# -- the process that is measured --------------------------------------------------------------


def covered(spans: list[tuple[float, float]]) -> float:
    """Seconds in at least one of the spans: they are nested, and side by side."""
    total = end = 0.0
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total


class Watch:
    """Listens to what JAX says of its own doing."""

    def __init__(self, began: float):
        import jax

        self.began, self.spans = began, {part: [] for part in PARTS.values()}  # type: ignore[var-annotated]
        self.longest: list[tuple[float, str]] = []
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, seconds: float, fun_name: str = "", **_: Any) -> None:
        part = PARTS.get(event.rsplit("/", 1)[-1])
        if part is not None:
            now = time.time()
            self.spans[part].append((now - seconds, now))
            if part == "compiling_s":
                self.longest.append((seconds, fun_name))

    def tell(self, import_s: float) -> None:
        """And end the process: what comes after is not measured."""
        import jax

        total, used = time.time() - self.began, time.process_time()
        spans = self.spans
        parts = {part: covered(found) for part, found in spans.items()}
        everything = covered([span for found in spans.values() for span in found])
        compiled = spans["compiling_s"]
        facts = {
            "seconds": total, "process_cpu_s": used, "import_s": import_s, **parts,
            "compiling_sum_s": sum(last - first for first, last in compiled),
            "other_s": total - import_s - everything, "programs": len(compiled),
            "device": jax.devices()[0].device_kind,
            "longest": "; ".join(f"{name} {s:.1f}" for s, name in sorted(self.longest)[:-4:-1]),
        }  # fmt: skip
        print(json.dumps(facts), flush=True)
        os._exit(0)


def child(request: dict[str, Any]) -> None:
    watch = Watch(request["began"])
    from idrl.runs import api

    import_s = time.time() - request["began"]
    if request["what"] == "breakout":
        from benchmarks.peers import work
        from benchmarks.peers.ours import program_of, runner

        runner(program_of(work.BREAKOUT, "dqn", request["seeds"]), 0)
        watch.tell(import_s)
        return
    import idrl

    class Shown(idrl.Callback):
        def on_evaluation(self, evaluation: Any) -> None:
            watch.tell(import_s)

    task = () if request["what"] == "default" else ("dqn", request["what"])
    with tempfile.TemporaryDirectory() as folder:
        api.train(*task, out=os.path.join(folder, "run"), callbacks=[Shown()])


# -- the process that measures -----------------------------------------------------------------


def once(command: list[str], cache: str) -> dict[str, Any]:
    """What the command says of itself: facts, or seconds; else how long it ran."""
    before, began = os.times(), time.time()
    done = subprocess.run(
        [sys.executable, *(part.replace("BEGAN", str(began)) for part in command)],
        cwd=ROOT, env=os.environ | {"XDG_CACHE_HOME": cache}, stdout=subprocess.PIPE, text=True,
        check=True,
    )  # fmt: skip
    wall, after = time.time() - began, os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    said = done.stdout.strip().rsplit("\n", 1)[-1]
    if said.startswith("{"):
        return json.loads(said)
    with contextlib.suppress(ValueError):  # the help says no time
        wall = float(said)
    return {"seconds": wall, "process_cpu_s": cpu}


def measured(about: dict[str, Any], command: list[str], repeats: int) -> list[dict[str, Any]]:
    """Medians with an empty cache, and with the one that the first run has filled."""
    found: dict[str, list[dict[str, Any]]] = {"empty": [], "full": []}
    with tempfile.TemporaryDirectory() as warm:
        for turn in range(repeats):
            with tempfile.TemporaryDirectory() as cold:
                found["empty"].append(once(command, cold if turn else warm))
            found["full"].append(once(command, warm))
    rows = []
    for cache, facts in found.items():
        walls = [one["seconds"] for one in facts]
        middle = {
            key: value if isinstance(value, str) else statistics.median(one[key] for one in facts)
            for key, value in facts[0].items()
        }
        rows.append(about | {"cache": cache, "least": min(walls), "most": max(walls)} | middle)
        print(rows[-1], flush=True)
    return rows


def main(argv: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    choices = ["small", "default", "cartpole", "breakout"]
    parser.add_argument("--what", nargs="+", choices=choices, default=choices[:3])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 64, 256], help="of breakout")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--csv", default="startup.csv", help="a file in results/speed")
    args = parser.parse_args(argv)
    rows = []
    for what in args.what:
        if what == "small":
            for name, (command, goal) in SMALL.items():
                rows += measured({"what": name, "goal": goal}, command, args.repeats)
            continue
        for seeds in args.seeds if what == "breakout" else [8 if what == "default" else 1]:
            request = json.dumps({"what": what, "seeds": seeds})[:-1] + ', "began": BEGAN}'
            command = ["-m", "benchmarks.peers.startup", "child", request]
            rows += measured({"what": what, "seeds": seeds}, command, args.repeats)
    write_csv(args.csv, rows, COLUMNS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(json.loads(sys.argv[2]))
    else:
        main(sys.argv[1:])
