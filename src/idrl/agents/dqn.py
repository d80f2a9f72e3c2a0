"""DQN (Mnih et al. 2015) and Double DQN (van Hasselt et al. 2016)."""

from idrl.agents.choosing import EpsilonGreedy, Greedy
from idrl.agents.registry import agent
from idrl.agents.spec import AgentSpec, Learning, RmsProp
from idrl.networks.heads import Ensemble
from idrl.networks.trunks import NatureCnn


@agent("dqn")
def dqn() -> AgentSpec:
    """One Q-function, ε-greedy, target by its own maximum."""
    return AgentSpec(
        trunk=NatureCnn(init="torch"),
        heads={"q": Ensemble(k=1, double=False, init="torch")},
        explore=EpsilonGreedy(start=1.0, end=0.1, decay_steps=250_000),  # 1M frames
        evaluate=Greedy(),
        optimiser=RmsProp(),
        learning=Learning(target_every_steps=40_000),  # 10,000 updates
    )


@agent("ddqn")
def ddqn() -> AgentSpec:
    """DQN whose next action is chosen by the online network (its tuned version)."""
    return AgentSpec(
        trunk=NatureCnn(init="torch"),
        heads={"q": Ensemble(k=1, double=True, init="torch")},
        explore=EpsilonGreedy(start=1.0, end=0.01, decay_steps=250_000),
        evaluate=Greedy(),
        optimiser=RmsProp(),
        learning=Learning(target_every_steps=120_000),  # 30,000 updates
    )
