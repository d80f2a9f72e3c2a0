"""Optimisers as an agent declares them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import optax

from idrl.errors import IdrlError
from idrl.schema import Part


def fraction(where: str, **values: float) -> None:
    for name, value in values.items():
        if not 0 <= value < 1:
            raise IdrlError(f"{where}.{name} is {value}; it must be in [0, 1).")


def positive(where: str, **values: float) -> None:
    for name, value in values.items():
        if value <= 0:
            raise IdrlError(f"{where}.{name} is {value}; it must be positive.")


@dataclass(frozen=True, kw_only=True)
class Optimiser(Part, category="optimiser"):
    """How gradients move weights. Its fields are its settings."""

    max_grad_norm: float = 0.0  # clip gradients to this global norm; 0 does not clip

    def check(self, where: str) -> None:
        """Refuse settings that cannot work; `where` is what they are called in a config."""
        if self.max_grad_norm < 0:
            raise IdrlError(
                f"{where}.max_grad_norm is {self.max_grad_norm}; it must be at least 0."
            )

    @abstractmethod
    def make(self) -> optax.GradientTransformation:
        """The transformation, without clipping."""

    def clipped(self) -> optax.GradientTransformation:
        """The transformation with clipping, as agents use it."""
        if not self.max_grad_norm:
            return self.make()
        return optax.chain(optax.clip_by_global_norm(self.max_grad_norm), self.make())


optimiser = Optimiser.register


@optimiser("adam")
@dataclass(frozen=True, kw_only=True)
class Adam(Optimiser):
    """Adam (Kingma & Ba 2015)."""

    lr: float = 5e-5  # step size (Table 2 of the paper)
    b1: float = 0.9  # decay of the first moment (Table 2)
    b2: float = 0.99  # decay of the second moment (Table 2; the released code has 0.999)
    eps: float = 0.01 / 32  # outside the root (Table 2)

    def check(self, where: str) -> None:
        super().check(where)
        positive(where, lr=self.lr, eps=self.eps)
        fraction(where, b1=self.b1, b2=self.b2)

    def make(self) -> optax.GradientTransformation:
        return optax.adam(self.lr, b1=self.b1, b2=self.b2, eps=self.eps)


@optimiser("rmsprop")
@dataclass(frozen=True, kw_only=True)
class RmsProp(Optimiser):
    """RMSProp as Mnih et al. 2015 have it (their extended data table 1): g / √(E[g²] − E[g]² + ε).

    `eps` is **inside** the root, and gradients are **averaged** over the batch. Mnih et al. have
    0.01 inside it over gradients summed over their 32 transitions; averaged ones are 32 times
    smaller, their squares 32² times.
    """

    lr: float = 2.5e-4  # step size
    decay: float = 0.95  # of the moving averages
    momentum: float = 0.0  # the table's "gradient momentum" 0.95 is the decay of the mean gradient
    eps: float = 0.01 / 32**2  # inside the root
    centered: bool = True  # subtract E[g]²; false is TensorFlow's default

    def check(self, where: str) -> None:
        super().check(where)
        positive(where, lr=self.lr, eps=self.eps)
        fraction(where, decay=self.decay, momentum=self.momentum)

    def make(self) -> optax.GradientTransformation:
        return optax.rmsprop(
            self.lr, decay=self.decay, eps=self.eps, eps_in_sqrt=True, centered=self.centered,
            momentum=self.momentum or None,
        )  # fmt: skip
