"""What it costs to save an Atari run: frames in segments, and the checkpoint that names them.

    python -m benchmarks.segments [GAME ...]

For each game a million frames of random play by 64 environments: how small they become and how
fast, how long a checkpoint stops training while 10,000 frames a second come in, and how long a
resumed run reads. The rest of a checkpoint has the shapes of `c51-ids` with its replay of a million
steps; it is copied while training waits and written by a thread.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import jax
import numpy as np

from idrl.config import resolve
from idrl.envs import make_env
from idrl.runs.session import make_program
from idrl.storage import checkpoint, segments
from idrl.storage.segments import Segments

ENVS, FRAMES, RATE, STOCK = 64, 1_000_000, 10_000, 600


def play(game: str) -> list[np.ndarray]:
    """Rows of random play. More than a segment holds, so that no segment is told a row twice."""
    env = make_env(f"atari/{game}")
    vector, chance = env.make(ENVS), np.random.default_rng(0)
    nobody = np.full(ENVS, -1)
    rows = [vector.step(nobody, np.arange(ENVS)).obs]
    while len(rows) < STOCK:
        rows.append(vector.step(chance.integers(env.num_actions, size=ENVS), nobody).obs)
    vector.close()
    return rows


def packing(rows: list[np.ndarray]) -> None:
    piece = rows[: segments.PIECE_BYTES // rows[0].nbytes]
    with tempfile.TemporaryDirectory() as place:
        size, seconds, back = sum(row.nbytes for row in piece), [], []
        for _ in range(5):
            begin = time.thread_time()
            segment = segments._write(Path(place), 0, piece)
            packed = time.thread_time()
            segments.read(Path(place), segment, piece[0].shape, np.uint8)
            seconds.append(packed - begin)
            back.append(time.thread_time() - packed)
    print(
        f"  {size / segment.bytes:.0f} times smaller; {size / median(seconds) / 1e6:,.0f} MB/s of "
        f"one core to pack and write, {size / median(back) / 1e6:,.0f} MB/s to unpack"
    )


def run(rows: list[np.ndarray], folder: Path) -> None:
    """The whole replay as fast as it goes, then 20 s at the rate of training."""
    tape, total = Segments(folder), FRAMES // ENVS
    begin = time.perf_counter()
    for t in range(total):
        tape.append(t, rows[t % STOCK])
    told = time.perf_counter()
    tape.seal(0)
    sealed = time.perf_counter()
    print(
        f"  {FRAMES:,} frames told in {told - begin:.1f} s, waiting for the writer; then sealed in "
        f"{sealed - told:.2f} s"
    )
    longest = 0.0
    for t in range(total, total + 20 * RATE // ENVS):
        time.sleep(max(0.0, sealed + (t - total) * ENVS / RATE - time.perf_counter()))
        begin = time.perf_counter()
        tape.append(t, rows[t % STOCK])
        longest = max(longest, time.perf_counter() - begin)
    begin = time.perf_counter()
    named = tape.seal(20 * RATE // ENVS)
    sealed = time.perf_counter() - begin
    size = sum(segment.bytes for segment in named)
    print(
        f"  at {RATE:,} frames/s: an append took {1e3 * longest:.1f} ms at most, sealing "
        f"{sealed:.2f} s; {len(named)} segments of {size / 1e6:,.0f} MB in all"
    )
    begin = time.perf_counter()
    segments.check(folder, named)
    checked = time.perf_counter()
    for segment in named:
        segments.read(folder, segment, rows[0].shape, np.uint8)
    done = time.perf_counter()
    print(f"  to go on: checked in {checked - begin:.1f} s, unpacked in {done - checked:.1f} s")
    tape.close()


def rest(folder: Path) -> None:
    """Everything but the frames."""
    env = make_env("atari/pong")
    config = resolve("c51-ids", "atari/pong", changes=[{"training": {"envs": ENVS}}])
    program = make_program(config, env)
    like = program.frames.without(program.like())
    chance = np.random.default_rng(0)

    def filled(leaf):
        shape = tuple(n or 2_000 for n in leaf.shape)
        return chance.integers(0, 255, shape).astype(leaf.dtype)

    state = jax.tree.map(filled, like)
    begin = time.perf_counter()
    state = jax.tree.map(np.array, state)
    copied = time.perf_counter()
    place = checkpoint.save(folder, 0, state, {})
    done = time.perf_counter()
    size = (place / checkpoint.ARRAYS).stat().st_size
    print(
        f"the rest of a checkpoint: {size / 1e6:,.0f} MB, copied in {copied - begin:.2f} s and "
        f"written in {done - copied:.2f} s"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        rest(Path(place))
    for game in sys.argv[1:] or ("pong", "breakout", "seaquest"):
        rows = play(game)
        print(game)
        packing(rows)
        with tempfile.TemporaryDirectory() as place:
            run(rows, Path(place))


if __name__ == "__main__":
    main()
