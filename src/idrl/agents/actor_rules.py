"""Rules for continuous actions that compare nothing: the actor's action, with or without noise.

Each returns the action in the unit box, `[E, D]`, and what it keeps until the next step, as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from idrl.agents.choosing import Stateless
from idrl.errors import IdrlError
from idrl.networks.heads.actors import Actor, GaussianActor


class Acting(NamedTuple):
    """What such a rule may use."""

    actor: Actor | GaussianActor
    out: Any  # of the actor's network
    kept: jax.Array  # [E, D]
    first: jax.Array  # [E] a new episode
    key: jax.Array


@dataclass(frozen=True)
class Follow(Stateless):
    """The actor's action; of a distribution its middle."""

    kind: Literal["follow"] = "follow"

    def act(self, acting: Acting) -> tuple[jax.Array, jax.Array]:
        return acting.actor.mean(acting.out), acting.kept


@dataclass(frozen=True)
class Sample(Stateless):
    """A draw from the actor's own distribution (SAC)."""

    kind: Literal["sample"] = "sample"

    def act(self, acting: Acting) -> tuple[jax.Array, jax.Array]:
        assert isinstance(acting.actor, GaussianActor)
        return acting.actor.draw(acting.out, acting.key)[0], acting.kept


@dataclass(frozen=True)
class GaussianNoise(Stateless):
    """The actor's action with noise that is drawn anew at every step; `scale` is its standard
    deviation in halves of the box."""

    kind: Literal["gaussian_noise"] = "gaussian_noise"
    scale: float = 0.1  # Fujimoto et al. 2018

    def check(self, where: str) -> None:
        _at_least_0(where, scale=self.scale)

    def act(self, acting: Acting) -> tuple[jax.Array, jax.Array]:
        action = acting.actor.mean(acting.out)
        noise = self.scale * jax.random.normal(acting.key, action.shape)
        return jnp.clip(action + noise, -1, 1), acting.kept


@dataclass(frozen=True)
class OuNoise(Stateless):
    """The actor's action with an Ornstein–Uhlenbeck process: x ← (1 − θ)·x + scale·N(0, 1), from 0
    at the start of an episode."""

    kind: Literal["ou_noise"] = "ou_noise"
    scale: float = 0.2  # Lillicrap et al. 2016
    theta: float = 0.15

    def check(self, where: str) -> None:
        _at_least_0(where, scale=self.scale)
        if not 0 < self.theta <= 1:
            raise IdrlError(f"{where}.theta is {self.theta}; it is in (0, 1].")

    def act(self, acting: Acting) -> tuple[jax.Array, jax.Array]:
        action = acting.actor.mean(acting.out)
        before = jnp.where(acting.first[:, None], 0.0, acting.kept)
        drawn = jax.random.normal(acting.key, action.shape)
        noise = (1 - self.theta) * before + self.scale * drawn
        return jnp.clip(action + noise, -1, 1), noise


Undirected = Follow | Sample | GaussianNoise | OuNoise


def _at_least_0(where: str, **values: float) -> None:
    for name, value in values.items():
        if value < 0:
            raise IdrlError(f"{where}.{name} is {value}; it is at least 0.")
