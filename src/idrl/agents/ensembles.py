"""Agents that explore by an ensemble: one trunk, K heads, and three ways to use them."""

from idrl.agents.choosing import Greedy, Ids, Thompson, Vote
from idrl.agents.registry import agent
from idrl.agents.spec import AgentSpec
from idrl.networks.heads import Categorical, Ensemble, Quantile
from idrl.networks.trunks import NatureCnn


@agent("bootstrapped-dqn")
def bootstrapped_dqn() -> AgentSpec:
    """Follow one of K heads for an episode, vote when evaluated (Osband et al. 2016)."""
    return AgentSpec(
        trunk=NatureCnn(), heads={"q": Ensemble()}, explore=Thompson(), evaluate=Vote()
    )


@agent("dqn-ids")
def dqn_ids() -> AgentSpec:
    """Information-directed with constant noise ρ² = 1 (the paper's homoscedastic agent)."""
    return AgentSpec(
        trunk=NatureCnn(), heads={"q": Ensemble()}, explore=Ids(noise="constant"), evaluate=Greedy()
    )


@agent("c51-ids")
def c51_ids() -> AgentSpec:
    """Information-directed, noise from a C51 head that leaves the trunk alone."""
    return AgentSpec(
        trunk=NatureCnn(),
        heads={"q": Ensemble(), "z": Categorical()},
        explore=Ids(),
        evaluate=Greedy(),
    )


@agent("qrdqn-ids")
def qrdqn_ids() -> AgentSpec:
    """Information-directed, noise from a QR-DQN head that leaves the trunk alone."""
    return AgentSpec(
        trunk=NatureCnn(),
        heads={"q": Ensemble(), "z": Quantile()},
        explore=Ids(),
        evaluate=Greedy(),
    )
