"""Agents that learn the distribution of the return, without an ensemble."""

from idrl.agents.choosing import DECAY_STEPS, EpsilonGreedy, Greedy
from idrl.agents.optimisers import Adam
from idrl.agents.registry import agent
from idrl.agents.spec import AgentSpec, Learning
from idrl.networks.heads import Categorical, Head, Implicit, Quantile
from idrl.networks.trunks import NatureCnn


def _epsilon_greedy(head: Head, lr: float) -> AgentSpec:
    """Target copies every 10,000 agent steps (4e4 emulator frames in dqn_zoo) and ε to 0.01, as
    all three papers have it; Adam's ε is outside the root, on averaged gradients. Alone, the head
    shapes the trunk: `trunk_gradient` is 1."""
    return AgentSpec(
        trunk=NatureCnn(),
        heads={"z": head},
        explore=EpsilonGreedy(start=1.0, end=0.01, decay_steps=DECAY_STEPS),
        evaluate=Greedy(),
        optimiser=Adam(lr=lr, b2=0.999, eps=0.01 / 32),
        learning=Learning(target_every_steps=10_000),
    )


@agent("c51", presets="all")
def c51() -> AgentSpec:
    """The return's distribution on 51 atoms, ε-greedy on its mean (Bellemare et al. 2017)."""
    return _epsilon_greedy(Categorical(trunk_gradient=1.0), lr=2.5e-4)


@agent("qr-dqn", presets="all")
def qr_dqn() -> AgentSpec:
    """The return's distribution by 200 quantiles (Dabney et al. 2018)."""
    return _epsilon_greedy(Quantile(trunk_gradient=1.0), lr=5e-5)


@agent("iqn", presets="all")
def iqn() -> AgentSpec:
    """The return's distribution as a function of the quantile asked for (Dabney et al. 2018)."""
    return _epsilon_greedy(Implicit(trunk_gradient=1.0), lr=5e-5)


@agent("rainbow", presets="all")
def rainbow() -> AgentSpec:
    """Double, dueling, noisy, categorical, prioritised, 3-step (Hessel et al. 2018)."""
    return AgentSpec(
        trunk=NatureCnn(),
        heads={
            "z": Categorical(double=True, dueling=True, noisy=0.5, trunk_gradient=1.0, init="torch")
        },
        explore=Greedy(),
        evaluate=Greedy(),
        optimiser=Adam(lr=6.25e-5, b2=0.999, eps=1.5e-4, max_grad_norm=10.0),
        learning=Learning(
            target_every_steps=8_000,  # 32K emulator frames
            learning_starts_steps=20_000,  # 80K emulator frames
            n_step=3,
            priority=0.5,
            importance=0.4,
        ),
    )
