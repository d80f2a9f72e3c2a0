"""Saving and restoring a run's state: our safetensors folder against Orbax, in one process.

    pip install orbax-checkpoint
    python -m benchmarks.checkpoints

Why we write our own forty lines: one file and one checksum per checkpoint, sizes readable before
anything is loaded, no threads that outlive the call, and it is faster for states of this size.
"""

from __future__ import annotations

import functools
import statistics
import tempfile
import time
from pathlib import Path

import jax

from idrl.config import resolve
from idrl.envs import make_env
from idrl.runs.session import make_program
from idrl.storage import checkpoint


def median_seconds(call, repeats: int = 7) -> float:
    call(0)
    times = []
    for i in range(1, repeats + 1):
        start = time.perf_counter()
        call(i)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def save_ours(folder, state, i):
    checkpoint.save(folder, i, state, {})


def save_theirs(saver, folder, state, i):
    saver.save(folder / str(i), state)
    saver.wait_until_finished()


def restore_ours(place, like, i):
    checkpoint.restore(place, like)


def restore_theirs(saver, place, like, i):
    saver.restore(place, like)


def main() -> None:
    import orbax.checkpoint as ocp

    for env, seeds in (("deep_sea/10", 1), ("deep_sea/20", 8)):
        config = resolve("c51-ids", env, changes=[{"seeds": seeds}])
        program = make_program(config, make_env(env))
        state, _ = program.start(program.seed_keys(0))
        like = program.like()
        size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state)) / 2**20
        with tempfile.TemporaryDirectory() as name:
            ours, theirs = Path(name) / "ours", Path(name) / "orbax"
            saver = ocp.StandardCheckpointer()
            a = median_seconds(functools.partial(save_ours, ours, state))
            b = median_seconds(functools.partial(save_theirs, saver, theirs, state))
            place = checkpoint.newest(ours)[0]
            c = median_seconds(functools.partial(restore_ours, place, like))
            d = median_seconds(functools.partial(restore_theirs, saver, theirs / "0", like))
        print(
            f"{env}, {seeds} seeds, {size:.1f} MiB: save {1e3 * a:.0f} ms (Orbax {1e3 * b:.0f}, "
            f"ratio {b / a:.1f}), restore {1e3 * c:.0f} ms (Orbax {1e3 * d:.0f}, ratio {d / c:.1f})"
        )


if __name__ == "__main__":
    main()
