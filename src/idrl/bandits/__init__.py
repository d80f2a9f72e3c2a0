"""Bandits: which point to query next, when some measurements are noisier than others.

Ask and tell over a finite set of candidates::

    model = GaussianProcess(candidates, lengthscale=0.2, noise_variance=0.1)
    decision = suggest(model, rule="ids")          # the same `Decision` as the deep agents'
    model = observe(model, decision.action, value)

Everything is loaded when first used, so that the command line stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

_HOME = {
    "GaussianProcess": "models",
    "LinearGaussian": "models",
    "GaussianArms": "models",
    "BetaBernoulli": "bernoulli",
    "suggest": "asking",
    "observe": "asking",
    "observe_at": "asking",
    "BanditRule": "choosing",
    "RULES": "choosing",
    "named_rule": "choosing",
    "KERNELS": "kernels",
    "SETTINGS": "settings",
    "simulate": "simulation",
}

__all__ = [*_HOME]

if TYPE_CHECKING:  # what __getattr__ finds, for type checkers and editors
    from idrl.bandits.asking import observe, observe_at, suggest  # noqa: F401
    from idrl.bandits.bernoulli import BetaBernoulli  # noqa: F401
    from idrl.bandits.choosing import RULES, BanditRule, named_rule  # noqa: F401
    from idrl.bandits.kernels import KERNELS  # noqa: F401
    from idrl.bandits.models import GaussianArms, GaussianProcess, LinearGaussian  # noqa: F401
    from idrl.bandits.settings import SETTINGS  # noqa: F401
    from idrl.bandits.simulation import simulate  # noqa: F401


def __getattr__(name: str):
    if name in _HOME:
        return getattr(importlib.import_module(f"idrl.bandits.{_HOME[name]}"), name)
    raise AttributeError(f"module 'idrl.bandits' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
