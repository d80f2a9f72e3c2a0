"""Atari on this machine: training as it runs, and its parts alone: updates, acting, emulators.

    python -m benchmarks.atari [AGENT/ENVS/PRECISION[/deterministic][/processes=N][/host]...] \
        [--game pong] [--seconds 5] [--together 6] [--csv FILE]        # c51-ids/64/full

Frames are the emulator's, four a step; an update per 16 frames. All four are measured in the same
process, one after the other. `whole` is the training loop itself, without evaluations, once all is
compiled, with the frames going to the run's segments; `updates` draws from a full replay;
`acting` is from frames on the host to actions on the host. With `host` the replay is in host
memory, and only `whole` is measured. Every row is the median of repeats. So many programs as
`--together` says are compiled side by side before the first of them is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tables import write
from benchmarks.turns import Group, Row, Worker, serve
from idrl.config import resolve
from idrl.envs import make_env
from idrl.runs.session import make_program, prepare_memory
from idrl.storage.segments import Segments
from idrl.system.devices import prepare

COLUMNS = (
    "what", "agent", "game", "envs", "precision", "value", "unit", "spread", "more", "device", "jax"
)  # fmt: skip


def program_of(
    agent: str,
    game: str,
    envs: int,
    precision: str,
    capacity: int,
    processes: int = 0,
    place: str = "device",
):
    learning = {
        "precision": precision, "learning_starts_steps": 64 * envs, "replay_capacity": capacity,
        "replay_place": place,
    }  # fmt: skip
    changes = {
        "learning": learning,
        "training": {
            "envs": envs,
            "steps": 2_000_000_000,
            "distributions_every_steps": 0,
            "env_processes": processes,
        },
        "evaluation": {"every_steps": 2_000_000_000},
    }
    config = resolve(agent, f"atari/{game}", changes=[changes])
    prepare_memory(config)
    return make_program(config, make_env(config.env))


def processes_of(note: str) -> int:
    """That step the games: as `processes=N` says, or as the games do."""
    return next((int(word.split("=")[1]) for word in note.split(", ") if "=" in word), 0)


def blank_state(program):
    """With all rows of the replay written, none of them from a game: speed does not look."""
    like = program.like()
    like = like._replace(worlds=like.worlds.waiting)
    state = jax.jit(lambda: jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like))()
    agent = jax.jit(jax.vmap(program.agent.init))(
        jax.random.split(jax.random.key(0), 1), jnp.zeros((1, 8, 84, 84, 4), jnp.uint8)
    )
    replay = state.replay._replace(facts=state.replay.facts.at[..., 3].set(1.0))
    return state._replace(agent=agent, replay=replay, failed=state.failed - 1)


def settled(program, state, outside):
    """A state whose games are where they were."""
    program.now = outside._replace(waiting=state.worlds)
    return state._replace(worlds=program.now)


def repeated(call, seconds: float, least: int = 3) -> list[float]:
    call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return times


class Bench:
    """One program, its parts measured one after the other."""

    def __init__(self, job: Row):
        self.job, self.envs, self.seconds = job, job["envs"], job["seconds"]
        began = time.perf_counter()
        self.program: Any = program_of(
            job["agent"],
            job["game"],
            self.envs,
            job["precision"],
            job["capacity"],
            processes_of(job["note"]),
            "host" if ", host" in job["note"] else "device",
        )
        self.folder = tempfile.TemporaryDirectory()
        self.tape = Segments(Path(self.folder.name), [], 0)
        self.program.frames.tape = self.tape.append
        self.state, _ = self.program.start(self.program.seed_keys(0))
        self.iteration = 0
        for _ in range(2):
            self._block()
        self.start_s = time.perf_counter() - began

    def rows(self):
        parts = (self.whole, self.updates, self.acting, self.emulators)
        parts = parts[:1] if ", host" in self.job["note"] else parts
        for part in parts:
            if part.__name__ != self.job.get("only", part.__name__):
                continue
            values, unit = part()
            yield {
                **{name: self.job[name] for name in ("agent", "game", "envs")},
                "precision": self.job["precision"] + self.job["note"], "what": part.__name__,
                "value": float(f"{statistics.median(values):.4g}"), "unit": unit,
                "spread": spread(values), "more": f"start {self.start_s:.0f} s; {memory()}",
                "device": jax.local_devices()[0].device_kind, "jax": jax.__version__,
            }  # fmt: skip

    def _block(self) -> int:
        c = self.program.cadence
        end = c.end(self.iteration)
        self.state, _ = self.program.block(self.state, np.int32(self.iteration))
        frames, self.iteration = 4 * (end - self.iteration) * c.steps, end
        return frames

    def whole(self):
        rates, until = [], time.perf_counter() + self.seconds
        while time.perf_counter() < until or len(rates) < 3:
            begin = time.perf_counter()
            frames = self._block()
            rates.append(frames / (time.perf_counter() - begin))
        return rates, "frames/s"

    def updates(self):
        """From a replay whose rows are all written, though most of them not by a game."""
        program, outside = self.program, self.state.worlds
        count = max(1, self.envs // 4)
        turns = max(1, 64 // count)
        facts = self.state.replay.facts.at[..., 3].set(1.0)
        replay = self.state.replay._replace(facts=facts)
        self.state = self.state._replace(worlds=outside.waiting, replay=replay)
        box = [program._zeros(self.state, outside.fleet)[1]]

        def call():
            for _ in range(turns):
                self.state, box[0] = program._improve(
                    self.state, box[0], count, program.replay_rows, 0
                )
            jax.block_until_ready(self.state.agent.params)

        each = [t / (turns * count) * 1e3 for t in repeated(call, self.seconds / 2)]
        self.state = settled(program, self.state, outside)
        return each, "ms/update"

    def acting(self):
        program, outside = self.program, self.state.worlds
        self.state = self.state._replace(worlds=outside.waiting)
        voyage = SimpleNamespace(fleet=outside.fleet, t=self.program.replay_rows - 1)
        box = [program._zeros(self.state, outside.fleet)[0]]
        tape, program.frames.tape = program.frames.tape, None

        def call():
            self.state, box[0], action = program._step(program._act, self.state, voyage, box[0])
            np.asarray(action)

        each = [t * 1e3 for t in repeated(call, self.seconds / 4)]
        program.frames.tape, self.state = tape, settled(program, self.state, outside)
        return each, "ms/vector step"

    def emulators(self):
        """With random actions. The loop is not told, so only its episodes' scores are off."""
        vector, env = self.program._vector(), self.program.env
        actions = np.random.default_rng(0).integers(0, env.num_actions, (25, self.envs))
        nobody = np.full(self.envs, -1)

        def call():
            for action in actions:
                vector.step(action, nobody)

        each = [4 * actions.size / t for t in repeated(call, self.seconds / 2)]
        return each, "frames/s"

    def close(self) -> None:
        self.tape.close()
        self.program.close()
        self.folder.cleanup()


def memory() -> str:
    peak = (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)
    return f"peak {peak / 2**30:.2f} GiB; {os.cpu_count()} cores"


def spread(values: list[float]) -> str:
    low, high = np.quantile(values, [0.1, 0.9])
    return f"{low:.4g}–{high:.4g}"


def worker(job: Row) -> None:
    prepare(deterministic="deterministic" in job["note"])
    bench = Bench(job)
    serve(bench.rows)
    bench.close()


def add(rows: list[Row], row: Row, columns: tuple[str, ...], path: str | None) -> None:
    """Tell it and write all of them down: a later one may not come."""
    rows.append(row)
    print(*(row.get(name, "") for name in columns), sep="  ", flush=True)
    if path:
        write(path, rows, columns)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="*", default=["c51-ids/64/full"])
    parser.add_argument("--game", default="pong")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--capacity", type=int, default=1_000_000)
    parser.add_argument("--together", type=int, default=6)
    parser.add_argument("--csv")
    args = parser.parse_args(argv)
    same = {name: getattr(args, name) for name in ("game", "seconds", "capacity")}
    jobs: list[Row] = []
    for what in args.what:
        agent, envs, precision, *note = what.split("/")
        how = {"agent": agent, "envs": int(envs), "precision": precision}
        jobs.append({**how, **same, "note": "".join(f", {word}" for word in note)})
    rows: list[Row] = []
    for first in range(0, len(jobs), args.together):
        some = [Worker("benchmarks.atari", job) for job in jobs[first : first + args.together]]
        with Group(some) as group:
            for one in group:
                for row in one.measure():
                    add(rows, row, COLUMNS, args.csv)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(json.loads(sys.argv[2]))
    else:
        main(sys.argv[1:])
