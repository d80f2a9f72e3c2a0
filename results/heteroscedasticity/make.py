"""Learned against true return variance on the four tasks of `hetero/…`.

    python results/heteroscedasticity/make.py

Trains c51-ids and qrdqn-ids at their presets, but with uniformly random actions (the variance of
what is not tried cannot be learned) and two heads, which ρ² does not depend on; all four tasks in
one program. Writes variance.csv beside this file and docs/images/heteroscedasticity.png.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import jax
import numpy as np

from idrl.config import resolve
from idrl.envs.families.heteroscedastic import SOURCES, heteroscedastic, truth
from idrl.report.statistics import interval
from idrl.report.style import colour, figure
from idrl.runs.session import make_program
from idrl.storage.folder import describe
from idrl.system.devices import prepare
from idrl.training.loop import train

HERE = Path(__file__).parent
AGENTS = ("c51-ids", "qrdqn-ids")
MARKERS = {"c51-ids": "o", "qrdqn-ids": "s"}


def learn(agent: str, seeds: int, steps: int) -> list[dict]:
    """A row per task, observation and action: learned variance over seeds, and the truth."""
    uniform = {"kind": "epsilon_greedy", "start": 1.0, "end": 1.0, "decay_steps": 0}
    change = {"explore": uniform, "seeds": seeds, "heads": {"q": {"k": 2}}}
    change["training"] = {"steps": steps}
    config = resolve(agent, "hetero/rewards", changes=[change])
    program = make_program(config, heteroscedastic())
    *_, last = train(program, None, 0, program.seed_keys(0))
    agent_state, tasks = last.state.agent, last.state.task
    rows = []
    for name, (mdp, _) in SOURCES.items():
        known = truth(mdp, config.learning.gamma)
        # A seed's task is the one whose rewards and moves it has.
        mine = [
            i for i in range(seeds)
            if np.allclose(tasks.reward[i], mdp.reward) and np.allclose(tasks.move[i], mdp.move)
        ]  # fmt: skip
        learned = np.array([
            program.agent.beliefs(
                *jax.tree.map(lambda x, i=i: x[i], (agent_state.params, agent_state.prior)),
                known.obs.astype(np.float32),
            ).return_variance
            for i in mine
        ])  # fmt: skip
        for state, action in np.ndindex(known.variance.shape):
            values = learned[:, state, action]
            rows.append({
                "agent": agent, "source": name, "observation": int(known.obs[state].argmax()),
                "action": action, "seeds": len(mine), "var_z": known.variance[state, action],
                "learned": values.mean(), "learned_ci95": interval(values),
            })  # fmt: skip
    return rows


def draw(rows: list[dict], path: Path) -> None:
    made, axes = figure(1, 4, figsize=(11, 3.8), sharex=True, sharey=True)
    for axis, (name, (_, text)) in zip(axes, SOURCES.items(), strict=True):
        axis.plot([0, 2.6], [0, 2.6], color="0.6", linewidth=1, zorder=1)
        for agent in AGENTS:
            mine = [row for row in rows if (row["agent"], row["source"]) == (agent, name)]
            x, y, half = (
                [row[column] for row in mine] for column in ("var_z", "learned", "learned_ci95")
            )
            # side by side: both agents have the same truths
            x = np.array(x) + (0.03 if agent == AGENTS[1] else -0.03)
            axis.errorbar(
                x, y, yerr=half, fmt=MARKERS[agent], markersize=5, linewidth=1,
                color=colour(agent), label=agent, zorder=2,
            )  # fmt: skip
        axis.set_title(f"{text}\nhetero/{name}", fontsize=9)
        axis.set_xlabel("true Var Z")
        axis.set_aspect("equal")
    axes[0].set_ylabel("learned return variance")
    axes[0].legend(frameon=False, fontsize=8)
    made.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="they draw their task")
    parser.add_argument("--steps", type=int, default=6000, help="per seed")
    parser.add_argument("--out", default=str(HERE), help="for variance.csv and about.txt")
    image = HERE.parent.parent / "docs" / "images" / "heteroscedasticity.png"
    parser.add_argument("--image", default=str(image))
    args = parser.parse_args()
    prepare()
    rows = [row for agent in AGENTS for row in learn(agent, args.seeds, args.steps)]
    Path(args.out).mkdir(parents=True, exist_ok=True)
    with open(Path(args.out) / "variance.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(
            {k: round(float(v), 4) if isinstance(v, float | np.floating) else v
             for k, v in row.items()} for row in rows
        )  # fmt: skip
    about = describe()
    lines = [f"{name}: {about[name]}" for name in ("command", "commit", "machine", "versions")]
    (Path(args.out) / "about.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    draw(rows, Path(args.image))
    for agent in AGENTS:
        off = [abs(row["learned"] - row["var_z"]) for row in rows if row["agent"] == agent]
        print(f"{agent}: mean |learned − true| {np.mean(off):.3f}, largest {np.max(off):.3f}")


if __name__ == "__main__":
    main()
