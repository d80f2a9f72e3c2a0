"""The table of `benchmarks.untuned`: normalised scores, aggregates, and who is worse than `dqn`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from idrl.report.statistics import Estimate, chance_better, estimate, mean_over_seeds

if TYPE_CHECKING:
    from benchmarks.untuned import Task

BASELINE = "dqn"
LAST = 0.25  # of a run: where its score is from
LEVEL = 0.05
PERMUTATIONS = 20_000
# Normalised scores by agent, then by task: one for each seed.
Scores = Mapping[str, Mapping[str, np.ndarray]]


def normalised(rows: Sequence[Mapping[str, str]], tasks: Sequence[Task]) -> Scores:
    """Of the seeds that were evaluated to the end, in the order of seeds."""
    by_name = {task.name: task for task in tasks}
    runs: dict[tuple[str, str, int], dict[int, float]] = defaultdict(dict)
    length: dict[tuple[str, str, int], int] = {}
    for row in rows:
        if row["task"] not in by_name:
            continue
        key = row["agent"], row["task"], int(row["seed"])
        if length.get(key) != int(row["of"]):  # of another length: the later run counts
            runs[key], length[key] = {}, int(row["of"])
        text = row["return_mean"]
        runs[key][int(row["step"])] = float(text) if text else math.nan
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, evaluations in sorted(runs.items()):
        agent, name, _ = key
        if max(evaluations) >= length[key]:
            found[agent][name].append(score(evaluations, length[key], by_name[name]))
    return {a: {t: np.array(x) for t, x in each.items()} for a, each in found.items()}


def score(evaluations: Mapping[int, float], steps: int, task: Task) -> float:
    """The mean of the last quarter, 0 for `task.low` and 1 for `task.best`.

    Where there is no time limit an evaluation without an end, or below `low`, counts as `low`.
    Elsewhere a window in which nothing ends does not happen, unless an agent diverged: `low` too.
    """
    values = np.array([x for step, x in evaluations.items() if step > (1 - LAST) * steps])
    values = np.where(np.isfinite(values), values, task.low)
    if task.endless:
        values = np.maximum(values, task.low)
    return float((values.mean() - task.low) / (task.best - task.low))


def p_worse(ours: np.ndarray, theirs: np.ndarray) -> float:
    """One-sided permutation test of the difference of means: how often a random split of all runs
    is as bad for us as ours is."""
    pool, n = np.concatenate([ours, theirs]), len(ours)
    rng = np.random.default_rng(0)
    drawn = rng.permuted(np.tile(pool, (PERMUTATIONS, 1)), axis=1)[:, :n].mean(1)
    slack = 1e-9 * (np.abs(pool).max() + 1e-300)  # sums of the same numbers in another order
    return float((1 + (drawn <= ours.mean() + slack).sum()) / (1 + PERMUTATIONS))


def holm(p: Mapping[str, float], level: float = LEVEL) -> list[str]:
    """The names whose hypotheses are rejected, the family-wise error being at most `level`."""
    rejected = []
    for i, (name, value) in enumerate(sorted(p.items(), key=lambda pair: pair[1])):
        if value > level / (len(p) - i):
            break
        rejected.append(name)
    return rejected


def table(rows: Sequence[Mapping[str, str]], tasks: Sequence[Task], agents: Sequence[str]) -> str:
    scores = normalised(rows, tasks)
    agents = [agent for agent in agents if agent in scores]
    named = [task.name for task in tasks]
    sparse = [task.name for task in tasks if task.sparse]
    head = ["task", "seeds", *agents]
    lines = [_row(head), _row(["---"] * len(head))]
    for task in tasks:
        runs = [scores[agent].get(task.name) for agent in agents]
        seeds = sorted({len(x) for x in runs if x is not None})
        if seeds:
            label = f"`{task.name}`" + (" (sparse)" if task.sparse else "")
            lines.append(_row([label, "–".join(map(str, seeds)), *map(_mean, runs)]))
    out = [
        "Normalised scores: 0 is the task's low, 1 its best; means over seeds with 95% bootstrap "
        "intervals.", "", *lines, "",
        f"Over tasks: IQM and probability of improvement over `{BASELINE}`, stratified bootstrap "
        "intervals.", "",
    ]  # fmt: skip
    head = ["agent", "tasks", "IQM", "improves", "IQM, sparse", "improves, sparse",
            f"worse than {BASELINE}", f"better than {BASELINE}"]  # fmt: skip
    out += [_row(head), _row(["---"] * len(head))]
    for agent in agents:
        ours, theirs = scores[agent], scores.get(BASELINE, {})
        compared = [] if agent == BASELINE else [t for t in named if t in ours and t in theirs]
        worse = holm({t: p_worse(ours[t], theirs[t]) for t in compared})
        better = holm({t: p_worse(theirs[t], ours[t]) for t in compared})
        cells = [agent, str(len(ours))]
        for group in (named, sparse):
            mine = [ours[t] for t in group if t in ours]
            both = [t for t in group if t in compared]
            cells.append(str(estimate(mine)) if mine else "–")
            cells.append(str(_improves(ours, theirs, both)) if both else "–")
        cells += [", ".join(f"`{t}`" for t in sorted(x, key=named.index)) or "–"
                  for x in (worse, better)]  # fmt: skip
        out.append(_row(cells))
    out += ["", f"Worse and better: one-sided permutation tests of means, {LEVEL:.0%} for all "
            "tasks of an agent together (Holm)."]  # fmt: skip
    return "\n".join(out)


def _improves(ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray], tasks) -> Estimate:
    return chance_better([ours[t] for t in tasks], [theirs[t] for t in tasks])


def _mean(runs: np.ndarray | None) -> str:
    if runs is None:
        return "–"
    return str(mean_over_seeds(runs))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
