"""What surviving costs: freezing seeds, logging, and whether a long run grows.

    python -m benchmarks.survival freeze     # a block with the guard over one without, interleaved
    python -m benchmarks.survival logging    # share of a run's time spent on records
    python -m benchmarks.survival growth 600 # memory and open files over so many seconds

Ratios are of one process and the same minute; seconds of a machine are nobody else's.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

import idrl
from idrl.config import resolve
from idrl.envs import make_env
from idrl.runs import session
from idrl.runs.session import make_program
from idrl.training import compiled, learner

CASES = {
    "c51-ids on deep_sea/10, 8 seeds": ("c51-ids", "deep_sea/10", {"seeds": 8}),
    "c51-ids on minatar/breakout, 2 seeds": (
        "c51-ids",
        "minatar/breakout",
        {"seeds": 2, "learning": {"learning_starts_steps": 100, "replay_capacity": 5_000}},
    ),
}


def _not_noted(state, metrics, update):
    return state


def _not_held(state, before):
    return state


def freeze(pairs: int = 15) -> None:
    """Blocks with and without in turn, by the processor time they take: what other processes do
    meanwhile does not count."""
    for title, (agent, env, changes) in CASES.items():
        config = resolve(agent, env, changes=[changes])
        ours = learner.noted, compiled.hold
        boxes = {}
        for name, functions in (("with", ours), ("without", (_not_noted, _not_held))):
            learner.noted, compiled.hold = functions
            program = make_program(config, make_env(env))
            state, _ = program.start(program.seed_keys(0))
            state, _ = program.block(state, np.int32(0))  # compiles
            boxes[name] = [program, state]
        learner.noted, compiled.hold = ours
        ratios, least = [], {"with": np.inf, "without": np.inf}
        for _ in range(pairs):
            seconds = {}
            for name, box in boxes.items():
                start = time.process_time()
                box[1], out = box[0].block(box[1], np.int32(0))
                jax.block_until_ready(out)
                seconds[name] = time.process_time() - start
            ratios.append(seconds["with"] / seconds["without"])
            least = {name: min(least[name], seconds[name]) for name in least}
        low, middle, high = (float(np.quantile(ratios, q)) for q in (0.25, 0.5, 0.75))
        print(
            f"{title}: with / without {middle:.3f} (quartiles {low:.3f} to {high:.3f}), of the "
            f"least times {least['with'] / least['without']:.3f}"
        )


def logging() -> None:
    """Time in the recorder over the time of the whole run from its first block on."""
    inside = [0.0]
    record = session._Recorder.record

    def timed(self, progress, seconds):
        start = time.perf_counter()
        record(self, progress, seconds)
        inside[0] += time.perf_counter() - start

    session._Recorder.record = timed  # type: ignore[method-assign]
    for title, env, options in (
        ("compiled, c51-ids on deep_sea/10, 8 seeds", "deep_sea/10", {"seeds": 8}),
        ("hosted, dqn on gym/CartPole-v1, 2 seeds", "gym/CartPole-v1", {"seeds": 2}),
    ):
        agent = "c51-ids" if env == "deep_sea/10" else "dqn"
        inside[0] = 0.0
        with tempfile.TemporaryDirectory() as folder:
            clock = _Clock()
            steps = 10_000 if agent == "c51-ids" else 20_000
            idrl.train(agent, env, steps=steps, out=Path(folder) / "run", display=clock, **options)
        whole = clock.last - clock.first
        print(f"{title}: {100 * inside[0] / whole:.2f}% of {whole:.0f} s")


class _Clock:
    """A display that notes when the first and the last block ended."""

    def __init__(self):
        self.first = self.last = 0.0

    def start(self):
        pass

    def update(self, progress, config):
        self.last = time.perf_counter()
        self.first = self.first or self.last


def growth(seconds: float) -> None:
    """Resident memory and open files, sampled every second while a run trains."""
    begun = time.monotonic()
    samples: list[tuple[float, float, int]] = []

    def until() -> bool:
        now = time.monotonic() - begun
        if not samples or now - samples[-1][0] >= 1:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            size = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
            samples.append((now, size, len(os.listdir("/proc/self/fd"))))
        return now >= seconds

    with tempfile.TemporaryDirectory() as folder:
        idrl.train(
            "dqn", "gym/CartPole-v1", steps=2_000_000_000, seeds=2, out=Path(folder) / "run",
            settings={"evaluation": {"every_steps": 2_000, "steps": 400, "envs": 2}}, until=until,
        )  # fmt: skip
    for share in (0.1, 0.25, 0.5, 0.75, 1.0):
        now, size, files = samples[min(len(samples) - 1, int(share * len(samples)))]
        print(f"after {now:5.0f} s: {size:7.1f} MiB, {files} open files")
    half = samples[len(samples) // 2 :]
    middle = [
        statistics.median(s[1] for s in part)
        for part in (half[: len(half) // 2], half[len(half) // 2 :])
    ]
    print(f"third to fourth quarter: {middle[1] - middle[0]:+.1f} MiB (medians)")


def main() -> None:
    what, *rest = sys.argv[1:] or ["freeze"]
    if what == "growth":
        growth(float(rest[0]) if rest else 600)
    else:
        {"freeze": freeze, "logging": logging}[what]()


if __name__ == "__main__":
    main()
