"""Who gambles? Four agents on noisy_chain/{6,10,14}, many seeds each, settings of `chosen.json`.

    python results/noisy_chain/study.py                  # the study: 20 seeds from 100 on
    python results/noisy_chain/study.py --steps 400 --seeds 2 --sizes 6 --out /tmp/try

Writes to --out: `seeds.csv` (a row a seed), `summary.csv` and `summary.md` (means with 95%
intervals over seeds), `values.csv` (μ, σ², ρ², learned and exact Var Z, exact Q* of every
state and action at the end of training), and a run folder per agent and size.

Per seed, over its first `--episodes` episodes:
- gambles: share of all actions that were gambles; `gambles_late` is that of the last quarter;
- solved: the first episode at which under 90% of those so far missed the goal (bsuite's rule).
  Unlike in deep_sea, chance alone may get there: random play reaches the end of a short chain;
- mastered: the first episode at which at least 18 of the latest 20 reached the goal.
  A seed that never gets there counts with the number of episodes in the means of these two;
- regret: sum over episodes of the optimal undiscounted return, 1, less the episode's own without
  what its gambles paid, which is 1 if the goal was reached and 0 if not: so it counts misses;
- regret_discounted: the same with γ: γ^(N−2) less γ^(length−1) or 0, which counts detours too.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np

import idrl
from idrl.envs import make_env
from idrl.envs.tabular import exact
from idrl.report.statistics import interval, solved_episode
from idrl.runs.resuming import restore_state
from idrl.runs.session import make_program
from idrl.storage.folder import RunFolder, describe

AGENTS = ("bootstrapped-dqn", "dqn-ids", "c51-ids", "qrdqn-ids")
SIZES = (6, 10, 14)
MEASURES = ("gambles", "gambles_late", "solved", "mastered", "regret", "regret_discounted")
MEANINGS = ("forward", "back", "gamble")


def mastered_episode(bad: list[float], window: int = 20, misses: int = 2) -> int | None:
    for episode in range(window, len(bad) + 1):
        if sum(bad[episode - window : episode]) <= misses:
            return episode
    return None


def measure(rows: idrl.RecordTable, size: int, gamma: float, episodes: int) -> dict:
    """One seed's numbers from its rows of episodes.csv."""
    rows = rows[:episodes]
    bad, length, share = (rows[name] for name in ("bad", "length", "gambles"))
    late = slice(-max(1, len(rows) // 4), None)
    solved, mastered = solved_episode(bad.tolist()), mastered_episode(bad.tolist())
    reached = (1 - bad) * gamma ** (length - 1)
    return {
        "episodes": len(rows),
        "gambles": float((share * length).sum() / length.sum()),
        "gambles_late": float((share * length)[late].sum() / length[late].sum()),
        "never_solved": int(solved is None),
        "solved": solved or len(rows),
        "never_mastered": int(mastered is None),
        "mastered": mastered or len(rows),
        "regret": float(bad.sum()),
        "regret_discounted": float((gamma ** (size - 2) - reached).sum()),
    }


def beliefs(run: idrl.Run, size: int) -> list[dict]:
    """What the last weights of every seed say of every state, actions named by their meaning."""
    env = make_env(run.config.env)
    program = make_program(run.config, env)
    state, _, _ = restore_state(program, RunFolder.open(run.path))
    agent, count = program.agent, size - 1
    positions = np.eye(size, dtype=np.uint8)[:count]

    def say(params, prior):
        first, memory = np.ones(count, bool), np.zeros(count, np.int32)
        rule, key = agent.spec.explore, jax.random.key(0)
        decision, _ = agent.choose(rule, params, prior, positions, first, memory, key, 0)
        learned = agent.beliefs(params, prior, positions).return_variance
        return decision, decision.mu * np.nan if learned is None else learned

    said, learned = jax.device_get(jax.jit(jax.vmap(say))(state.agent.params, state.agent.prior))
    tasks = np.asarray(state.task)
    q, variance = exact(env.mdp(), run.config.learning.gamma)
    return [
        {
            "agent": run.config.agent, "size": size, "seed": seed, "state": s,
            "action": MEANINGS[tasks[i, s, a]], "mu": float(said.mu[i, s, a]),
            "sigma2": float(said.sigma[i, s, a] ** 2), "rho2": float(said.rho2[i, s, a]),
            "return_variance": float(learned[i, s, a]),
            "q_star": q[s, tasks[i, s, a]], "var_z": variance[s, tasks[i, s, a]],
        }
        for i, seed in enumerate(run.seeds) for s in range(count) for a in range(3)
    ]  # fmt: skip


def study(args: argparse.Namespace) -> tuple[list[dict], list[dict]]:
    chosen = json.loads(Path(args.chosen).read_text(encoding="utf-8"))

    def one(job: tuple[int, str]) -> tuple[list[dict], list[dict]]:
        size, agent = job
        # An episode is at most 3N steps, and a cut one takes a row more for its last observation.
        steps = args.steps or args.episodes * (3 * size + 1)
        run = idrl.train(
            agent, f"noisy_chain/{size}", steps=steps, seeds=args.seeds, seed=args.seed,
            out=Path(args.out) / f"{agent}-{size}", settings=chosen[agent],
        )  # fmt: skip
        episodes, rows = run.episodes, []
        for seed in run.seeds:
            mine = episodes.where(seed=seed)
            if not len(mine):
                sys.exit(f"seed {seed} finished no episode; --steps is too small.")
            found = measure(mine, size, run.config.learning.gamma, args.episodes)
            rows.append({"agent": agent, "size": size, "seed": seed, **found})
        print(line(summarise(rows)), flush=True)
        return rows, beliefs(run, size)

    with ThreadPoolExecutor(args.jobs) as pool:
        done = list(pool.map(one, [(size, agent) for size in args.sizes for agent in args.agents]))
    return [row for rows, _ in done for row in rows], [row for _, rows in done for row in rows]


def summarise(rows: list[dict]) -> dict:
    """Means over seeds with half the width of their 95% intervals."""
    out = {name: rows[0][name] for name in ("agent", "size")} | {"seeds": len(rows)}
    out["episodes_min"] = min(row["episodes"] for row in rows)
    for name in ("never_solved", "never_mastered"):
        out[name] = sum(row[name] for row in rows)
    for name in MEASURES:
        values = [row[name] for row in rows]
        out[name], out[f"{name}_ci95"] = float(np.mean(values)), interval(values)
    return out


def line(row: dict) -> str:
    cells = [f"`{row['agent']}`", str(row["size"])]
    cells += [f"{row[name]:.3g} ± {row[f'{name}_ci95']:.2g}" for name in MEASURES]
    for name in ("never_solved", "never_mastered"):
        cells.append(f"{row['seeds'] - row[name]} of {row['seeds']}")
    return "| " + " | ".join(cells) + " |"


def markdown(summary: list[dict], args: argparse.Namespace) -> str:
    about = describe()
    head = [
        "agent",
        "N",
        *(name.replace("_", ", ") for name in MEASURES),
        "seeds solved",
        "seeds that mastered it",
    ]
    lines = [
        f"First {args.episodes} episodes; mean over seeds ± half of the 95% interval (Student).",
        "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head),
        *map(line, summary), "",
        f"`{about['command']}`, commit {about['commit'] or 'unknown'}, "
        f"{jax.device_count()} × {jax.devices()[0].device_kind}, {about['machine']}, "
        + ", ".join(f"{name} {version}" for name, version in about["versions"].items()) + ".",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def write(path: Path, rows: list[dict]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, help="per seed; default: enough for --episodes")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=100, help="the first; below 100 is for tuning")
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--agents", nargs="+", default=AGENTS)
    parser.add_argument("--chosen", default=str(Path(__file__).parent / "chosen.json"))
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, in threads")
    parser.add_argument("--out", default=str(Path(__file__).parent / "runs"))
    args = parser.parse_args(argv)
    Path(args.out).mkdir(parents=True, exist_ok=True)
    seeds, values = study(args)
    groups = [
        [row for row in seeds if (row["agent"], row["size"]) == key]
        for key in dict.fromkeys((row["agent"], row["size"]) for row in seeds)
    ]
    summary = [summarise(group) for group in groups]
    write(Path(args.out) / "seeds.csv", seeds)
    write(Path(args.out) / "values.csv", values)
    write(Path(args.out) / "summary.csv", summary)
    text = markdown(summary, args)
    (Path(args.out) / "summary.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
