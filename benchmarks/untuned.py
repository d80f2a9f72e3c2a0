"""Two suites of tasks that nobody tuned for: one to develop on, one to report, once.

    python -m benchmarks.untuned --suite development --seeds 10 --jobs 4 --out DIR
    python -m benchmarks.untuned --suite report --seed 100 --seeds 10 --jobs 4 --out DIR
    python -m benchmarks.untuned --out DIR --suite report --table   # Markdown, from DIR/scores.csv
    python -m benchmarks.untuned --suite report --measure-random    # the constants below

Both are fixed: what is in them, how long a run is and how it is evaluated. A run has its agent's
defaults, whatever they are, and what `--set` changes for all. DIR/runs gets what `idrl report`
needs of each run, DIR/scores.csv a row for each evaluation of each seed. A repeated command runs
what is missing, and goes on with what `--limit` ended; with `--core` each process has a core of
its own. A score is the mean of the evaluations in the last quarter of a run, so that no lucky
moment decides.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

AGENTS = ("dqn", "bootstrapped-dqn", "qr-dqn", "dqn-ids", "c51-ids", "qrdqn-ids")
GRACE_S = 20  # for a checkpoint of what is ended
EVALUATIONS = 20  # of a run: a score is the mean of the last five
COLUMNS = ("task", "agent", "seed", "step", "of", "return_mean", "episodes")
KEPT = ("config.toml", "run.json", "metrics.csv", "evaluations.csv", "distributions.csv")


@dataclass(frozen=True)
class Task:
    """`low` and `best` are the scores that count as 0 and 1.

    `low` is the mean return of uniformly random play (`--measure-random`). Where there is no time
    limit it is what standing still for a whole evaluation costs: random play gets to the goal late
    and at any price, which would make a perfect agent of everybody who gets there at all. An
    evaluation there that ends no episode, or does worse, counts as `low`.

    `best` is the largest expected return (`exact`) or a score that is known to be good: Gymnasium's
    reward thresholds for acrobot and mountain_car; on breakout what `dqn` got after 300,000 steps
    and on asterix its best seed (results/minatar; by gymnax's rules). For space_invaders it is a
    round number, which sets the unit of that row and decides nothing else.
    """

    name: str
    steps: int
    low: float
    best: float
    exact: bool = True
    sparse: bool = False  # until the goal is found nothing tells one action from another
    endless: bool = False  # no time limit: an evaluation may end no episode
    window: int = 1_000  # steps of an evaluation in each of five environments


def scaled(task: Task, factor: float) -> Task:
    name = f"{task.name}?scale={factor:g}"
    return replace(task, name=name, low=factor * task.low, best=factor * task.best)


TRAPS = Task("grid/traps", 60_000, -1_000.0, -13.0, endless=True)
HARVEST = Task("grid/harvest", 60_000, -3.5, 8.9)

DEVELOPMENT = (
    TRAPS,
    scaled(TRAPS, 100),
    scaled(TRAPS, 0.01),
    HARVEST,
    scaled(HARVEST, 100),
    scaled(HARVEST, 0.01),
    Task("grid/rooms", 100_000, 0.051, 1.0, sparse=True),
    Task("grid/lake", 100_000, 0.002, 0.913, sparse=True),
    Task("cartpole", 100_000, 22.2, 500.0, window=2_010),
    Task("acrobot", 100_000, -498.9, -100.0, exact=False, sparse=True, window=2_010),
    Task("bsuite/catch", 40_000, -0.597, 1.0),
    Task("bsuite/bandit", 10_000, 0.5, 1.0),
    Task("gymnax/DiscountingChain-bsuite", 40_000, 1.02, 1.1),
    Task("deep_sea/10", 20_000, -0.004, 0.99, sparse=True),
    Task("minatar/breakout?limit=1000", 300_000, 0.388, 9.0, exact=False, window=2_010),
)
REPORT = (
    Task("grid/cliff", 60_000, -1_000.0, -13.0, endless=True),
    Task("grid/river", 100_000, 0.22, 101.97, sparse=True),
    Task("grid/taxi", 150_000, -771.4, 7.93),
    Task("grid/keys", 150_000, 0.008, 1.0, sparse=True),
    Task("mountain_car", 150_000, -200.0, -110.0, exact=False, sparse=True),
    Task("bsuite/cartpole", 100_000, 79.8, 1_001.0, window=3_010),
    Task("gymnax/FourRooms-misc", 60_000, 0.466, 1.0, sparse=True, window=2_010),
    Task("gymnax/UmbrellaChain-bsuite", 60_000, 0.0, 1.0, window=2_000),
    Task("deep_sea/14", 40_000, -0.005, 0.99, sparse=True),
    Task("minatar/asterix?limit=1000", 300_000, 0.502, 8.1, exact=False, window=2_010),
    Task("minatar/space_invaders?limit=1000", 300_000, 4.09, 30.0, exact=False, window=2_010),
)
SUITES = {"development": DEVELOPMENT, "report": REPORT}


@dataclass(frozen=True)
class Job:
    task: Task
    agent: str
    seed: int
    seeds: int
    share: float
    settings: tuple[str, ...]

    @property
    def steps(self) -> int:
        return max(EVALUATIONS, round(self.share * self.task.steps))

    def folder(self, out: Path) -> Path:
        name = re.sub(r"[^\w.=-]+", "-", f"{self.agent}-{self.task.name}")
        return out / "runs" / f"{name}-{self.seed}"

    def begun(self, out: Path) -> bool:
        """Whether there is a run of this length and these seeds that a limit ended."""
        folder = self.folder(out)
        if not any(folder.glob("checkpoints/*")):
            return False
        said = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
        return (said["training"]["steps"], said["seeds"]) == (self.steps, self.seeds)

    def command(self, out: Path) -> list[str]:
        if self.begun(out):
            return [sys.executable, "-m", "idrl.cli", "train", "--resume", str(self.folder(out))]
        every, task = self.steps // EVALUATIONS, self.task
        lengths = (f"evaluation.every_steps={every}", f"evaluation.steps={5 * task.window}",
                   "evaluation.envs=5")  # fmt: skip
        return [
            sys.executable, "-m", "idrl.cli", "train", self.agent, task.name, "--steps",
            str(self.steps), "--seed", str(self.seed), "--seeds", str(self.seeds), "--out",
            str(self.folder(out)), "--set", *lengths, *self.settings,
        ]  # fmt: skip


def read_scores(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def finished(path: Path) -> set[tuple[str, str, int, int]]:
    """(task, agent, seed, steps) of the seeds that were evaluated to the end."""
    rows = read_scores(path)
    return {
        (row["task"], row["agent"], int(row["seed"]), int(row["of"]))
        for row in rows if int(row["step"]) >= int(row["of"])
    }  # fmt: skip


def record(job: Job, out: Path) -> int:
    """Append the evaluations of a run to scores.csv and keep the small part of its folder."""
    folder, target = job.folder(out), out / "scores.csv"
    rows = read_scores(folder / "evaluations.csv")
    fresh = not target.exists()
    with open(target, "a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow((job.task.name, job.agent, row["seed"], row["steps"], job.steps,
                             row["return_mean"], row["episodes"]))  # fmt: skip
    for entry in folder.iterdir() if folder.exists() else ():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name not in KEPT:
            entry.unlink()
    return len(rows)


def pinned(core: int | None) -> dict[str, Any]:
    """How a process is started that has one core alone, where the system can do that."""
    if core is None or not hasattr(os, "sched_setaffinity"):
        return {}
    return {"preexec_fn": lambda: os.sched_setaffinity(0, {core})}


def run_all(
    jobs: Sequence[Job], out: Path, at_once: int, limit: float, cores: Sequence[int | None] = ()
) -> list[str]:
    """At most `at_once` processes; after `limit` seconds no more, and what runs writes a checkpoint
    and ends. What failed or was ended is returned, one line each. `cores`: one for each process at
    a time, or none."""
    deadline, waiting = time.monotonic() + limit, list(jobs)
    running: dict[Job, tuple[subprocess.Popen, float, int | None]] = {}
    free = list(cores) or [None] * at_once
    failures = []
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    (out / "logs").mkdir(parents=True, exist_ok=True)
    while waiting or running:
        late = time.monotonic() >= deadline
        while waiting and len(running) < at_once and not late:
            job, core = waiting.pop(0), free.pop(0)
            folder, command = job.folder(out), job.command(out)
            if "--resume" not in command:
                shutil.rmtree(folder, ignore_errors=True)  # of one that had no checkpoint yet
            with open(out / "logs" / f"{folder.name}.txt", "a", encoding="utf-8") as log:
                process = subprocess.Popen(
                    command, stdout=log, stderr=subprocess.STDOUT, env=environment, **pinned(core)
                )
            running[job] = process, time.monotonic(), core
        for process, *_ in running.values() if late else ():
            process.send_signal(signal.SIGINT)
        for job, (process, began, core) in list(running.items()):
            if late:
                try:
                    process.wait(GRACE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            if process.poll() is None:
                continue
            del running[job]
            free.append(core)
            took = time.monotonic() - began
            rows = record(job, out) if process.returncode == 0 else 0
            status = "" if process.returncode == 0 else f", ended with {process.returncode}"
            line = f"{job.agent} {job.task.name}: {rows} rows in {took:.0f} s{status}"
            print(line, flush=True)
            failures += [line] if status else []
        if late and waiting:
            failures += [f"{job.agent} {job.task.name}: not begun" for job in waiting]
            waiting = []
        time.sleep(0.2)
    return failures


def measure(tasks: Sequence[Task], steps: int = 20_000, envs: int = 20, seeds: int = 5) -> None:
    """The mean return of an episode of uniformly random play, with its standard error over seeds,
    and the best that can be expected where the environment knows it."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from idrl.envs import make_env
    from idrl.training.rollout import advance, begin
    from idrl.training.seeding import seed_key, task_of

    for task in tasks:
        env = make_env(task.name)

        def play(key, env=env):
            world = task_of(env, key)

            def one(worlds, t):
                act, step = jax.random.split(jax.random.fold_in(key, t))
                action = jax.random.randint(act, (envs,), 0, env.num_actions)
                worlds, seen = advance(env, world, worlds, action, worlds.memory, step)
                return worlds, (seen.ended.sum(), (seen.ended * seen.episode_return).sum())

            worlds = begin(env, world, key, jnp.zeros(envs))
            _, (count, total) = jax.lax.scan(one, worlds, jnp.arange(steps))
            return total.sum() / count.sum(), count.sum()

        means, counts = map(np.array, zip(*(jax.jit(play)(seed_key(s)) for s in range(seeds)),
                                          strict=True))  # fmt: skip
        known = getattr(env, "optimal_return", lambda task: None)
        best = known(jax.device_get(task_of(env, seed_key(0))))
        error = means.std(ddof=1) / len(means) ** 0.5
        print(f"{task.name}: random {means.mean():.4g} ± {error:.2g} of {counts.sum()} episodes, "
              f"best {'not known' if best is None else f'{best:.5g}'}", flush=True)  # fmt: skip


def _same_settings(out: Path, settings: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """Refuse to mix runs of different settings in one table."""
    note, text = out / "settings.txt", "".join(f"{line}\n" for line in settings)
    if note.exists() and note.read_text(encoding="utf-8") != text:
        parser.error(f"{out} holds runs with other settings ({note}); choose another --out")
    out.mkdir(parents=True, exist_ok=True)
    note.write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--suite", choices=SUITES, default="development")
    parser.add_argument("--tasks", nargs="+", help="only these (default: all of the suite)")
    parser.add_argument("--agents", nargs="+", default=AGENTS)
    parser.add_argument("--seed", type=int, help="the first (default: 0; report: 100)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps-share", type=float, default=1.0, help="of the full length")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--core", type=int, help="a core for each process, from this one on")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds")
    parser.add_argument("--out", type=Path, default=Path("runs/untuned"))
    parser.add_argument("--table", action="store_true", help="print DIR/scores.csv as Markdown")
    parser.add_argument("--measure-random", action="store_true")
    options = parser.parse_args(arguments)
    suite = SUITES[options.suite]
    names = [task.name for task in suite]
    for name in options.tasks or ():
        if name not in names:
            parser.error(f"{name!r} is not in {options.suite}: {', '.join(names)}")
    tasks = [task for task in suite if task.name in (options.tasks or names)]
    if options.measure_random:
        measure(tasks)
        return 0
    if options.table:
        from benchmarks.untuned_table import table

        rows = read_scores(options.out / "scores.csv")
        if not rows:
            parser.error(f"there are no scores in {options.out}")
        text = table(rows, tasks, options.agents)
        (options.out / f"{options.suite}.md").write_text(text + "\n", encoding="utf-8")
        print(text)
        return 0
    _same_settings(options.out, options.settings, parser)
    first = options.seed if options.seed is not None else {"report": 100}.get(options.suite, 0)
    done = finished(options.out / "scores.csv")
    jobs = [
        Job(task, agent, first, options.seeds, options.steps_share, tuple(options.settings))
        for agent in sorted(options.agents, key=lambda name: not name.endswith("-ids"))
        for task in sorted(tasks, key=lambda t: -t.steps)  # the longest first: none waits for it
    ]
    jobs = [job for job in jobs if not all(
        (job.task.name, job.agent, seed, job.steps) in done
        for seed in range(first, first + options.seeds)
    )]  # fmt: skip
    first_core = options.core
    cores = [] if first_core is None else list(range(first_core, first_core + options.jobs))
    failures = run_all(jobs, options.out, options.jobs, options.limit, cores)
    for line in failures:
        print(f"incomplete: {line}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
