"""One look for figures and pages: restrained, colour-blind safe, an agent's the same everywhere."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

# Okabe and Ito's palette without its black and yellow: those vanish on a dark or a white page.
_BLUE, _RED, _GREEN, _PINK, _ORANGE, _SKY, _GREY = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C",
)  # fmt: skip
_PALETTE = (_BLUE, _RED, _GREEN, _PINK, _ORANGE, _SKY, _GREY)
_DASHES = ("solid", "dash", "dot", "dashdot")  # Plotly's names
_DOTS = ("dot", "5px,2px,1px,2px", "1px,5px", "9px,2px,1px,2px,1px,2px")  # of published curves
_MATPLOTLIB: dict[str, Any] = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_MATPLOTLIB |= {  # as Plotly draws them
    _DOTS[0]: (0, (1, 1.5)), _DOTS[1]: (0, (5, 2, 1, 2)), _DOTS[2]: (0, (1, 5)),
    _DOTS[3]: (0, (9, 2, 1, 2, 1, 2)),
}  # fmt: skip

# Relatives share a colour and differ by their dashes; the first of each is drawn solid.
_FAMILIES = {
    _BLUE: ("c51-ids", "c51-thompson"),
    _RED: ("dqn", "ddqn", "dueling", "prioritized"),
    _GREEN: ("dqn-ids", "ddpg-ids"),
    _PINK: ("bootstrapped-dqn", "bootstrapped-ucb", "ensemble-vote", "bdqn"),
    _ORANGE: ("qrdqn-ids", "qr-dqn", "iqn", "iqn-ids"),
    _SKY: ("c51", "noisynet-dueling", "prioritized-dueling"),  # not c51-ids's: the paper's pair
    _GREY: ("rainbow", "noisynet-dqn"),
}
_FIXED = {
    name: (tint, _DASHES[i]) for tint, names in _FAMILIES.items() for i, name in enumerate(names)
}


class Look(NamedTuple):
    colour: str
    dash: str  # by Plotly's name

    @property
    def line(self) -> Any:
        """The dash as matplotlib has it."""
        return _MATPLOTLIB[self.dash]


def look(agent: str, variant: int = 0) -> Look:
    """An agent's, wherever it is drawn. Agents not listed here get theirs from their name. Another
    setting of the same agent (`variant`) keeps the colour and takes the next dashes."""
    if agent in _FIXED:
        tint, dash = _FIXED[agent]
    else:
        number = zlib.crc32(agent.encode("utf-8", "surrogatepass"))
        tint = _PALETTE[number % len(_PALETTE)]
        dash = _DASHES[number // len(_PALETTE) % len(_DASHES)]
    return Look(tint, _DASHES[(_DASHES.index(dash) + variant) % len(_DASHES)])


def dotted(agents: Iterable[str]) -> dict[str, Look]:
    """Looks of published curves, each in its agent's colour; those that share one differ by their
    dots."""
    known: dict[str, int] = {}  # published agents of a colour
    found = {}
    for agent in sorted(set(agents), key=lambda agent: (_DASHES.index(look(agent).dash), agent)):
        tint = look(agent).colour
        number = known[tint] = known.get(tint, -1) + 1
        found[agent] = Look(tint, _DOTS[number % len(_DOTS)])
    return found


def colour(agent: str) -> str:
    return look(agent).colour


def caption(text: str) -> str:
    """A name as a figure can show it: dollars are no mathematics, an underscore in front hides
    nothing from the legend, and a letter that the font lacks is a box."""
    known = _letters()
    plain = "".join(c if ord(c) in known or c == "\n" else "□" for c in text)
    return plain.replace("$", r"\$").replace("_", " _", plain.startswith("_"))


@functools.cache
def _letters() -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("DejaVu Sans")).get_charmap())


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
