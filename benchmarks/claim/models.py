"""Trained weights to look at: the best seed of a run, as one file that idrl.load, `idrl play`,
`idrl evaluate` and `idrl explain` read."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import idrl
from benchmarks.claim.collecting import read
from idrl.errors import IdrlError
from idrl.report.reading import find_runs
from idrl.runs.loading import MODEL

INDEX = "models.csv"
COLUMNS = ("file", "agent", "env", "seed", "score", "steps", "kilobytes")


def save_models(
    studies: Sequence[str | Path], out: Path, agents: Sequence[str] = (), envs: Sequence[str] = ()
) -> list[Path]:
    """Write `out`/GAME-AGENT.safetensors for each run, and their list.

    Args:
        studies: folders of studies, or of runs.
        out: the folder of the models.
        agents: those to save; by default all.
        envs: the same of environments.
    """
    out.mkdir(parents=True, exist_ok=True)
    index = {row["file"]: row for row in read(out / INDEX)}
    made = []
    for path in find_runs(studies):
        run = idrl.open_run(path)
        config = run.config
        wanted = (not agents or config.agent in agents) and (not envs or config.env in envs)
        if not (wanted and run.finished):
            continue
        policy = idrl.load(run)
        target = out / f"{name_of(config.env, config.agent)}{MODEL}"
        best = max(row["best"] for row in run.evaluations.where(seed=policy.seed))
        if target in made and best <= float(index[target.name]["score"]):
            continue  # other seeds of it, in a run of their own, did better
        policy.save(target)
        index[target.name] = {
            "file": target.name, "agent": config.agent, "env": config.env, "seed": policy.seed,
            "score": f"{best:.4g}", "steps": config.training.steps,
            "kilobytes": round(target.stat().st_size / 1e3),
        }  # fmt: skip
        made += [] if target in made else [target]
    if not made:
        raise IdrlError("none of these runs is finished and of these agents and environments.")
    with open(out / INDEX, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(index[name] for name in sorted(index))
    return made


def name_of(env: str, agent: str) -> str:
    """minatar/breakout, c51-ids → minatar-breakout-c51-ids."""
    return re.sub(r"[^A-Za-z0-9_.=-]+", "-", f"{env}-{agent}")
