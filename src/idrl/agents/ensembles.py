"""Agents that explore by what K Q-functions on one trunk disagree on, and three ways to use it."""

from dataclasses import replace

from idrl.agents.choosing import Greedy, Ids, ReturnThompson, Thompson, Ucb, Vote
from idrl.agents.optimisers import RmsProp
from idrl.agents.registry import agent
from idrl.agents.rule_base import Rule
from idrl.agents.spec import AgentSpec, Learning
from idrl.networks.heads import Bayesian, Categorical, Ensemble, Head, Implicit, Quantile
from idrl.networks.trunks import NatureCnn


def _ensemble(explore: Rule, evaluate: Rule | None = None, **heads: Head) -> AgentSpec:
    """Ten heads, and whatever heads come beside them; Adam and a target copied every 40,000 agent
    steps, as Table 2 has them for the IDS agents."""
    return AgentSpec(
        trunk=NatureCnn(),
        heads={"q": Ensemble(), **heads},
        explore=explore,
        evaluate=evaluate or Greedy(),
    )


def _as_dqn(spec: AgentSpec) -> AgentSpec:
    """With DQN's optimiser, and its target copied every 10,000 agent steps."""
    return replace(spec, optimiser=RmsProp(), learning=Learning(target_every_steps=10_000))


@agent("bootstrapped-dqn", presets="all")
def bootstrapped_dqn() -> AgentSpec:
    """Follow one of K heads for an episode, vote when evaluated (Osband et al. 2016)."""
    return _as_dqn(_ensemble(Thompson(), Vote()))


@agent("bootstrapped-ucb", presets="all")
def bootstrapped_ucb() -> AgentSpec:
    """Largest mean plus λ standard deviations over K heads (Chen et al. 2017)."""
    # Its target is copied every 40,000 agent steps, in the authors' code of IDS too.
    return replace(_ensemble(Ucb(lam=0.1), Vote()), optimiser=RmsProp())


@agent("ensemble-vote", presets="all")
def ensemble_vote() -> AgentSpec:
    """The action that most of K heads prefer, also while exploring (Chen et al. 2017)."""
    return _as_dqn(_ensemble(Vote(), Vote()))


@agent("dqn-ids", presets="all")
def dqn_ids() -> AgentSpec:
    """Information-directed with constant noise ρ² = 1 (the paper's homoscedastic agent)."""
    return _ensemble(Ids(noise="constant"))


@agent("c51-ids", presets="all")
def c51_ids() -> AgentSpec:
    """Information-directed, noise from a C51 head that leaves the trunk alone."""
    return _ensemble(Ids(), z=Categorical())


@agent("qrdqn-ids", presets="all")
def qrdqn_ids() -> AgentSpec:
    """Information-directed, noise from a QR-DQN head that leaves the trunk alone."""
    return _ensemble(Ids(), z=Quantile())


@agent("iqn-ids", presets="all")
def iqn_ids() -> AgentSpec:
    """Information-directed, noise from an IQN head that leaves the trunk alone."""
    return _ensemble(Ids(), z=Implicit())


@agent("c51-thompson", presets="all")
def c51_thompson() -> AgentSpec:
    """A head per episode and a return per step: noise counts as if it could be learned away."""
    # All but the rule is `c51-ids`, which it is here to be compared with.
    return _ensemble(ReturnThompson(), z=Categorical())


@agent("bdqn", presets="all")
def bdqn() -> AgentSpec:
    """Thompson sampling from a Bayesian linear last layer (Azizzadenesheli et al. 2018)."""
    return _as_dqn(replace(_ensemble(Thompson()), heads={"q": Bayesian(init="torch")}))
