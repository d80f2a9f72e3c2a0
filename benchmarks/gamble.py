"""Is noise mistaken for something to learn? Rules for ρ² on deep_sea, with slips and with gambles.

    python -m benchmarks.gamble --jobs 8 --out DIR

Each rule has deep_sea's preset but for what its row says, 20 seeds from 100 up. DIR/regret.csv gets
a row a seed, DIR/variance.csv the learned and the true variance of the return along the diagonal.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TASKS = {  # steps of a run
    "deep_sea/20": 20_000,
    "deep_sea/20?slip=0.05": 20_000,
    "deep_sea/10?gamble=1.0": 10_000,
    "deep_sea/20?gamble=1.0": 50_000,
}
ADDED = ("explore.noise=added", "explore.rho2=0.25")
RULES = {
    "constant": ("dqn-ids",),
    "paper, C51": ("c51-ids",),
    "paper, quantiles": ("qrdqn-ids",),
    "added, C51": ("c51-ids", *ADDED),
    "added, quantiles": ("qrdqn-ids", *ADDED),
    "UCB": ("bootstrapped-ucb", "explore.lam=2"),
    "Thompson": ("bootstrapped-dqn",),
}
SEED, SEEDS = 100, 20
LOOKED_AT = 5  # seeds whose variance is recorded
REGRET = ("task", "rule", "seed", "regret", "greedy", "gambles")
VARIANCE = ("task", "rule", "seed", "row", "action", "learned", "true")
MEANINGS = ("left", "right", "gamble")


def one(task: str, rule: str, out: Path) -> None:
    """A run, and its rows."""
    import idrl

    agent, *settings = RULES[rule]
    with tempfile.TemporaryDirectory() as folder:
        run = idrl.train(
            agent, task, seed=SEED, seeds=SEEDS, steps=TASKS[task], settings=settings,
            out=Path(folder) / "run",
        )  # fmt: skip
        name = f"{list(TASKS).index(task)}-{list(RULES).index(rule)}.csv"
        _write(out / f"regret-{name}", REGRET, _regret(task, rule, run.path))
        if agent in ("c51-ids", "qrdqn-ids"):
            _write(out / f"variance-{name}", VARIANCE, _variance(task, rule, run))


def _regret(task: str, rule: str, path: Path):
    """Regret of all episodes, the last greedy policy, the share of gambles in the last quarter."""
    regret: dict[str, float] = {}
    gambles: dict[str, list[float]] = {}
    with open(path / "episodes.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            regret[row["seed"]] = regret.get(row["seed"], 0.0) + float(row["regret"])
            gambles.setdefault(row["seed"], []).append(float(row.get("gambles") or 0.0))
    with open(path / "evaluations.csv", newline="", encoding="utf-8") as file:
        greedy = {
            row["seed"]: row.get("raw_return") or row["return_mean"] for row in csv.DictReader(file)
        }
    for seed, total in regret.items():
        late = gambles[seed][-(len(gambles[seed]) // 4) :]
        yield task, rule, seed, f"{total:.2f}", greedy[seed], f"{sum(late) / len(late):.4f}"


def _variance(task: str, rule: str, run):
    """Along the diagonal, in the order of `DeepSea.exact`."""
    import jax
    import numpy as np

    import idrl
    from idrl.envs import make_env
    from idrl.training.seeding import seed_key, task_of

    env = make_env(task)
    seen = np.eye(env.size, dtype=np.uint8)[:, :, None] * np.eye(env.size, dtype=np.uint8)[:, None]
    true = env.exact(run.config.learning.gamma)[1]
    for seed in range(SEED, SEED + LOOKED_AT):
        agent = idrl.load(run, seed=seed, weights="latest")
        said = agent.agent.beliefs(agent.params, agent.prior, seen).return_variance
        meaning = env.meanings(jax.device_get(task_of(env, seed_key(seed))))
        for row in range(env.size):
            for action, learned in enumerate(np.asarray(said[row])):
                meant = int(meaning[row, row, action])
                yield (task, rule, seed, row, MEANINGS[meant], f"{learned:.5g}",
                       f"{true[row, row, meant]:.5g}")  # fmt: skip


def _write(path: Path, columns: tuple[str, ...], rows) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _joined(out: Path) -> None:
    for kind, columns in (("regret", REGRET), ("variance", VARIANCE)):
        rows = []
        for path in sorted(out.glob(f"{kind}-*.csv")):
            with open(path, newline="", encoding="utf-8") as file:
                rows += list(csv.reader(file))[1:]
        _write(out / f"{kind}.csv", columns, rows)


def table(out: Path) -> str:
    """Means over seeds with 95% bootstrap intervals, as Markdown."""
    import numpy as np

    with open(out / "regret.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = [
        "| ρ² | " + " | ".join(f"`{task}`" for task in TASKS) + " |",
        "|---|" + "---|" * len(TASKS),
    ]
    draws = np.random.default_rng(0)
    for rule in RULES:
        cells = []
        for task in TASKS:
            got = np.array(
                [float(r["regret"]) for r in rows if (r["task"], r["rule"]) == (task, rule)]
            )
            if not len(got):
                cells.append("–")
                continue
            means = draws.choice(got, (2000, len(got))).mean(1)
            low, high = np.quantile(means, (0.025, 0.975))
            cells.append(f"{got.mean():.0f} ({low:.0f} to {high:.0f})")
        lines.append(f"| {rule} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/gamble"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--one", nargs=2, metavar=("TASK", "RULE"), help="of the script itself")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.one:
        one(*options.one, options.out)
        return
    waiting = [(task, rule) for task in sorted(TASKS, key=lambda t: -TASKS[t]) for rule in RULES]
    running: list[tuple[subprocess.Popen, tuple[str, str]]] = []
    while waiting or running:
        while waiting and len(running) < options.jobs:
            job = waiting.pop(0)
            command = [
                sys.executable,
                "-m",
                "benchmarks.gamble",
                "--out",
                str(options.out),
                "--one",
                *job,
            ]
            running.append((subprocess.Popen(command, stdout=subprocess.DEVNULL), job))
        for process, job in list(running):
            if process.poll() is not None:
                running.remove((process, job))
                print(*job, "" if process.returncode == 0 else "failed", flush=True)
        time.sleep(0.2)
    _joined(options.out)
    print(table(options.out))


if __name__ == "__main__":
    main()
