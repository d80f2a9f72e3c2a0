"""What a rule decided, and why."""

from __future__ import annotations

from typing import NamedTuple

from idrl.ids.arrays import Array, namespace
from idrl.system.arguments import brief


class Decision(NamedTuple):
    """What a rule decided for each state, and why. Unless noted they are `[..., A]`."""

    action: Array  # the action taken, `[...]`
    mu: Array  # mean of the heads
    sigma: Array  # standard deviation of the heads
    regret: Array  # what the action may cost
    rho2: Array  # variance of the noise of its return
    info_gain: Array  # what the action may teach
    ratio: Array  # regret² / info_gain
    probs: Array  # the distribution that `action` was drawn from

    def __repr__(self) -> str:
        return brief(self)

    def times(self, unit: Array, gain_in_returns: bool = False) -> Decision:
        """The same where returns are `unit` times larger; `gain_in_returns`: so is the square root
        of the information gain."""
        square = unit**2
        told = self._replace(
            mu=self.mu * unit, sigma=self.sigma * unit, regret=self.regret * unit,
            rho2=self.rho2 * square,
        )  # fmt: skip
        if gain_in_returns:
            return told._replace(info_gain=self.info_gain * square)
        return told._replace(ratio=self.ratio * square)

    @property
    def candidates(self) -> None:
        """Actions are whole numbers, and all are compared."""

    @property
    def taken(self) -> Array:
        """What to do."""
        return self.action


class Comparison(NamedTuple):
    """A decision among some of infinitely many actions: `action` is a number in `candidates`."""

    action: Array  # the index of the action taken in `candidates`, `[...]`
    mu: Array  # mean of the critics
    sigma: Array  # standard deviation of the critics
    regret: Array  # what the action may cost
    rho2: Array  # variance of the noise of its return
    info_gain: Array  # what the action may teach
    ratio: Array  # regret² / info_gain
    probs: Array  # the distribution that `action` was drawn from
    candidates: Array  # the actions compared, `[..., A, D]`

    def __repr__(self) -> str:
        return brief(self)

    @property
    def taken(self) -> Array:
        """What to do, `[..., D]`."""
        xp = namespace(self.candidates)
        number = xp.maximum(xp.asarray(self.action), 0)[..., None, None]  # -1: none was finite
        return xp.take_along_axis(self.candidates, number, -2)[..., 0, :]


Decided = Decision | Comparison
