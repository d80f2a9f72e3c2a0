"""Rules that compare actions, as an agent declares them: their settings, and what they keep."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import jax
import jax.numpy as jnp

from idrl import ids, rules
from idrl.agents.rule_base import Beliefs, Rule, RuleContext, rule
from idrl.errors import IdrlError
from idrl.ids import Decision


def _compared(relative: bool, beliefs: Beliefs, context: RuleContext) -> jax.Array:
    return ids.relative(beliefs.q_heads, context.mask) if relative else beliefs.q_heads


@dataclass(frozen=True, kw_only=True)
class WithEpsilon(Rule):
    """A rule that acts at random with probability ε, which falls linearly; 0 by default.

    The originals have none; the authors of IDS put one on top of the ensembles they compare with.
    """

    epsilon_start: float = 0.0  # probability of a random action at the first step
    epsilon_end: float = 0.0  # and from `epsilon_decay_steps` on
    epsilon_decay_steps: int = 0  # steps over which it falls linearly

    def check(self, where: str) -> None:
        for name in ("epsilon_start", "epsilon_end"):
            if not 0 <= getattr(self, name) <= 1:
                raise IdrlError(f"{where}.{name} is {getattr(self, name)}; ε is in [0, 1].")
        _check_steps(where, epsilon_decay_steps=self.epsilon_decay_steps)

    @property
    def randomises(self) -> bool:
        return max(self.epsilon_start, self.epsilon_end) > 0

    @property
    def without_epsilon(self) -> Rule:
        return replace(self, epsilon_start=0.0, epsilon_end=0.0)

    @property
    def undithered(self) -> Rule:
        return self.without_epsilon

    def check_actor(self, where: str, actor_name: str, has_density: bool) -> None:
        super().check_actor(where, actor_name, has_density)
        if self.randomises:
            raise IdrlError(
                f"{where}.epsilon_start and {where}.epsilon_end are for discrete actions; with an "
                f"actor set both to 0, or {where}.kind=gaussian_noise."
            )

    def finish(self, decision: Decision, context: RuleContext) -> Decision:
        if not self.randomises:
            return decision
        epsilon = _line(
            context.step, self.epsilon_start, self.epsilon_end, self.epsilon_decay_steps
        )
        key = jax.random.fold_in(context.key, 0)
        return rules.at_random(decision, key, epsilon, mask=context.mask)


@rule("ids")
@dataclass(frozen=True)
class Ids(WithEpsilon):
    """Smallest regret² per bit of information (Nikolov et al. 2019)."""

    lam: float = 0.1  # λ: width of the confidence interval in standard deviations (Table 2)
    lam_end: float = 0.0  # λ after `lam_steps`, in a straight line
    lam_steps: int = 0  # 0: λ is constant
    rho2: float = 1.0  # constant noise of DQN-IDS (Table 2), and what "added" adds to
    # how Var Z becomes ρ², see `idrl.ids.decide`
    noise: Literal[
        "constant", "return", "normalized", "smoothed", "tempered", "added"
    ] = "normalized"  # fmt: skip
    rho2_floor: float = 0.25  # least ρ² after normalising (the released code)
    eps1: float = 1e-5  # added to the mean variance (Table 2)
    eps2: float = 1e-5  # added to the information gain (Table 2)
    regret: Literal["conservative", "bayes"] = "conservative"  # which regret, see `idrl.ids.decide`
    info_gain: Literal["log", "ucb", "variance"] = "log"  # which information gain
    # how the ratio decides
    policy: Literal["deterministic", "additive", "randomized"] = "deterministic"
    relative: bool = False  # σ without what a head says of all actions alike (`ids.relative`)
    beta: float = 1.0  # additive only: squared units of return per unit of information

    def check(self, where: str) -> None:
        super().check(where)
        _check_steps(where, lam_steps=self.lam_steps)
        for name in ("lam", "lam_end", "rho2_floor", "eps1", "eps2", "beta"):
            if getattr(self, name) < 0:
                raise IdrlError(f"{where}.{name} is {getattr(self, name)}; it must be at least 0.")
        if self.rho2 <= 0:
            raise IdrlError(f"{where}.rho2 is {self.rho2}; a variance of noise is positive.")

    @property
    def min_members(self) -> int:
        return 2

    @property
    def needs_distribution(self) -> bool:
        return self.noise in ("return", "smoothed", "tempered", "added")

    @property
    def minimises_ratio(self) -> bool:
        return True

    @property
    def gain_in_returns(self) -> bool:
        return self.info_gain == "variance"

    @property
    def rho2_is_variance(self) -> bool:
        return self.noise == "return" or (self.noise == "added" and self.rho2 <= 1)

    @property
    def example_agents(self) -> tuple[str, str]:
        return "c51-ids", "ddpg-ids"

    def check_heads(self, where: str, members: int, knows_variance: bool) -> None:
        if self.needs_distribution and not knows_variance:
            raise IdrlError(
                f"{where}.noise={self.noise} needs a head that learns the distribution of the "
                f"return; add heads.z.kind=categorical, or set {where}.noise=constant."
            )
        super().check_heads(where, members, knows_variance)

    def width(self, step: jax.Array) -> float | jax.Array:
        if not self.lam_steps:
            return self.lam
        return _line(step, self.lam, self.lam_end, self.lam_steps)

    def __call__(self, beliefs: Beliefs, context: RuleContext) -> Decision:
        q_heads = _compared(self.relative, beliefs, context)
        decision = ids.decide(
            q_heads, beliefs.return_variance, lam=self.width(context.step), rho2=self.rho2,
            noise=self.noise, rho2_floor=self.rho2_floor, eps1=self.eps1, eps2=self.eps2,
            regret=self.regret, info_gain=self.info_gain, policy=self.policy, beta=self.beta,
            key=context.key, mask=context.mask,
        )  # fmt: skip
        return self.finish(decision, context)


@rule("thompson")
@dataclass(frozen=True)
class Thompson(WithEpsilon):
    """Follow one head, drawn anew when an episode starts (Osband et al. 2016).

    With `redraw_steps` another is drawn after so many steps of an episode, which may have no end:
    the head that is followed may be one that goes in circles.
    """

    redraw_steps: int = 0  # steps after which another head is drawn within an episode; 0: never

    def check(self, where: str) -> None:
        super().check(where)
        _check_steps(where, redraw_steps=self.redraw_steps)

    @property
    def min_members(self) -> int:
        return 2

    @property
    def example_agents(self) -> tuple[str, str]:
        return "bootstrapped-dqn", "ddpg-thompson"

    def remember(self, memory: jax.Array, first: jax.Array, key: jax.Array, k: int) -> jax.Array:
        drawn = jax.random.randint(key, memory.shape, 0, k)
        if not self.redraw_steps:
            return jnp.where(first, drawn, memory)
        # The head, and K times how many steps it was followed.
        again = first | (memory // k + 1 >= self.redraw_steps)
        return jnp.where(again, drawn, memory + k)

    def followed(self, beliefs: Beliefs, context: RuleContext) -> jax.Array:
        """The number of the head, `[E]`."""
        return context.memory % beliefs.q_heads.shape[-2]

    def __call__(self, beliefs: Beliefs, context: RuleContext) -> Decision:
        head = self.followed(beliefs, context)
        decision = rules.thompson(beliefs.q_heads, head, **_described(beliefs, context))
        return self.finish(decision, context)


@rule("return_thompson")
@dataclass(frozen=True)
class ReturnThompson(Thompson):
    """One head for an episode, and a drawn return at every step (Moerland et al. 2017).

    The return is drawn from the return head's distribution around the head that is followed. That
    adds the noise of the return to the uncertainty of its mean, and so the rule keeps choosing
    noisy actions however well they are known: the paper's argument against it.
    """

    @property
    def needs_distribution(self) -> bool:
        return True

    @property
    def needs_discrete(self) -> bool:
        return True

    @property
    def example_agents(self) -> tuple[str, str]:
        return "dqn", "td3"

    def __call__(self, beliefs: Beliefs, context: RuleContext) -> Decision:
        assert beliefs.return_noise is not None
        noise, head = beliefs.return_noise[..., None, :], self.followed(beliefs, context)
        chosen = rules.thompson(beliefs.q_heads + noise, head, mask=context.mask)
        # The same for all heads, the noise leaves σ as it is; what is told is without it.
        told = rules.thompson(beliefs.q_heads, head, **_described(beliefs, context))
        return self.finish(told._replace(action=chosen.action, probs=chosen.probs), context)


@rule("ucb")
@dataclass(frozen=True)
class Ucb(WithEpsilon):
    """Largest mean plus λ standard deviations over the heads (Chen et al. 2017)."""

    lam: float = 0.1  # width of the confidence bound in standard deviations
    relative: bool = False  # as in `Ids`

    def check(self, where: str) -> None:
        super().check(where)
        if self.lam < 0:
            raise IdrlError(f"{where}.lam is {self.lam}; it must be at least 0.")

    @property
    def min_members(self) -> int:
        return 2

    @property
    def example_agents(self) -> tuple[str, str]:
        return "bootstrapped-ucb", "ddpg-ucb"

    def __call__(self, beliefs: Beliefs, context: RuleContext) -> Decision:
        q_heads = _compared(self.relative, beliefs, context)
        decision = rules.ucb(q_heads, lam=self.lam, **_described(beliefs, context))
        return self.finish(decision, context)


# "The first million frames" of Mnih et al. are steps: they call 38 days of play 50 million frames,
# which they are if each is four of the emulator's.
DECAY_STEPS = 1_000_000


@rule("epsilon_greedy")
@dataclass(frozen=True)
class EpsilonGreedy(Rule):
    """Greedy, but random with a probability that falls linearly (Mnih et al. 2015)."""

    start: float = 1.0  # probability of a random action at the first step
    end: float = 0.1  # and from `decay_steps` on
    decay_steps: int = DECAY_STEPS  # steps over which it falls linearly

    def check(self, where: str) -> None:
        for name in ("start", "end"):
            if not 0 <= getattr(self, name) <= 1:
                raise IdrlError(f"{where}.{name} is {getattr(self, name)}; ε is in [0, 1].")
        _check_steps(where, decay_steps=self.decay_steps)

    @property
    def needs_discrete(self) -> bool:
        return True

    @property
    def without_epsilon(self) -> Rule:
        return Greedy()

    def epsilon(self, step: jax.Array) -> jax.Array:
        return _line(step, self.start, self.end, self.decay_steps)

    def __call__(self, beliefs: Beliefs, context: RuleContext) -> Decision:
        return rules.epsilon_greedy(
            beliefs.q_heads, context.key, self.epsilon(context.step), **_described(beliefs, context)
        )


@rule("greedy")
@dataclass(frozen=True)
class Greedy(Rule):
    """Largest mean over the heads."""

    def __call__(self, beliefs: Beliefs, context: RuleContext) -> Decision:
        return rules.greedy(beliefs.q_heads, **_described(beliefs, context))


@rule("vote")
@dataclass(frozen=True)
class Vote(WithEpsilon):
    """The action most heads are greedy on."""

    @property
    def min_members(self) -> int:
        return 2

    def __call__(self, beliefs: Beliefs, context: RuleContext) -> Decision:
        decision = rules.vote(beliefs.q_heads, **_described(beliefs, context))
        return self.finish(decision, context)


def _check_steps(where: str, **counts: int) -> None:
    for name, count in counts.items():
        if not 0 <= count < 2**31:  # counters are of 32 bits
            raise IdrlError(f"{where}.{name} is {count}; it must be from 0 to 2147483647.")


def _line(step, start: float, end: float, steps: int) -> jax.Array:
    """From `start` to `end` in `steps` steps, then `end`."""
    return start + jnp.clip(step / max(steps, 1), 0, 1) * (end - start)


def _described(beliefs: Beliefs, context: RuleContext) -> dict:
    return {"return_variance": beliefs.return_variance, "mask": context.mask}
