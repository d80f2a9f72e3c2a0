"""Of continuous actions an episode shows candidates: which of them, and in which order."""

from __future__ import annotations

import numpy as np

from idrl.ids import Comparison

MOST = 8  # of actions that are more than one number
_ARRAYS = ("mu", "sigma", "regret", "rho2", "info_gain", "ratio", "probs", "candidates")


def _place(decision: Comparison, action: np.ndarray) -> int:
    """Which candidate `action` `[D]` is. Of several that are the same it is the actor's, else the
    one that the rule chose."""
    apart = np.abs(decision.candidates - action).sum(-1)
    return next((a for a in (0, int(decision.action)) if apart[a] == 0), int(apart.argmin()))


def arranged(decision: Comparison, done: np.ndarray) -> tuple[Comparison, int, int]:
    """What is shown, with the places there of the action `done` and of the actor's.

    Where an action is one number, all of them along it. Else the few of the smallest ratio, with
    the one taken, the one that the rule chose and the actor's.
    """
    taken, chosen = _place(decision, done), _place(decision, decision.taken)
    if decision.candidates.shape[1] == 1:
        order = np.argsort(decision.candidates[:, 0], kind="stable").tolist()
    else:
        order = _few(decision, {0, taken, chosen})
    shown = {name: getattr(decision, name)[order] for name in _ARRAYS}
    there = decision._replace(action=order.index(chosen), **shown)
    return there, order.index(taken), order.index(0)


def _few(decision: Comparison, fixed: set[int]) -> list[int]:
    ranked = np.argsort(decision.ratio, kind="stable").tolist()
    # Many a candidate beyond the box was cut to the same corner: each comes once before any twice.
    _, first = np.unique(decision.candidates[ranked].round(3), axis=0, return_index=True)
    once = {ranked[i] for i in first}
    others = sorted((a for a in ranked if a not in fixed), key=lambda a: a not in once)
    few = fixed.union(others[: MOST - len(fixed)])
    return [a for a in ranked if a in few]


def in_words(action: np.ndarray, most: int = 4) -> str:
    """As many of its numbers as there is room for."""
    numbers = " ".join(f"{x:+.2f}" for x in action[:most])
    return f"{numbers} …" if len(action) > most else numbers
