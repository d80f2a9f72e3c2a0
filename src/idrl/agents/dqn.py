"""DQN and what was built on its one Q-function: double, dueling, noisy, prioritised.

Periods are in agent steps, optimisers see gradients averaged over the batch (`RmsProp`).
"""

from dataclasses import replace

from idrl.agents.choosing import DECAY_STEPS, EpsilonGreedy, Greedy
from idrl.agents.optimisers import RmsProp
from idrl.agents.registry import agent
from idrl.agents.spec import AgentSpec, Learning
from idrl.networks.heads import Ensemble
from idrl.networks.trunks import NatureCnn

_HALF = 0.5**0.5  # two streams send their gradients into one trunk (Wang et al. 2016)

# A quarter of DQN's learning rate, for what replay by priority makes of gradients (Schaul et al.
# 2016) and for two streams (Wang et al. 2016). dqn_zoo scales ε along with prioritised gradients.
_QUARTER_LR = RmsProp.lr / 4
_QUARTER_EPS = RmsProp.eps / 4**2


@agent("dqn", presets="all")
def dqn() -> AgentSpec:
    """One Q-function, ε-greedy, target by its own maximum (Mnih et al. 2015)."""
    return AgentSpec(
        trunk=NatureCnn(init="torch"),
        heads={"q": Ensemble(k=1, double=False, init="torch")},
        explore=EpsilonGreedy(start=1.0, end=0.1, decay_steps=DECAY_STEPS),
        evaluate=Greedy(),
        optimiser=RmsProp(),
        # The table's "10,000, in parameter updates" is in agent steps in every implementation:
        # 4e4 emulator frames in dqn_zoo, 10,000 steps in Dopamine and in the authors' code of IDS.
        learning=Learning(target_every_steps=10_000),
    )


@agent("ddqn", presets="all")
def ddqn() -> AgentSpec:
    """DQN whose next action is chosen by the online network (van Hasselt et al. 2016, tuned)."""
    return replace(
        dqn(),
        heads={"q": Ensemble(k=1, init="torch")},
        explore=EpsilonGreedy(start=1.0, end=0.01, decay_steps=DECAY_STEPS),
        learning=Learning(target_every_steps=30_000),  # 1.2e5 emulator frames in dqn_zoo
    )


@agent("dueling", presets="all")
def dueling() -> AgentSpec:
    """Double DQN with a value and an advantage stream (Wang et al. 2016)."""
    return replace(
        ddqn(),
        heads={"q": Ensemble(k=1, init="torch", dueling=True, trunk_gradient=_HALF)},
        optimiser=RmsProp(lr=_QUARTER_LR, max_grad_norm=10.0),
    )


@agent("noisynet-dqn", presets="all")
def noisynet_dqn() -> AgentSpec:
    """DQN that explores by learned noise in its weights instead of ε (Fortunato et al. 2018)."""
    return replace(
        dqn(), heads={"q": Ensemble(k=1, double=False, noisy=0.5, init="torch")}, explore=Greedy()
    )


@agent("noisynet-dueling", presets="all")
def noisynet_dueling() -> AgentSpec:
    """Dueling streams with noisy weights (Fortunato et al. 2018)."""
    return replace(
        dueling(),
        heads={"q": Ensemble(k=1, noisy=0.5, init="torch", dueling=True, trunk_gradient=_HALF)},
        explore=Greedy(),
    )


@agent("prioritized", presets="all")
def prioritized() -> AgentSpec:
    """Double DQN that replays what surprised it (Schaul et al. 2016, proportional)."""
    learning = replace(ddqn().learning, priority=0.6, importance=0.4)
    return replace(ddqn(), learning=learning, optimiser=RmsProp(lr=_QUARTER_LR, eps=_QUARTER_EPS))


@agent("prioritized-dueling", presets="all")
def prioritized_dueling() -> AgentSpec:
    """Dueling streams and prioritised replay (Wang et al. 2016)."""
    return replace(
        dueling(),
        learning=prioritized().learning,
        optimiser=RmsProp(lr=_QUARTER_LR, eps=_QUARTER_EPS, max_grad_norm=10.0),
    )
