"""The scores as a radar: one spoke an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from idrl.bsuite.sweeps import PUBLISHED
from idrl.report.style import caption, colour, figure

_LINES = {"boot_dqn": ("#666666", "--"), "dqn": ("#999999", ":")}  # random would sit at the centre


def radar(agent: str, scores: Mapping[str, float], target: Path, subtitle: str = "") -> None:
    """`scores` by experiment, around the circle in their order."""
    names = list(scores)
    angles = np.linspace(0, 2 * np.pi, len(names), endpoint=False)
    fig, axis = figure(figsize=(7.5, 6), subplot_kw={"projection": "polar"}, spines=False)
    axis.set_theta_offset(np.pi / 2)
    axis.set_theta_direction(-1)
    for other, (tint, style) in _LINES.items():
        _outline(axis, angles, [PUBLISHED[name][other] for name in names], color=tint, ls=style,
                 lw=1.2, marker=".", label=f"{other}, published")  # fmt: skip
    mine = [scores[name] for name in names]
    _outline(axis, angles, mine, color=colour(agent), lw=2, marker="o", ms=5, label=caption(agent))
    if len(names) > 2:
        axis.fill(angles, mine, color=colour(agent), alpha=0.15, lw=0)
    axis.set_ylim(0, 1.05)
    axis.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "0.5", "", "1"], color="#666666", fontsize=8)
    axis.set_rlabel_position(180 / max(len(names), 1))  # between two spokes
    axis.set_xticks(angles, [_label(name) for name in names])
    axis.tick_params(axis="x", pad=14)
    axis.spines["polar"].set_visible(False)
    fig.suptitle("bsuite scores" + (f"\n{subtitle}" if subtitle else ""), fontsize="medium")
    fig.legend(frameon=False, fontsize="small", loc="outside lower center", ncols=3)
    fig.savefig(target, dpi=120)


def _label(name: str) -> str:
    game, _, kind = name.rpartition("_")
    return f"{game.replace('_', ' ')}\n{kind}"


def _outline(axis, angles, values, **look) -> None:
    """A closed line; fewer than three spokes have no inside and are dots on their spokes."""
    if len(angles) > 2:
        angles, values = np.append(angles, angles[0]), [*values, values[0]]
    else:
        look["ls"] = "none"
    axis.plot(angles, values, **look)
