"""How fast this machine is: a study's own run, for twenty seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import tomli_w

from idrl.config import RunConfig
from idrl.envs import family_of
from idrl.schema import to_dict
from idrl.storage.records import read_table
from idrl.sweep.job import Plugins
from idrl.sweep.machine import gpus
from idrl.sweep.speeds import Hardware, Speed
from idrl.sweep.work import per_step
from idrl.system import plugins
from idrl.system.devices import cores

PROBE_S = 20.0
_AT_MOST_S = 120.0  # a large network takes longer to compile than that


def probe(configs: list[RunConfig]) -> Hardware:
    """Train the first run of every family for a while; families that showed no step have no row."""
    found = gpus()
    unit, units = ("GPU", len(found)) if found else ("core", cores())
    rows = []
    for family in dict.fromkeys(family_of(c.env) for c in configs):
        config = next(c for c in configs if family_of(c.env) == family)
        speed = _speed_of(config)
        if speed:
            rows.append(Speed("this", unit, config.agent, family, 1, speed, per_step(config)))
    return Hardware(found[0][0] if found else "this machine", unit, units, own=tuple(rows))


def _speed_of(config: RunConfig) -> float:
    """Steps a second of one seed on one core or GPU, compilation left out; 0 where none came."""
    # Rows of metrics often, and updates soon: the clock runs between two rows.
    often = max(config.learning.update_every_steps * 50, config.training.envs)
    starts = min(config.learning.learning_starts_steps, 10 * often)
    config = replace(
        config, seeds=1, training=replace(config.training, log_every_steps=often),
        learning=replace(config.learning, learning_starts_steps=starts),
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="idrl-probe-") as scratch:
        file, out = Path(scratch) / "config.toml", Path(scratch) / "run"
        file.write_text(tomli_w.dumps(to_dict(config)), encoding="utf-8")
        core = str(min(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else "-"
        places = "-" if gpus() else core
        command = [sys.executable, "-m", "idrl.sweep.child", str(os.getpid()), places]
        needed = Plugins(plugins.loaded(), tuple(plugins.places()))
        process = subprocess.Popen(
            [*command, "train", "--config", str(file), "--out", str(out), *needed.options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=needed.environment(),
        )  # fmt: skip
        try:
            return _watch(process, out)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def _watch(process: subprocess.Popen, out: Path) -> float:
    start = time.monotonic()
    while process.poll() is None and time.monotonic() < start + _AT_MOST_S:
        if time.monotonic() > start + PROBE_S and len(read_table(out / "timings.csv")) >= 3:
            break
        time.sleep(0.2)
    rows = read_table(out / "timings.csv")
    if len(rows) < 2:
        return 0.0
    made = int(rows[-1]["steps"]) - int(rows[0]["steps"])
    return made / max(sum(float(row["seconds"]) for row in rows[1:]), 1e-9)
