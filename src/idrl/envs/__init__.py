"""Environments: one protocol, gymnax and Gymnasium behind it, and small tasks of our own."""

from idrl.envs.base import Env, Step
from idrl.envs.host import HostEnv
from idrl.envs.registry import families, family_of, make_env, register_env

__all__ = ["Env", "HostEnv", "Step", "families", "family_of", "make_env", "register_env"]
