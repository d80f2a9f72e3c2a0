"""Rules side by side on one setting: a table, its CSV and the curves."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from idrl.bandits.choosing import RULES, BanditRule
from idrl.bandits.settings import SETTINGS
from idrl.bandits.simulation import Plays, simulate, simulated_rule
from idrl.errors import IdrlError, unknown
from idrl.report.statistics import interval, mean_over_seeds
from idrl.report.style import figure

EARLY = 20  # samples after which what has been learnt is asked, as in the figure
_COLOURS = {  # Okabe and Ito's, as in every figure; dashes tell the variants of IDS apart
    "ids": ("#0072B2", "-"),
    "ids-ucb": ("#0072B2", "--"),
    "ids-variance": ("#56B4E9", "-"),
    "ids-additive": ("#56B4E9", "--"),
    "ids-randomized": ("#56B4E9", ":"),
    "vids": ("#009E73", "-"),
    "ucb": ("#D55E00", "-"),
    "thompson": ("#CC79A7", "-"),
    "ei": ("#E69F00", "-"),
    "greedy": ("#999999", "-"),
}


class BanditComparison(NamedTuple):
    """Every rule's plays of the same problems under the same noise."""

    setting: str
    rules: dict[str, BanditRule]
    plays: dict[str, Plays]

    def total(self, rule: str) -> np.ndarray:
        """`[S]` cumulative regret of each seed."""
        return self.plays[rule].regret.sum(1)

    def measures(self, rule: str) -> dict[str, np.ndarray]:
        """`[S]` of what the table tells; differences are seed by seed, so luck cancels."""
        plays = self.plays[rule]
        early = min(EARLY, plays.regret.shape[1])
        told = {"regret": self.total(rule)}
        for other in ("ucb", "thompson"):
            if other in self.plays:
                told[f"minus_{other}"] = self.total(rule) - self.total(other)
        told[f"simple_regret_{early}"] = plays.simple_regret[:, early - 1]
        told["simple_regret_end"] = plays.simple_regret[:, -1]
        told[f"noisy_share_{early}"] = plays.noisy[:, :early].mean(1)
        return told


def compare(
    setting: str,
    rules: Sequence[str] = tuple(RULES),
    *,
    seeds: int = 20,
    first_seed: int = 0,
    steps: int | None = None,
    lam: float = 2.0,
    tell: Callable[[str], None] = lambda rule: None,
) -> BanditComparison:
    """Play every rule; `tell` hears the name of the rule that is about to be played."""
    if setting not in SETTINGS:
        raise unknown("setting", setting, SETTINGS)
    if not rules:
        raise IdrlError("there must be a rule to play.")
    if len(set(rules)) < len(rules):
        raise IdrlError("every rule can be named once only.")
    # All are checked before the first is played, so that a typo costs no minutes.
    made = {name: simulated_rule(name, lam=lam) for name in rules}
    plays = {}
    for name, rule in made.items():
        tell(name)
        plays[name] = simulate(setting, rule, range(first_seed, first_seed + seeds), steps)
    return BanditComparison(setting, made, plays)


def table_rows(comparison: BanditComparison) -> tuple[list[str], list[list[str]]]:
    """Heads and cells for people, the smallest regret first; the CSV tells more."""
    order = sorted(comparison.plays, key=lambda rule: comparison.total(rule).mean())
    hidden = ("simple_regret_end", "noisy_share")
    shown = [m for m in comparison.measures(order[0]) if not m.startswith(hidden)]
    rows = []
    for rule in order:
        measures = comparison.measures(rule)
        rows.append([rule, *(str(mean_over_seeds(measures[measure])) for measure in shown)])
    return ["rule", *(measure.replace("_", " ") for measure in shown)], rows


def write_csv(comparison: BanditComparison, target: str | Path) -> None:
    """A row per rule: the mean of each measure, and half its 95% interval beside it."""
    with open(target, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        for i, (name, plays) in enumerate(comparison.plays.items()):
            row: dict[str, str | int | float] = {
                "setting": comparison.setting, "rule": name, "lam": comparison.rules[name].lam,
                "seeds": plays.regret.shape[0], "steps": plays.regret.shape[1],
            }  # fmt: skip
            for measure, values in comparison.measures(name).items():
                row[measure] = f"{values.mean():.6g}"
                row[f"{measure}_95"] = f"{interval(values):.3g}"
            if i == 0:
                writer.writerow(row)
            writer.writerow(row.values())


def regret_figure(comparison: BanditComparison, target: str | Path) -> None:
    """Cumulative regret by step, with 95% intervals over seeds."""
    fig, axis = figure(figsize=(9, 4.8))
    totals = {rule: comparison.total(rule).mean() for rule in comparison.plays}
    # A rule that never recovers would squeeze all others into a line at the bottom.
    top = 1.1 * min(max(totals.values()), 3 * float(np.median(list(totals.values()))))
    for name in sorted(totals, key=lambda rule: -totals[rule]):  # the legend in the curves' order
        curves = comparison.plays[name].regret.cumsum(1)
        seeds, steps = curves.shape
        mean, x = curves.mean(0), np.arange(1, steps + 1)
        colour, dash = _COLOURS[name]
        leaves = " ↑" if mean[-1] > top else ""
        axis.plot(x, mean, color=colour, ls=dash, lw=1.8, label=f"{name} {mean[-1]:.3g}{leaves}")
        if seeds > 1:
            half = np.array([interval(column) for column in curves.T])
            axis.fill_between(x, mean - half, mean + half, color=colour, alpha=0.12, lw=0)
    count = next(iter(comparison.plays.values())).regret.shape[0]
    axis.set(
        xlabel="step", ylabel="cumulative regret", xlim=(0, None), ylim=(0, top or None),
        title=f"{comparison.setting}: {SETTINGS[comparison.setting].line} ({count} seeds, 95%)",
    )  # fmt: skip
    fig.legend(loc="outside right upper", fontsize=9, frameon=False, title="regret at the end")
    fig.savefig(target, dpi=150)
