"""Environments by name, from objects and from what makes them."""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np

from idrl.envs.adapters.gymnax_env import GymnaxEnv
from idrl.envs.base import Env, mask_of
from idrl.envs.declaring import Family, add_name, find, unknown_environment
from idrl.envs.host import HostEnv
from idrl.errors import IdrlError


def register_env(name: str, factory: Any) -> None:
    """Make `name` stand for an environment wherever the name of one is expected.

    Args:
        name: the name, without spaces, `?`, `&` and `=`.
        factory: an environment object, or a function or class that makes one.
    """
    add_name(name, factory, sys._getframe(1).f_globals.get("__name__", ""))


def on_host(name: str) -> bool:
    """Whether an environment runs on the host rather than compiled on the device.

    Args:
        name: its name.
    """
    known = find(name)
    if known is None or known.host is None:
        return isinstance(make_env(name), HostEnv)
    return known.host


def make_env(env: Any) -> Env | HostEnv:
    """Make an environment.

    Args:
        env: a name, an object (idrl's, gymnax's or Gymnasium's) or a function that makes one.
    """
    if isinstance(env, str):
        return _by_name(env)
    if isinstance(env, HostEnv):
        return env
    factory = None
    if _is_factory(env):
        factory, env = env, env()
    if _is_gymnasium(env):
        from idrl.envs.adapters.gymnasium_env import GymnasiumEnv, from_object

        return from_object(env) if factory is None else GymnasiumEnv(factory)
    if isinstance(env, HostEnv):
        return env
    if hasattr(env, "step_env") and hasattr(env, "default_params"):
        return GymnaxEnv(env)
    missing = [
        a for a in ("num_actions", "obs_shape", "task", "reset", "step") if not hasattr(env, a)
    ]
    if getattr(env, "action_box", None) is not None and "num_actions" in missing:
        missing.remove("num_actions")
    if missing:
        raise IdrlError(
            f"{type(env).__name__} is not an environment that idrl knows: it lacks "
            f"{', '.join(missing)}; see idrl.envs.Env for the protocol, or pass one of "
            "gymnax or Gymnasium."
        )
    if not hasattr(env, "name"):
        env.name = type(env).__name__
    _check_mask(env)
    return env


def _check_mask(env: Env) -> None:
    mask = mask_of(env)
    if mask is None:
        return

    def first(key):
        task = env.task(key)
        return mask(task, env.reset(task, key)[0])

    found = jax.eval_shape(first, jax.random.key(0))
    shape, dtype = getattr(found, "shape", None), getattr(found, "dtype", None)
    if shape != (env.num_actions,) or dtype != np.bool_:
        raise IdrlError(
            f"{env.name}.allowed(task, state) returns shape {shape} of {dtype}; it must be a "
            f"boolean for each of the {env.num_actions} actions."
        )


def _is_gymnasium(env: Any) -> bool:
    """Without an import: where nobody imported Gymnasium, nobody has an environment of it."""
    gymnasium = sys.modules.get("gymnasium")
    return gymnasium is not None and isinstance(env, gymnasium.Env)


def _is_factory(env: Any) -> bool:
    return isinstance(env, type) or (callable(env) and not hasattr(env, "step"))


def _by_name(name: str) -> Env | HostEnv:
    known = find(name)
    if known is None:
        raise unknown_environment(name)
    env = make_env(_source(known, name))
    env.name = name
    if known.host is not None and known.host != isinstance(env, HostEnv):
        where = "device" if known.host else "host"
        raise IdrlError(f"{name!r} runs on the {where}, but its family says host={known.host}.")
    return env


def _source(known: Family, name: str) -> Any:
    """What makes the environment `name`, and may be called more than once."""
    argument, options = known.parse(name)
    known.check_argument(argument)
    if not _is_factory(known.make):  # an object under a name
        return known.make
    given = () if argument is None else (argument,)

    def construct() -> Any:
        try:
            return known.make(*given, **options)
        except IdrlError:
            raise
        except Exception as error:  # of one's own constructor
            told = " ".join(str(error).split()).rstrip(".")
            raise IdrlError(f"{name!r} cannot be made: {type(error).__name__}: {told}.") from error

    return construct
