"""What the IDS agents did and believed over training: a figure for every two games."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.claim.collecting import seeds_of
from idrl.report.series import QUANTITIES
from idrl.report.style import caption, figure, look

SHOWN = {
    "not_greedy": "share of actions that\nare not greedy",
    **{name: QUANTITIES[name] for name in ("sigma2", "rho2", "info_gain")},
}
ABOUT = (
    "How often the IDS agents are not greedy, and medians of σ², ρ² and I over states and actions "
    "(lines: mean over seeds, bands: lowest to highest seed)"
)


def write_diagnostics(rows: Sequence[dict[str, str]], folder: Path) -> list[tuple[str, str]]:
    """The figures' names, with what each shows.

    Args:
        rows: of `diagnostics.csv`.
        folder: where the figures go.
    """
    envs = sorted({row["env"] for row in rows})
    made = []
    for number, first in enumerate(range(0, len(envs), 2), start=1):
        pair = envs[first : first + 2]
        name = f"diagnostics-{number}"
        _draw([row for row in rows if row["env"] in pair], pair).savefig(
            folder / f"{name}.png", dpi=120
        )
        made.append((name, f"{', '.join(pair)}: {ABOUT[0].lower()}{ABOUT[1:]}"))
    return made


def _draw(rows: Sequence[dict[str, str]], envs: Sequence[str]):
    fig, axes = figure(
        len(SHOWN), len(envs), figsize=(1 + 4 * len(envs), 2 * len(SHOWN)), squeeze=False,
        sharex="col",
    )  # fmt: skip
    handles = {}
    for column, env in enumerate(envs):
        for row, (quantity, label) in enumerate(SHOWN.items()):
            axis = axes[row, column]
            mine = [r for r in rows if (r["env"], r["quantity"]) == (env, quantity)]
            for agent in sorted({r["agent"] for r in mine}):
                runs = together([r for r in mine if r["agent"] == agent])
                handles[agent] = line(axis, runs, agent)
            if quantity != "not_greedy" and _wide(mine):
                axis.set_yscale("log")
            if not column:
                axis.set_ylabel(label, fontsize="small")
        axes[0, column].set_title(caption(env), fontsize="medium")
        axes[-1, column].set_xlabel("steps of each seed", fontsize="small")
    fig.legend(
        handles.values(), map(caption, handles), loc="outside upper center", ncols=len(handles),
        frameon=False, fontsize="small",
    )  # fmt: skip
    return fig


def together(rows: Sequence[dict[str, str]]) -> list[dict[str, float]]:
    """Over the seeds of all runs, at the steps of the first."""
    runs: dict[range, list[dict[str, str]]] = {}
    for row in rows:
        runs.setdefault(seeds_of(row), []).append(row)
    steps = np.array([float(row["steps"]) for row in next(iter(runs.values()))])

    def at(mine: list[dict[str, str]], name: str) -> np.ndarray:
        there, values = ([float(row[column]) for row in mine] for column in ("steps", name))
        return np.interp(steps, there, values)

    weights = [len(seeds) for seeds in runs]
    mean, low, high = (
        how([at(mine, name) for mine in runs.values()])
        for name, how in (
            ("mean", lambda x: np.average(x, 0, weights)),
            ("lowest", lambda x: np.min(x, 0)),
            ("highest", lambda x: np.max(x, 0)),
        )
    )
    columns = ("steps", "mean", "lowest", "highest")
    return [
        dict(zip(columns, row, strict=True)) for row in zip(steps, mean, low, high, strict=True)
    ]


def line(axis, rows: Sequence[Mapping[str, Any]], agent: str):
    """Draw `mean` over `steps`, and a band from `lowest` to `highest`."""
    from matplotlib.ticker import EngFormatter

    name, _, variant = agent.partition(" (")
    tint = look(name, bool(variant))
    steps, mean, low, high = (
        np.array([float(row[name]) for row in rows])
        for name in ("steps", "mean", "lowest", "highest")
    )
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.fill_between(steps, low, high, color=tint.colour, alpha=0.18, lw=0)
    return axis.plot(steps, mean, color=tint.colour, ls=tint.line, lw=1.5)[0]


def _wide(rows: Sequence[dict[str, str]]) -> bool:
    """Whether most of it would otherwise lie on the axis."""
    values = np.array([float(row["lowest"]) for row in rows])
    top = max((float(row["highest"]) for row in rows), default=0.0)
    return bool(values.size) and bool((values > 0).all()) and np.median(values) < top / 20
