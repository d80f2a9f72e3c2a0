"""An optimiser: anything that Optax has, with its settings as fields."""

from dataclasses import dataclass

import optax

import idrl


@idrl.optimiser("sgd")
@dataclass(frozen=True, kw_only=True)
class Sgd(idrl.Optimiser):
    """Stochastic gradient descent with momentum."""

    lr: float = 0.1
    momentum: float = 0.9

    def make(self) -> optax.GradientTransformation:
        return optax.sgd(self.lr, self.momentum)
