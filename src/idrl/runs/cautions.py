"""What a run says of itself when its numbers cannot be right, once each."""

from __future__ import annotations

import warnings

import numpy as np

from idrl.agents.rule_base import Rule
from idrl.training.loop import Progress

_BEYOND = 0.5  # of the range of possible returns: bootstrapped values overshoot a little
_AT_ENDS = 0.3  # of the probability: before it has learned a head of 51 atoms has 0.04 there


class Cautions:
    """Looks at the metrics of a run."""

    def __init__(self, explore: Rule) -> None:
        self.explore = explore
        self.told: set[str] = set()
        self.rewarded: np.ndarray | None = None  # [S] whether a reward was known one row ago

    def check(self, progress: Progress) -> None:
        if not progress.log or progress.metrics is None:
            return
        # A row is a mean over a block. In that of the first reward part of it has no unit yet.
        before = self.rewarded
        if "return_high" in progress.metrics:
            low, high = (np.asarray(progress.metrics[f"return_{end}"]) for end in ("low", "high"))
            self.rewarded = high > low
        metrics = {name: np.asarray(x)[progress.alive] for name, x in progress.metrics.items()}
        if not progress.alive.any():
            return
        if "return_high" in metrics and before is not None:
            bounds = metrics["return_low"], metrics["return_high"]
            judged = before[progress.alive] & (bounds[1] > bounds[0])
            self._values(metrics["q_max"], *bounds, judged)
            if self.explore.rho2_is_variance:
                self._variances(metrics["rho2_max"], *bounds, metrics["unit"], judged)
        for name, share in metrics.items():
            if name.startswith("at_ends_") and share.max() > _AT_ENDS:
                head = name.removeprefix("at_ends_")
                self._say(
                    name,
                    f"{share.max():.0%} of what heads.{head} says of returns lies at an end of its "
                    f"range: ρ² is not to be trusted while it does. A wider heads.{head}.v_min and "
                    "v_max would leave room.",
                )

    def _values(
        self, largest: np.ndarray, low: np.ndarray, high: np.ndarray, judged: np.ndarray
    ) -> None:
        room = _BEYOND * (high - low)
        wrong = judged & ((largest > high + room) | (largest < low - room))
        if wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            self._say(
                "values",
                f"the agent believes in returns of {largest[i]:.3g}, and with the rewards so far "
                f"none can be outside {low[i]:.3g} to {high[i]:.3g}: its values have run away. A "
                "smaller optimiser.lr, less heads.q.prior_scale or a longer "
                "learning.target_every_steps may help.",
            )

    def _variances(
        self, largest: np.ndarray, low: np.ndarray, high: np.ndarray, unit: np.ndarray,
        judged: np.ndarray,
    ) -> None:  # fmt: skip
        # No variance is above a quarter of the range's square; a rule may add a unit's.
        wrong = judged & (largest > (high - low) ** 2 + unit**2)
        if wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            self._say(
                "variances",
                f"the agent believes that returns have a variance of {largest[i]:.3g}, and between "
                f"{low[i]:.3g} and {high[i]:.3g} none is above {((high - low) ** 2 / 4)[i]:.3g}: "
                "what its return head says has run away, so ρ² is not to be trusted. A smaller "
                "optimiser.lr may help; explore.noise=constant does without that head.",
            )

    def _say(self, what: str, sentence: str) -> None:
        if what not in self.told:
            self.told.add(what)
            warnings.warn(sentence, stacklevel=2)
