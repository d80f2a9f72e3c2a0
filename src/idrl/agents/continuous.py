"""Agents for continuous actions. They differ in how they explore, and in nothing they need not."""

from dataclasses import replace

from idrl.agents.actor_rules import Follow, GaussianNoise, OuNoise, Sample
from idrl.agents.choosing import Ids, Thompson, Ucb
from idrl.agents.optimisers import Adam
from idrl.agents.registry import agent
from idrl.agents.rule_base import Rule
from idrl.agents.spec import AgentSpec, Learning
from idrl.networks.heads import Actor, Ensemble, GaussianActor, Head, Quantile
from idrl.networks.trunks import Mlp


def _critics(k: int) -> Ensemble:
    """Independent networks: the trunk has no layers. Squared errors, as all three papers."""
    return Ensemble(k=k, hidden=(256, 256), init="torch", double=False, error="squared")


def _agent(explore: Rule, k: int, actor: Head, lr: float = 1e-3, **heads: Head) -> AgentSpec:
    return AgentSpec(
        trunk=Mlp(hidden=()),
        heads={"q": _critics(k), **heads, "actor": actor},
        explore=explore,
        evaluate=Follow(),
        optimiser=Adam(lr=lr, b2=0.999, eps=1e-8),
        learning=Learning(
            batch_size=256,
            update_every_steps=1,
            target_every_steps=1,
            tau=0.005,
            learning_starts_steps=1_000,
        ),
    )


@agent("ddpg", presets="all")
def ddpg() -> AgentSpec:
    """One critic, a deterministic actor, Gaussian noise on its actions (Lillicrap et al. 2016)."""
    return _agent(GaussianNoise(scale=0.1), 1, Actor())


@agent("ddpg-ou", presets="all")
def ddpg_ou() -> AgentSpec:
    """DDPG with Ornstein–Uhlenbeck noise, which drifts (Lillicrap et al. 2016)."""
    return _agent(OuNoise(), 1, Actor())


@agent("td3", presets="all")
def td3() -> AgentSpec:
    """Two critics, the smaller as target, a smoothed and later actor (Fujimoto et al. 2018)."""
    actor = Actor(delay=2, smoothing=0.2, climbs="first", targets="least")
    spec = _agent(GaussianNoise(scale=0.1), 2, actor)
    return replace(spec, learning=replace(spec.learning, target_every_steps=2))  # with the actor


@agent("sac", presets="all")
def sac() -> AgentSpec:
    """A distribution over actions that is paid for its entropy (Haarnoja et al. 2018)."""
    return _agent(Sample(), 2, GaussianActor(), lr=3e-4)


@agent("ddpg-ids", presets="all")
def ddpg_ids() -> AgentSpec:
    """Information-directed among candidate actions, noise from a quantile critic."""
    return _agent(Ids(), 10, Actor(), z=_returns())


@agent("ddpg-ucb", presets="all")
def ddpg_ucb() -> AgentSpec:
    """Largest mean plus λ standard deviations of K critics among candidates (as in SUNRISE)."""
    return _agent(Ucb(lam=1.0), 10, Actor())


@agent("ddpg-thompson", presets="all")
def ddpg_thompson() -> AgentSpec:
    """The best candidate of one of K critics, drawn for an episode."""
    return _agent(Thompson(), 10, Actor())


def _returns() -> Quantile:
    """Its gradient stays its own: `trunk_gradient` is 0."""
    return Quantile(quantiles=51, hidden=(256, 256), init="torch")
