"""Heads: features → what is believed of the return, each with its own loss.

A head is declared by a frozen dataclass. It says what its network is (`module`), what its output
means to a rule (`q_heads`, `return_variance`), how it learns (`loss`) and how much of its gradient
reaches the trunk (`trunk_share`). Where actions are continuous
the same heads are critics, of one action that is part of their input, and an actor is beside them.
"""

from idrl.networks.heads.actors import Actor, ActorHead, GaussianActor
from idrl.networks.heads.base import Head, MlpHead, Transition, head
from idrl.networks.heads.bayesian import Bayesian
from idrl.networks.heads.ensemble import Ensemble
from idrl.networks.heads.implicit import Implicit
from idrl.networks.heads.returns import Categorical, Quantile
from idrl.networks.layers import Mlps

__all__ = [
    "Actor", "ActorHead", "Bayesian", "Categorical", "Ensemble", "GaussianActor", "Head",
    "Implicit", "MlpHead", "Mlps", "Quantile", "Transition", "head",
]  # fmt: skip
