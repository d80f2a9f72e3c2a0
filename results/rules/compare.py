"""Every rule on one and the same ensemble: deep_sea/20, the same with slips, and noisy_chain/6.

    python results/rules/compare.py --out FOLDER [--jobs 12]

All runs are `c51-ids` (ten heads with prior 0.3, a categorical return head) with its presets;
only the rule that explores differs. A rule with a free number (λ, β) has three values of it
tried on seeds 0 to 7 of the first two tasks and keeps the one with the smallest regret, summed over
both as shares of the largest possible. Then 20 seeds from 100 on of each task.

Writes `tried.csv`, `seeds.csv` (a row a seed), `summary.csv`, `summary.md` (means ± half of the 95%
interval) and `diagonal.csv`: what the last weights say of the two actions on deep_sea's diagonal.

- regret: sum over the first episodes (400, 800 and 400) of the optimal expected return less the
  episode's own; on noisy_chain the episodes that missed the goal, as in ../noisy_chain;
- solved: bsuite's episode (deep_sea) or the share of gambles (noisy_chain);
- greedy: mean of the last five evaluations of the greedy policy, as a share of the optimum.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "noisy_chain"))
from study import measure, write

import idrl
from idrl.envs import make_env
from idrl.report.statistics import interval, solved_episode
from idrl.runs.resuming import restore_state
from idrl.runs.session import make_program
from idrl.storage.folder import RunFolder, describe

TASKS = ("deep_sea/20", "deep_sea/20?slip=0.05", "noisy_chain/6")
EPISODES = {"deep_sea/20": 400, "deep_sea/20?slip=0.05": 800, "noisy_chain/6": 400}
STEPS = {"deep_sea/20": 8_000, "deep_sea/20?slip=0.05": 16_000, "noisy_chain/6": 400 * 19}
LAMBDAS = [1.0, 2.0, 4.0]

# name: (settings of `explore`, the free number and what is tried of it)
RULES: dict[str, tuple[dict, str | None, list[float]]] = {
    "greedy": ({"kind": "greedy"}, None, []),
    "thompson": ({"kind": "thompson"}, None, []),
    "ucb": ({"kind": "ucb"}, "lam", LAMBDAS),
    "vote": ({"kind": "vote"}, None, []),
    "ids, literal": ({"lam": 0.1}, None, []),  # the paper's λ; run without a prior
    "ids, constant": ({"noise": "constant"}, "lam", LAMBDAS),
    "ids, return": ({"noise": "return"}, "lam", LAMBDAS),
    "ids, normalized": ({}, "lam", LAMBDAS),
    "ids, normalized, floor 1": ({"rho2_floor": 1.0}, "lam", LAMBDAS),
    "ids, smoothed": ({"noise": "smoothed"}, "lam", LAMBDAS),
    "ids, tempered": ({"noise": "tempered"}, "lam", LAMBDAS),
    "ids, additive": ({"policy": "additive", "lam": 2.0}, "beta", [0.3, 3.0, 30.0]),
    "ids, randomized": ({"policy": "randomized"}, "lam", LAMBDAS),
    "ids, gain ucb": ({"info_gain": "ucb"}, "lam", LAMBDAS),
    "ids, gain variance": ({"info_gain": "variance"}, "lam", LAMBDAS),
    "ids, bayes regret": ({"regret": "bayes"}, None, []),
}


def settings_of(rule: str, number: float | None) -> dict:
    explore, name, _ = RULES[rule]
    explore = dict(explore) if name is None else {**explore, name: number}
    prior = {"heads": {"q": {"prior_scale": 0.0}}} if rule == "ids, literal" else {}
    return {"explore": explore, **prior}


def slug(*parts) -> str:
    text = "-".join(str(part) for part in parts if part is not None)
    return "".join(c if c.isalnum() or c in ".-" else "_" for c in text)


def train(args, rule: str, number: float | None, task: str, seeds: int, seed: int) -> idrl.Run:
    return idrl.train(
        "c51-ids", task, seeds=seeds, seed=seed, steps=args.steps or STEPS[task],
        settings=settings_of(rule, number), out=Path(args.out) / slug(rule, number, task, seed),
    )  # fmt: skip


def found(run: idrl.Run, task: str) -> list[dict]:
    """A row a seed."""
    env, episodes = make_env(task), EPISODES[task]
    optimum = 1.0 if task.startswith("noisy_chain") else env.optimal_return()
    rows, scores, out = run.episodes, run.evaluations, []
    for seed in run.seeds:
        mine = rows.where(seed=seed)
        last = scores.where(seed=seed)["return_mean"][-5:]
        row: dict = {"seed": seed, "greedy": float(np.mean(last)) / optimum}
        if task.startswith("noisy_chain"):
            its = measure(mine, env.size, run.config.learning.gamma, episodes)
            row |= {"regret": its["regret"], "solved": its["gambles"], "never": its["never_solved"]}
        else:
            mine = mine[:episodes]
            at = solved_episode(mine["bad"].tolist())
            row |= {"regret": float((optimum - mine["return"]).sum()), "solved": at or len(mine)}
            row["never"] = int(at is None)
        row["worst"] = optimum * episodes
        out.append(row)
    return out


def diagonal(run: idrl.Run, rule: str, task: str) -> list[dict]:
    """What the last weights say of the diagonal, per row of the sea: right (the way to the prize)
    and left, mean over seeds."""
    program = make_program(run.config, make_env(task))
    state, _, _ = restore_state(program, RunFolder.open(run.path))
    agent, size = program.agent, program.env.size
    cells = np.zeros((size, size, size), np.uint8)
    cells[np.arange(size), np.arange(size), np.arange(size)] = 1

    def say(params, prior):
        first, memory, key = np.ones(size, bool), np.zeros(size, np.int32), jax.random.key(0)
        decision, _ = agent.choose(agent.spec.explore, params, prior, cells, first, memory, key, 0)
        return decision, agent.beliefs(params, prior, cells).return_variance

    said, variance = jax.device_get(jax.jit(jax.vmap(say))(state.agent.params, state.agent.prior))
    right = np.asarray(state.task)[:, np.arange(size), np.arange(size)]
    out = []
    for name, action in (("right", right), ("left", 1 - right)):
        pick = lambda x, a=action: np.take_along_axis(x, a[..., None], -1)[..., 0]  # noqa: E731
        columns = {
            "mu": pick(said.mu), "sigma2": pick(said.sigma**2), "var_z": pick(variance),
            "rho2": pick(said.rho2), "regret": pick(said.regret), "gain": pick(said.info_gain),
            "ratio": pick(said.ratio), "chosen": (said.action == action).astype(float),
        }  # fmt: skip
        out += [
            {"rule": rule, "task": task, "row": r, "action": name}
            | {key: float(np.median(v[:, r])) for key, v in columns.items() if key != "chosen"}
            | {"chosen": float(columns["chosen"][:, r].mean())}
            for r in range(size)
        ]
    return out


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, in threads")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, help="per seed; default: the preset's")
    parser.add_argument("--rules", nargs="+", default=list(RULES))
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--chosen", help="a chosen.json of an earlier search: no search now")
    args = parser.parse_args(argv)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(args.jobs) as pool:
        chosen = json.loads(Path(args.chosen).read_text()) if args.chosen else search(args, pool)
        (out / "chosen.json").write_text(json.dumps(chosen, indent=1) + "\n", encoding="utf-8")
        print(chosen, flush=True)
        seeds: list[dict] = []
        cells: list[dict] = []

        def final(job: tuple[str, str]) -> None:
            task, rule = job
            run = train(args, rule, chosen[rule], task, args.seeds, 100)
            seeds.extend({"task": task, "rule": rule} | row for row in found(run, task))
            if task.startswith("deep_sea"):
                cells.extend(diagonal(run, rule, task))
            write(out / "seeds.csv", list(seeds))
            write(out / "diagonal.csv", list(cells) or [{}])
            print(job, flush=True)

        list(pool.map(final, [(task, rule) for task in args.tasks for rule in args.rules]))
    report(out, seeds, chosen, args)


def search(args, pool) -> dict[str, float | None]:
    jobs = [
        (rule, number, task)
        for task in TASKS[:2] for rule in args.rules for number in RULES[rule][2]
    ]  # fmt: skip

    def one(job):
        rule, number, task = job
        rows = found(train(args, rule, number, task, 8, 0), task)
        share = float(np.mean([row["regret"] / row["worst"] for row in rows]))
        print(job, share, flush=True)
        return {"rule": rule, "number": number, "task": task, "regret_share": share}

    tried = list(pool.map(one, jobs))
    if tried:
        write(Path(args.out) / "tried.csv", tried)

    def total(rule: str, number: float) -> float:
        return sum(r["regret_share"] for r in tried if (r["rule"], r["number"]) == (rule, number))

    return {
        rule: min(numbers, key=lambda n, r=rule: total(r, n)) if numbers else None
        for rule, (_, _, numbers) in RULES.items() if rule in args.rules
    }  # fmt: skip


def report(out: Path, seeds: list[dict], chosen: dict, args) -> None:
    summary = []
    for task in args.tasks:
        for rule in args.rules:
            rows = [r for r in seeds if (r["task"], r["rule"]) == (task, rule)]
            row: dict = {"task": task, "rule": rule, "number": chosen[rule], "seeds": len(rows)}
            row["never"] = sum(r["never"] for r in rows)
            for name in ("regret", "solved", "greedy"):
                values = [r[name] for r in rows]
                row[name], row[f"{name}_ci95"] = float(np.mean(values)), interval(values)
            summary.append(row)
    write(out / "summary.csv", summary)
    about = describe()
    lines = [
        f"Mean over {args.seeds} seeds ± half of the 95% interval (Student), "
        + ", ".join(f"{count} episodes of {task}" for task, count in EPISODES.items()) + ".", "",
    ]  # fmt: skip
    for task in args.tasks:
        last = "gambles" if task.startswith("noisy") else "solved at episode"
        lines += [
            f"`{task}`",
            "",
            f"| rule | λ or β | regret | {last} | seeds that never did | greedy |",
        ]
        lines += ["|---|---|---|---|---|---|"]
        for r in (r for r in summary if r["task"] == task):
            cells = [f"{r[n]:.3g} ± {r[f'{n}_ci95']:.2g}" for n in ("regret", "solved", "greedy")]
            cells.insert(2, f"{r['never']} of {r['seeds']}")
            lines.append(f"| {r['rule']} | {r['number'] or ''} | " + " | ".join(cells) + " |")
        lines.append("")
    lines.append(
        f"`{about['command']}`, {jax.device_count()} × {jax.devices()[0].device_kind}, "
        + ", ".join(f"{name} {version}" for name, version in about["versions"].items()) + "."
    )  # fmt: skip
    (out / "summary.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
