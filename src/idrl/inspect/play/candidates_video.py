"""The panels of a video for continuous actions: points along the action, or a list of a few."""

from __future__ import annotations

import numpy as np

from idrl.inspect.play.candidates import in_words
from idrl.inspect.play.episode import Episode

TAKEN, OTHER, ACTOR = "#D55E00", "#0072B2", "#009E73"
_TITLES = {
    "mu": "μ", "rho2": "noise ρ²", "regret": "regret Δ̂", "info_gain": "gain I",
    "ratio": "ratio Ψ",
}  # fmt: skip


def panels(episode: Episode) -> dict[str, str]:
    """What is drawn of the agent, with titles; σ is the bars around μ."""
    spread = {"mu": "μ ± λσ"} if "sigma" in episode.shown else {}
    titles = _TITLES | spread
    return {name: titles[name] for name in episode.shown if name in titles}


def half_width(episode: Episode, t: int) -> np.ndarray | None:
    """λσ, where σ means something."""
    return episode.lam * np.nan_to_num(episode.sigma[t]) if "sigma" in episode.shown else None


def draw_candidates(places, episode: Episode, t: int) -> None:
    """Orange is the action taken, green the actor's."""
    assert episode.candidates is not None
    along = episode.candidates.shape[2] == 1
    for number, (name, label) in enumerate(panels(episode).items()):
        axis, values = places[number], getattr(episode, name)[t]
        axis.clear()
        axis.set_title(label, fontsize="small")
        axis.tick_params(labelsize="x-small")
        axis.grid(True, alpha=0.25)
        values = np.where(np.isfinite(values), values, np.nan)
        half = half_width(episode, t) if name == "mu" else None
        if along:
            _along(axis, episode, t, values, half)
            if name == "ratio":
                _logarithmic(axis, values)
        else:
            _listed(axis, episode, t, values, half, named=number in (0, 3))


def _along(axis, episode: Episode, t: int, values, half) -> None:
    assert episode.candidates is not None
    where = episode.candidates[t, :, 0]
    if half is not None:
        axis.errorbar(where, values, half, fmt="none", ecolor="#BBBBBB", zorder=1)
    axis.scatter(where, values, s=6, color=OTHER, zorder=2)
    for number, colour, size in _marked(episode, t):
        axis.scatter(where[number], values[number], s=size, color=colour, zorder=3)
    low, high = episode.candidates.min(), episode.candidates.max()  # the same at all steps
    axis.set_xlim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    axis.ticklabel_format(axis="y", useOffset=False)
    axis.locator_params(axis="x", nbins=4)


def _logarithmic(axis, values) -> None:
    """With three ticks: a short axis has no room for more."""
    shown = values[values > 0]
    if len(shown) and shown.min() < shown.max():
        axis.set_yscale("log")
        ticks = np.geomspace(shown.min(), shown.max(), 3)
        axis.set_yticks(ticks, [f"{x:.3g}" for x in ticks])
        axis.minorticks_off()
        axis.set_title("ratio Ψ (log)", fontsize="small")


def _listed(axis, episode: Episode, t: int, values, half, named: bool) -> None:
    """Rows in the order of their ratio, each by its numbers."""
    assert episode.candidates is not None
    rows = np.arange(len(values))
    tint = [OTHER] * len(rows)
    for number, colour, _ in _marked(episode, t):
        tint[number] = colour
    if half is None:
        axis.barh(rows, values, color=tint)
    else:
        axis.errorbar(values, rows, xerr=half, fmt="none", ecolor="#8C8C8C", capsize=2)
        axis.scatter(values, rows, color=tint, s=18, zorder=3)
    words = [in_words(action, 3) for action in episode.candidates[t]] if named else []
    axis.set_yticks(rows, words or [""] * len(rows))
    axis.set_ylim(len(rows) - 0.5, -0.5)  # the smallest ratio on top
    axis.locator_params(axis="x", nbins=3)


def _marked(episode: Episode, t: int):
    """The actor's first, so that the one taken is drawn over it."""
    return ((episode.greedy[t], ACTOR, 40), (episode.action[t], TAKEN, 26))
