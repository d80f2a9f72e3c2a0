"""One look for every figure: restrained, colour-blind safe, one colour per agent everywhere."""

from __future__ import annotations

import zlib
from typing import Any

# Okabe and Ito's palette
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
_FIXED = ("c51-ids", "dqn", "dqn-ids", "bootstrapped-dqn", "qrdqn-ids", "ddqn")


def colour(agent: str) -> str:
    if agent in _FIXED:
        return _PALETTE[_FIXED.index(agent)]
    return _PALETTE[zlib.crc32(agent.encode()) % len(_PALETTE)]


def figure(*args: Any, **kwargs: Any):
    """`plt.subplots` without a screen. `spines=False`: leave them (polar axes have others)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    size = kwargs.pop("figsize", (7, 4))
    cartesian = kwargs.pop("spines", True)
    made = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(made)
    axes = made.subplots(*args, **kwargs)
    for axis in made.axes:
        if cartesian:
            axis.spines[["top", "right"]].set_visible(False)
        axis.grid(True, alpha=0.25)
    return made, axes
