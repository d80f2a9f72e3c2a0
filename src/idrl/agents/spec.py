"""What an agent is: trunk + heads + a rule to explore + a rule to evaluate, and how it learns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import jax
import jax.numpy as jnp

from idrl.agents.composing import check_actor, check_no_actor
from idrl.agents.optimisers import Adam, Optimiser, positive
from idrl.agents.rule_base import Rule
from idrl.errors import IdrlError
from idrl.networks.heads import Head
from idrl.networks.trunks import Trunk

MOST_STEPS = 128  # of n-step returns
MOST_HEADS = 8


Precision = Literal["full", "mixed", "auto"]


@dataclass(frozen=True)
class Learning:
    """When and from how much an agent learns.

    A step is one action in one environment: on Atari four frames of the emulator, and a quarter of
    an update.
    """

    gamma: float = 0.99  # the discount (Table 2 of the paper)
    batch_size: int = 32  # transitions of one update (Table 2)
    update_every_steps: int = 4  # steps between two updates (Table 2)
    # steps between two moves of the target network (Table 2, for the IDS agents)
    target_every_steps: int = 40_000
    tau: float = 1.0  # how far the target moves towards the weights; 1 is a copy
    # steps with random actions before the first update (Table 2)
    learning_starts_steps: int = 50_000
    replay_capacity: int = 1_000_000  # steps that the replay holds (Table 2)
    # where the replay's observations are: on the device, or in the host's memory, from where every
    # batch is handed over (environments on the host only)
    replay_place: Literal["device", "host"] = "device"
    n_step: int = 1  # rewards summed before the value of the target is added
    # α of prioritised replay: how far TD errors decide what is replayed; 0 is uniform
    priority: float = 0.0
    importance: float = 0.4  # β at the start of training, 1 at its end; with priorities only
    # what is learned from: raw, clipped to ±1, or the sign; scores are always raw
    rewards: Literal["raw", "clip", "sign"] = "raw"
    # what values, σ, ρ², priors, Huber's δ and ranges of returns are multiples of: 1 of the task's
    # rewards, or a unit that the agent measures while it learns (discrete actions only)
    unit: Literal["task", "measured"] = "task"
    # "mixed" computes updates in bfloat16 where that saves time; weights stay float32. "auto" is
    # mixed in a run on a GPU that has bfloat16 and full elsewhere; the run records which
    precision: Precision = "full"

    def seen_reward(self, reward: jax.Array) -> jax.Array:
        """The reward as it is learned from."""
        if self.rewards == "raw":
            return reward
        return jnp.sign(reward) if self.rewards == "sign" else jnp.clip(reward, -1.0, 1.0)

    def check(self, where: str) -> None:
        """Refuse settings that cannot work; `where` is what they are called in a config."""
        positive(
            where, batch_size=self.batch_size, update_every_steps=self.update_every_steps,
            target_every_steps=self.target_every_steps, replay_capacity=self.replay_capacity,
            n_step=self.n_step,
        )  # fmt: skip
        if self.n_step > MOST_STEPS:  # each of them is compiled
            raise IdrlError(f"{where}.n_step is {self.n_step}; it must be at most {MOST_STEPS}.")
        for name in ("priority", "importance"):
            if not 0 <= getattr(self, name) <= 1:
                raise IdrlError(f"{where}.{name} is {getattr(self, name)}; it must be in [0, 1].")
        if not 0 < self.tau <= 1:
            raise IdrlError(f"{where}.tau is {self.tau}; it must be in (0, 1].")
        if not 0 <= self.gamma <= 1:
            raise IdrlError(f"{where}.gamma is {self.gamma}; a discount is in [0, 1].")
        if self.learning_starts_steps < 0:
            raise IdrlError(f"{where}.learning_starts_steps is negative.")
        counts = ("update_every_steps", "target_every_steps", "learning_starts_steps")
        for name in (*counts, "replay_capacity"):
            if getattr(self, name) >= 2**31:  # counters are of 32 bits
                raise IdrlError(f"{where}.{name} is {getattr(self, name)}; it must be below 2³¹.")


@dataclass(frozen=True)
class AgentSpec:
    """The declaration of an agent: a trunk, heads, a rule to explore by, a rule to evaluate by, and
    how it learns."""

    trunk: Trunk  # from observations to features
    heads: dict[str, Head]  # what is learned, by name: `q` and `z` in the built-in agents
    explore: Rule  # how it acts while training
    evaluate: Rule  # how it acts when it is evaluated
    optimiser: Optimiser = field(default_factory=Adam)  # how gradients move the weights
    learning: Learning = field(default_factory=Learning)  # when, and from how much, it learns

    @property
    def actor(self) -> str | None:
        """The name of its actor, if it is for continuous actions."""
        return next((name for name, head in self.heads.items() if head.is_actor), None)

    @property
    def values(self) -> dict[str, Head]:
        """All heads except the actor."""
        return {name: head for name, head in self.heads.items() if not head.is_actor}

    def check(self, where: str = "") -> None:
        """Refuse combinations that cannot work, and name one that would."""
        if len(self.heads) > MOST_HEADS:
            raise IdrlError(
                f"an agent has {MOST_HEADS} kinds of heads at most, not {len(self.heads):,}; an "
                "ensemble has more members with heads.q.k."
            )
        if not self.values:
            raise IdrlError("an agent needs at least one head, for example heads.q.kind=ensemble.")
        if sum(head.is_ensemble for head in self.heads.values()) > 1:
            raise IdrlError("an agent has one ensemble at most; give it more heads with heads.q.k.")
        if self.actor is None:
            check_no_actor(self.explore, self.evaluate)
        else:
            if self.learning.unit != "task":
                raise IdrlError(
                    "learning.unit=measured is for discrete actions; with an actor set "
                    "learning.unit=task."
                )
            check_actor(self.heads, self.explore, self.evaluate, self.learning.precision)
        k = max(head.members for head in self.heads.values())
        knows_variance = any(head.knows_variance for head in self.heads.values())
        for name, rule in (("explore", self.explore), ("evaluate", self.evaluate)):
            rule.check_heads(name, k, knows_variance)
        for name, head in self.heads.items():
            if head.fit_batch and self.learning.replay_place == "host":
                raise IdrlError(
                    f"heads.{name} is fitted to the replay on the device; with it set "
                    "learning.replay_place=device."
                )
            if head.prior_scale > 0 and head.members < 2:
                raise IdrlError(
                    f"heads.{name}.prior_scale is a spread over heads and needs at least 2 of "
                    f"them, not {head.members}; set heads.{name}.prior_scale=0."
                )
            if head.prior_scale > 0 and not head.says_q:
                raise IdrlError(
                    f"heads.{name}.prior_scale is added to Q-functions, which a head of kind "
                    f"{head.kind!r} does not output: its `says_q` is false."
                )
