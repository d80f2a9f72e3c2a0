"""What a rule is: it is called with what the heads believe of a batch of states and answers with a
`Decision`. Rules that compare actions are in `choosing`, those that follow an actor in
`actor_rules`."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import jax

from idrl.errors import IdrlError
from idrl.ids import Decision
from idrl.schema import Part


class Beliefs(NamedTuple):
    """What the heads believe of each state."""

    q_heads: jax.Array  # Q-values of the K members of the ensemble, `[..., K, A]`
    # variance of the return, `[..., A]`, where a head learns it
    return_variance: jax.Array | None = None
    # a drawn return less its mean, `[..., A]`, where a rule needs it
    return_noise: jax.Array | None = None

    def times(self, unit: jax.Array) -> Beliefs:
        """As they are where returns are so many times larger."""
        variance, noise = self.return_variance, self.return_noise
        return Beliefs(
            self.q_heads * unit,
            None if variance is None else variance * unit**2,
            None if noise is None else noise * unit,
        )


class RuleContext(NamedTuple):
    """What a rule may use besides beliefs."""

    step: jax.Array  # agent steps so far, for schedules
    memory: jax.Array  # what the rule remembers, one whole number per environment, `[E]`
    key: jax.Array  # a JAX random key, fresh in every step
    mask: jax.Array | None = None  # allowed actions, `[E, A]`; None where all are


class Rule(Part, category="rule"):
    """How an agent chooses, in E environments at once. Its fields are its settings.

    With continuous actions it compares A candidates in the same way.
    """

    @abstractmethod
    def __call__(self, beliefs: Beliefs, context: RuleContext) -> Decision:
        """Decide for states `[E]`. `idrl.rules` and `idrl.ids` have functions that make a
        `Decision`."""

    def remember(self, memory: jax.Array, first: jax.Array, key: jax.Array, k: int) -> jax.Array:
        """The memory `[E]` to decide with, an integer per environment: `memory` is that of the step
        before, `first` marks new episodes, `k` is the number of members of the ensemble."""
        return memory

    def keep(self, decision: Decision, context: RuleContext) -> jax.Array:
        """The memory `[E]` for the next step."""
        return context.memory

    def metrics(
        self, decision: Decision, beliefs: Beliefs, context: RuleContext
    ) -> dict[str, jax.Array]:
        """Additional metrics of a run by name, while it explores; each is averaged."""
        return {}

    # -- what it needs of others ----------------------------------------------------------------

    @property
    def min_members(self) -> int:
        """The least number of Q-functions that it compares."""
        return 1

    @property
    def needs_distribution(self) -> bool:
        """Whether it needs a head that learns the distribution of the return."""
        return False

    @property
    def needs_discrete(self) -> bool:
        """Whether it cannot use candidates of continuous actions."""
        return False

    @property
    def follows_actor(self) -> bool:
        """Whether it follows an actor instead of comparing actions (`ActorRule`)."""
        return False

    @property
    def minimises_ratio(self) -> bool:
        """Whether candidates are worth refining by the information ratio."""
        return False

    @property
    def gain_in_returns(self) -> bool:
        """Whether its information gain is a squared return, not a number of bits."""
        return False

    @property
    def rho2_is_variance(self) -> bool:
        """Whether its ρ² is a learned variance of the return, not a ratio or a setting."""
        return False

    @property
    def without_epsilon(self) -> Rule:
        """The same rule without random actions on top of it."""
        return self

    @property
    def undithered(self) -> Rule:
        """What decides, where random actions are only put on top of it."""
        return self

    @property
    def example_agents(self) -> tuple[str, str]:
        """Agents that explore in the same way, for discrete and for continuous actions."""
        return "dqn", "td3"

    def check_heads(self, where: str, members: int, knows_variance: bool) -> None:
        """Refuse an ensemble with too few `members`, or heads of which none `knows_variance`."""
        if members < self.min_members:
            raise IdrlError(
                f"{where}.kind={self.kind} compares the heads of an ensemble and needs at least "
                f"{self.min_members} of them, not {members}; set heads.q.kind=ensemble and "
                f"heads.q.k={max(10, self.min_members)}, or {where}.kind=greedy."
            )
        if self.needs_distribution and not knows_variance:
            raise IdrlError(
                f"{where}.kind={self.kind} needs a head that learns the distribution of the "
                f"return; add heads.z.kind=categorical, or set {where}.kind=thompson."
            )

    def check_actor(self, where: str, actor_name: str, has_density: bool) -> None:
        """Refuse an actor that it cannot use; `has_density`: it is a distribution over actions."""
        if self.needs_discrete:
            raise IdrlError(
                f"{where}.kind={self.kind} needs discrete actions; with an actor set "
                f"{where}.kind=gaussian_noise or {where}.kind=ids."
            )


rule = Rule.register
