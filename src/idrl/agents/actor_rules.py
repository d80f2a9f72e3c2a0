"""Rules for continuous actions that compare nothing: the actor's action, with or without noise.

Each returns the action in the unit box, `[E, D]`, and what it keeps until the next step, as much.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from idrl.agents.rule_base import Beliefs, Rule, RuleContext, rule
from idrl.errors import IdrlError
from idrl.ids import Decision
from idrl.networks.heads import ActorHead


class Acting(NamedTuple):
    """What such a rule may use."""

    actor: ActorHead
    out: Any  # of the actor's network
    kept: jax.Array  # [E, D]
    first: jax.Array  # [E] a new episode
    key: jax.Array


class ActorRule(Rule):
    """A rule that compares no actions: it takes the actor's action, or one near it."""

    @abstractmethod
    def act(self, acting: Acting) -> tuple[jax.Array, jax.Array]:
        """The action `[E, D]` in the unit box, and an array of that shape to keep until the next
        step."""

    @property
    def follows_actor(self) -> bool:
        return True

    def __call__(self, beliefs: Beliefs, context: RuleContext) -> Decision:
        raise TypeError("a rule that follows an actor compares no actions")


@rule("follow")
@dataclass(frozen=True)
class Follow(ActorRule):
    """The actor's action; of a distribution its middle."""

    def act(self, acting: Acting) -> tuple[jax.Array, jax.Array]:
        return acting.actor.mean(acting.out), acting.kept


@rule("sample")
@dataclass(frozen=True)
class Sample(ActorRule):
    """A draw from the actor's own distribution (SAC)."""

    def check_actor(self, where: str, actor_name: str, has_density: bool) -> None:
        if not has_density:
            raise IdrlError(
                f"{where}.kind={self.kind} draws from a distribution over actions; set "
                f"heads.{actor_name}.kind=gaussian_actor, or {where}.kind=gaussian_noise."
            )

    def act(self, acting: Acting) -> tuple[jax.Array, jax.Array]:
        return acting.actor.draw(acting.out, acting.key)[0], acting.kept


@rule("gaussian_noise")
@dataclass(frozen=True)
class GaussianNoise(ActorRule):
    """The actor's action with noise that is drawn anew at every step.

    `scale` is its standard deviation in halves of the box."""

    scale: float = 0.1  # standard deviation, in halves of the box (Fujimoto et al. 2018)

    def check(self, where: str) -> None:
        _at_least_0(where, scale=self.scale)

    def act(self, acting: Acting) -> tuple[jax.Array, jax.Array]:
        action = acting.actor.mean(acting.out)
        noise = self.scale * jax.random.normal(acting.key, action.shape)
        return jnp.clip(action + noise, -1, 1), acting.kept


@rule("ou_noise")
@dataclass(frozen=True)
class OuNoise(ActorRule):
    """The actor's action with an Ornstein–Uhlenbeck process on it (Lillicrap et al. 2016).

    x ← (1 − θ)·x + scale·N(0, 1), from 0 at the start of an episode."""

    # of the noise added at every step, in halves of the box (Lillicrap et al. 2016)
    scale: float = 0.2
    theta: float = 0.15  # share of the noise that decays at every step

    def check(self, where: str) -> None:
        _at_least_0(where, scale=self.scale)
        if not 0 < self.theta <= 1:
            raise IdrlError(f"{where}.theta is {self.theta}; it must be in (0, 1].")

    def act(self, acting: Acting) -> tuple[jax.Array, jax.Array]:
        action = acting.actor.mean(acting.out)
        before = jnp.where(acting.first[:, None], 0.0, acting.kept)
        drawn = jax.random.normal(acting.key, action.shape)
        noise = (1 - self.theta) * before + self.scale * drawn
        return jnp.clip(action + noise, -1, 1), noise


def _at_least_0(where: str, **values: float) -> None:
    for name, value in values.items():
        if value < 0:
            raise IdrlError(f"{where}.{name} is {value}; it must be at least 0.")
