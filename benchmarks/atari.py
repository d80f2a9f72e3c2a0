"""Atari on this machine: updates alone, acting, emulators alone, and all of it together.

    python -m benchmarks.atari [--what updates acting emulator whole] [--agents c51-ids] \
        [--envs 128] [--precision full mixed] [--game pong] [--seconds 5] [--csv FILE]

Frames are the emulator's, four a step; an update per 16 frames. `updates` draws from a full replay
of 1M frames; `whole` is the training loop itself, without evaluations, once all is compiled, with
the frames going to the run's segments (`--no-tape`: nowhere). Every row is the median of repeats.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from idrl.config import resolve
from idrl.envs import make_env
from idrl.runs.segments import Segments
from idrl.session import make_program

FRAMES_PER_UPDATE = 16
COLUMNS = ("what", "agent", "game", "envs", "precision", "value", "unit", "spread", "more")


def program_of(agent: str, game: str, envs: int, precision: str, capacity: int):
    learning = {
        "precision": precision, "learning_starts_steps": 64 * envs, "replay_capacity": capacity
    }  # fmt: skip
    changes = {
        "learning": learning,
        "training": {"envs": envs, "steps": 2_000_000_000, "distributions_every_steps": 0},
        "evaluation": {"every_steps": 2_000_000_000},
    }
    config = resolve(agent, f"atari/{game}", changes=[changes])
    return make_program(config, make_env(config.env))


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


def repeated(call, seconds: float, least: int = 3) -> list[float]:
    call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return times


def updates(args, agent: str, envs: int, precision: str):
    program = program_of(agent, args.game, envs, precision, args.capacity)
    count = max(1, envs // 4)
    state = blank_state(program)
    shown = jax.tree.map(jnp.asarray, (program._zeros(state, _nobody(program, envs))[1]))
    box = [state, shown]
    begin = time.perf_counter()

    def call():
        for _ in range(max(1, 64 // count)):
            box[0], box[1] = program._improve(*box, count, program.replay_rows, 0)
        jax.block_until_ready(box[0].agent.params)

    call()
    compiled = time.perf_counter() - begin
    each = [t / (max(1, 64 // count) * count) * 1e3 for t in repeated(call, args.seconds)]
    memory = (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)
    more = f"compile {compiled:.1f} s; peak {memory / 2**30:.2f} GiB"
    return statistics.median(each), "ms/update", spread(each), more


def acting(args, agent: str, envs: int, precision: str):
    """From frames on the host to actions on the host."""
    program = program_of(agent, args.game, envs, precision, args.capacity)
    state = blank_state(program)
    voyage = SimpleNamespace(fleet=_nobody(program, envs), t=70)
    box = [state, program._zeros(state, voyage.fleet)[0]]

    def call():
        box[0], box[1], action = program._step(program._act, box[0], voyage, box[1])
        np.asarray(action)

    each = [t * 1e3 for t in repeated(call, min(args.seconds, 2))]
    return statistics.median(each), "ms/vector step", spread(each), ""


def emulator(args, agent: str, envs: int, precision: str):
    env = make_env(f"atari/{args.game}")
    vector = env.make(envs)
    rng, nobody = np.random.default_rng(0), np.full(envs, -1)
    vector.step(nobody, np.arange(envs))
    actions = rng.integers(0, env.num_actions, (100, envs))

    def call():
        for action in actions:
            vector.step(action, nobody)

    each = [400 * envs / t for t in repeated(call, args.seconds)]
    vector.close()
    return statistics.median(each), "frames/s", spread(each), f"{os.cpu_count()} cores"


def whole(args, agent: str, envs: int, precision: str):
    program = program_of(agent, args.game, envs, precision, args.capacity)
    with tempfile.TemporaryDirectory() as folder:
        tape = None if args.no_tape else Segments(Path(folder), [], 0)
        program.tape = None if tape is None else tape.append
        state, _ = program.start(program.seed_keys(0))
        box, c = [state, 0], program.cadence

        def call():
            end = c.end(box[1])
            box[0], _ = program.block(box[0], np.int32(box[1]))
            frames, box[1] = 4 * (end - box[1]) * c.steps, end
            return frames

        call()
        each, until = [], time.perf_counter() + 2 * args.seconds
        while time.perf_counter() < until or len(each) < 3:
            begin = time.perf_counter()
            frames = call()
            each.append(frames / (time.perf_counter() - begin))
        if tape is not None:
            tape.close()
        program.close()
    memory = (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)
    return statistics.median(each), "frames/s", spread(each), f"peak {memory / 2**30:.2f} GiB"


def _nobody(program, envs: int):
    from idrl.training import fleet

    return fleet.blank(program.env, envs)


def spread(values: list[float]) -> str:
    low, high = np.quantile(values, [0.1, 0.9])
    return f"{low:.4g}–{high:.4g}"


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    kinds = {f.__name__: f for f in (updates, acting, emulator, whole)}
    parser.add_argument("--what", nargs="+", default=list(kinds), choices=list(kinds))
    parser.add_argument("--agents", nargs="+", default=["c51-ids"])
    parser.add_argument("--envs", nargs="+", type=int, default=[128])
    parser.add_argument("--precision", nargs="+", default=["full"])
    parser.add_argument("--game", default="pong")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--capacity", type=int, default=1_000_000)
    parser.add_argument("--no-tape", action="store_true")
    parser.add_argument("--csv")
    args = parser.parse_args(argv)
    device = jax.local_devices()[0].device_kind
    print(f"# {device}, {os.cpu_count()} cores, JAX {jax.__version__}", flush=True)
    rows = []
    for what in args.what:
        for agent in args.agents if what != "emulator" else args.agents[:1]:
            for envs in args.envs:
                for precision in args.precision if what != "emulator" else ["-"]:
                    found = kinds[what](args, agent, envs, precision)
                    rows.append((what, agent, args.game, envs, precision, *found))
                    value, unit, around, more = found
                    print(f"{what:9} {agent:8} {envs:4} envs {precision:5} {value:10.4g} {unit} "
                          f"({around}) {more}", flush=True)  # fmt: skip
                    if args.csv:
                        with open(args.csv, "w", newline="", encoding="utf-8") as file:
                            csv.writer(file).writerows([(*COLUMNS, "device"), *(
                                (*row, device) for row in rows)])  # fmt: skip


if __name__ == "__main__":
    main()
