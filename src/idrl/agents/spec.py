"""What an agent is: trunk + heads + a rule to explore + a rule to evaluate, and how it learns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import jax
import jax.numpy as jnp
import optax

from idrl.agents.choosing import Ids, ReturnThompson, Thompson, Ucb, Vote
from idrl.agents.composing import check_actor, check_no_actor
from idrl.agents.rule import Rule
from idrl.errors import IdrlError
from idrl.networks.heads import Actor, Bayesian, Ensemble, GaussianActor, Head, ValueHead
from idrl.networks.trunks import Trunk

MOST_STEPS = 128  # of n-step returns
MOST_HEADS = 8


@dataclass(frozen=True, kw_only=True)
class _Optimiser:
    max_grad_norm: float = 0.0  # 0: gradients are not clipped

    def check(self, where: str) -> None:
        if self.max_grad_norm < 0:
            raise IdrlError(f"{where}.max_grad_norm is {self.max_grad_norm}; it is at least 0.")

    def clipped(self, optimiser: optax.GradientTransformation) -> optax.GradientTransformation:
        if not self.max_grad_norm:
            return optimiser
        return optax.chain(optax.clip_by_global_norm(self.max_grad_norm), optimiser)


@dataclass(frozen=True, kw_only=True)
class Adam(_Optimiser):
    """Adam (Kingma & Ba 2015)."""

    kind: Literal["adam"] = "adam"
    lr: float = 5e-5  # Table 2
    b1: float = 0.9  # Table 2
    b2: float = 0.99  # Table 2; the released code leaves TensorFlow's 0.999
    eps: float = 0.01 / 32  # Table 2

    def check(self, where: str) -> None:
        super().check(where)
        _positive(where, lr=self.lr, eps=self.eps)
        _fraction(where, b1=self.b1, b2=self.b2)

    def make(self) -> optax.GradientTransformation:
        return self.clipped(optax.adam(self.lr, b1=self.b1, b2=self.b2, eps=self.eps))


@dataclass(frozen=True, kw_only=True)
class RmsProp(_Optimiser):
    """RMSProp as Mnih et al. 2015 have it (their extended data table 1): g / √(E[g²] − E[g]² + ε).

    `eps` is **inside** the root, and gradients are **averaged** over the batch. Mnih et al. have
    0.01 inside it over gradients summed over their 32 transitions; averaged ones are 32 times
    smaller, their squares 32² times.
    """

    kind: Literal["rmsprop"] = "rmsprop"
    lr: float = 2.5e-4
    decay: float = 0.95
    momentum: float = 0.0  # the table's "gradient momentum" 0.95 is the decay of the mean gradient
    eps: float = 0.01 / 32**2
    centered: bool = True  # false: without E[g]², as TensorFlow's default

    def check(self, where: str) -> None:
        super().check(where)
        _positive(where, lr=self.lr, eps=self.eps)
        _fraction(where, decay=self.decay, momentum=self.momentum)

    def make(self) -> optax.GradientTransformation:
        rmsprop = optax.rmsprop(
            self.lr, decay=self.decay, eps=self.eps, eps_in_sqrt=True, centered=self.centered,
            momentum=self.momentum or None,
        )  # fmt: skip
        return self.clipped(rmsprop)


@dataclass(frozen=True)
class Learning:
    """When and from how much an agent learns. One step is one action in one environment: on Atari
    four of the emulator's frames, and a quarter of an update."""

    gamma: float = 0.99  # Table 2
    batch_size: int = 32  # Table 2
    update_every_steps: int = 4  # Table 2
    target_every_steps: int = 40_000  # Table 2, for the IDS agents; each rival has its own
    tau: float = 1.0  # of the way that the target goes to the weights then; 1: a copy
    learning_starts_steps: int = 50_000  # Table 2; random actions until then
    replay_capacity: int = 1_000_000  # Table 2, in steps
    n_step: int = 1  # rewards summed before the target's value is asked
    priority: float = 0.0  # α: how much TD errors decide what is replayed; 0 is uniform
    importance: float = 0.4  # β at the start of training, 1 at its end; with priorities only
    rewards: Literal["raw", "clip", "sign"] = "raw"  # as they are learned; scores are always raw
    # mixed: updates compute in bfloat16 where that saves time; weights and moments are float32
    precision: Literal["full", "mixed"] = "full"

    def seen_reward(self, reward: jax.Array) -> jax.Array:
        if self.rewards == "raw":
            return reward
        return jnp.sign(reward) if self.rewards == "sign" else jnp.clip(reward, -1.0, 1.0)

    def check(self, where: str) -> None:
        _positive(
            where, batch_size=self.batch_size, update_every_steps=self.update_every_steps,
            target_every_steps=self.target_every_steps, replay_capacity=self.replay_capacity,
            n_step=self.n_step,
        )  # fmt: skip
        if self.n_step > MOST_STEPS:  # each of them is compiled
            raise IdrlError(f"{where}.n_step is {self.n_step}; it is at most {MOST_STEPS}.")
        for name in ("priority", "importance"):
            if not 0 <= getattr(self, name) <= 1:
                raise IdrlError(f"{where}.{name} is {getattr(self, name)}; it is in [0, 1].")
        if not 0 < self.tau <= 1:
            raise IdrlError(f"{where}.tau is {self.tau}; it is in (0, 1].")
        if not 0 <= self.gamma <= 1:
            raise IdrlError(f"{where}.gamma is {self.gamma}; a discount is in [0, 1].")
        if self.learning_starts_steps < 0:
            raise IdrlError(f"{where}.learning_starts_steps is negative.")
        counts = ("update_every_steps", "target_every_steps", "learning_starts_steps")
        for name in (*counts, "replay_capacity"):
            if getattr(self, name) >= 2**31:  # counters are of 32 bits
                raise IdrlError(f"{where}.{name} is {getattr(self, name)}; it is below 2³¹.")


@dataclass(frozen=True)
class AgentSpec:
    trunk: Trunk
    heads: dict[str, Head]
    explore: Rule
    evaluate: Rule
    optimiser: Adam | RmsProp = field(default_factory=Adam)
    learning: Learning = field(default_factory=Learning)

    @property
    def actor(self) -> str | None:
        """The name of its actor, where it is for continuous actions."""
        found = (n for n, head in self.heads.items() if isinstance(head, (Actor, GaussianActor)))
        return next(found, None)

    @property
    def values(self) -> dict[str, ValueHead]:
        """All heads but the actor."""
        both = self.heads.items()
        return {n: head for n, head in both if not isinstance(head, (Actor, GaussianActor))}

    def check(self, where: str = "") -> None:
        """Refuse compositions that cannot work, and name one that would."""
        if len(self.heads) > MOST_HEADS:
            raise IdrlError(
                f"an agent has {MOST_HEADS} kinds of heads at most, not {len(self.heads):,}; an "
                "ensemble has more members with heads.q.k."
            )
        if not self.values:
            raise IdrlError("an agent needs at least one head, for example heads.q.kind=ensemble.")
        if sum(isinstance(h, (Ensemble, Bayesian)) for h in self.heads.values()) > 1:
            raise IdrlError("an agent has one ensemble at most; give it more heads with heads.q.k.")
        if self.actor is None:
            check_no_actor(self.explore, self.evaluate)
        else:
            check_actor(self.heads, self.explore, self.evaluate, self.learning.precision)
        k = max(head.members for head in self.heads.values())
        knows_variance = any(head.knows_variance for head in self.heads.values())
        for name, rule in (("explore", self.explore), ("evaluate", self.evaluate)):
            if isinstance(rule, (Ids, Thompson, ReturnThompson, Vote, Ucb)) and k < 2:
                raise IdrlError(
                    f"{name}.kind={rule.kind} compares the heads of an ensemble and needs at least "
                    f"2 of them, not {k}; set heads.q.kind=ensemble and heads.q.k=10, or "
                    f"{name}.kind=greedy."
                )
            if isinstance(rule, ReturnThompson) and not knows_variance:
                raise IdrlError(
                    f"{name}.kind={rule.kind} draws returns and needs a head that learns their "
                    "distribution; add heads.z.kind=categorical, or set "
                    f"{name}.kind=thompson."
                )
            if (
                isinstance(rule, Ids)
                and rule.noise in ("return", "smoothed", "tempered")
                and not knows_variance
            ):
                raise IdrlError(
                    f"{name}.noise={rule.noise} needs a head that learns the distribution of the "
                    "return; add heads.z.kind=categorical, or set "
                    f"{name}.noise=constant."
                )
        for name, head in self.heads.items():
            if isinstance(head, Ensemble) and head.prior_scale > 0 and head.k < 2:
                raise IdrlError(
                    f"heads.{name}.prior_scale is a spread over heads and needs at least 2 of "
                    f"them, not {head.k}; set heads.{name}.prior_scale=0."
                )


def _fraction(where: str, **values: float) -> None:
    for name, value in values.items():
        if not 0 <= value < 1:
            raise IdrlError(f"{where}.{name} is {value}; it is in [0, 1).")


def _positive(where: str, **values: float) -> None:
    for name, value in values.items():
        if value <= 0:
            raise IdrlError(f"{where}.{name} is {value}; it must be positive.")
