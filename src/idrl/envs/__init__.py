"""Environments: two protocols, gymnax and Gymnasium behind them, and families that have names."""

from idrl.envs import families as _built_in  # noqa: F401  (registers them)
from idrl.envs.base import Env, Step
from idrl.envs.declaring import Family, Unit, families, family, find, unit_of
from idrl.envs.host import HostEnv
from idrl.envs.naming import family_of
from idrl.envs.presets import PresetContext
from idrl.envs.registry import make_env, on_host, register_env
from idrl.envs.views import Pen, View

__all__ = [
    "Env", "Family", "HostEnv", "Pen", "PresetContext", "Step", "Unit", "View", "families",
    "family", "family_of", "find", "make_env", "on_host", "register_env", "unit_of",
]  # fmt: skip
