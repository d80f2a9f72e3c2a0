"""Heads: features → what is believed of the return, each with its own loss.

A head is declared by a frozen dataclass with a `kind`. It says how wide its network is
(`module`), what its output means to a rule (`q_heads`, `return_variance`), how it learns (`loss`)
and how much of its gradient reaches the trunk (`trunk_share`).
"""

from idrl.networks.heads.base import Transition
from idrl.networks.heads.bayesian import Bayesian
from idrl.networks.heads.ensemble import Ensemble
from idrl.networks.heads.implicit import Implicit
from idrl.networks.heads.returns import Categorical, Quantile
from idrl.networks.layers import Mlps

Head = Ensemble | Bayesian | Categorical | Quantile | Implicit

__all__ = [
    "Bayesian", "Categorical", "Ensemble", "Head", "Implicit", "Mlps", "Quantile", "Transition",
]  # fmt: skip
