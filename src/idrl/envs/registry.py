"""Environments by name: `family`, `family/argument`, `family/argument?option=value&…`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from idrl.envs.base import Env
from idrl.envs.bsuite import GAMES, make_bsuite
from idrl.envs.deep_sea import DeepSea
from idrl.envs.gymnax_env import ALIASES, GymnaxEnv, make_gymnax
from idrl.errors import IdrlError, nearest

_USER: dict[str, Callable[[], Any]] = {}


def register_env(name: str, factory: Any) -> None:
    """Make `name` stand for an environment object or for what `factory()` returns."""
    taken = {family_of(known) for known in families()}
    if name in _USER or family_of(name) in taken - {family_of(user) for user in _USER}:
        raise IdrlError(f"an environment named {name!r} exists already; choose another name.")
    if not name or any(c in name for c in "?&= "):
        raise IdrlError(f"{name!r} cannot name an environment: no spaces, '?', '&' or '='.")
    _USER[name] = factory


def families() -> dict[str, str]:
    """Name patterns with a line on each."""
    known = {
        "deep_sea/N": "N×N grid, one reward after N right moves; ?slip=0.05, ?stochastic=1",
        **{alias: f"{text} (gymnax {name})" for alias, (name, text) in ALIASES.items()},
        **{f"bsuite/{game}": f"{facts.line} (bsuite); ?noise=1.0" for game, facts in GAMES.items()},
        "gymnax/NAME": "any other gymnax environment with discrete actions",
    }
    return known | dict.fromkeys(_USER, "registered by you")


def family_of(name: str) -> str:
    """The family that a preset is chosen by."""
    return name.split("?")[0].split("/")[0]


def size_of(name: str, default: int = 10) -> int:
    """N of `family/N`."""
    argument = name.split("?")[0].partition("/")[2]
    return _number(name, argument, int) if argument else default


def option_of(name: str, option: str, default: float) -> float:
    """A number among the options of `family/argument?option=value`."""
    text = _options(name, name.partition("?")[2]).get(option)
    return default if text is None else _number(name, text, float)


def make_env(env: Any) -> Env:
    """An `Env` from a name, an object (ours or gymnax's), or a factory of one."""
    if isinstance(env, str):
        return _by_name(env)
    if isinstance(env, type) or (callable(env) and not hasattr(env, "step")):
        env = env()
    if hasattr(env, "step_env") and hasattr(env, "default_params"):
        return GymnaxEnv(env)
    missing = [
        a for a in ("num_actions", "obs_shape", "task", "reset", "step") if not hasattr(env, a)
    ]
    if missing:
        raise IdrlError(
            f"{type(env).__name__} is no environment idrl knows: it lacks {', '.join(missing)}; "
            "see idrl.envs.Env for the protocol, or pass a gymnax environment."
        )
    if not hasattr(env, "name"):
        env.name = type(env).__name__
    return env


def _by_name(name: str) -> Env:
    if name in _USER:
        env = make_env(_USER[name])
        env.name = name
        return env
    path, _, query = name.partition("?")
    family, _, argument = path.partition("/")
    options = _options(name, query)
    if family == "deep_sea":
        _only(name, options, DeepSea)
        env = DeepSea(
            size_of(name),
            slip=_number(name, options.get("slip", "0"), float),
            stochastic=bool(_number(name, options.get("stochastic", "0"), int)),
        )
        env.name = name
        return env
    if family == "bsuite":
        return make_bsuite(name, {key: _number(name, o, float) for key, o in options.items()})
    if options and (family == "gymnax" or path in ALIASES):
        raise IdrlError(f"{name!r}: {path} takes no options.")
    if (family == "gymnax" and argument) or path in ALIASES:
        return make_gymnax(path)
    raise IdrlError(f"unknown environment {name!r}; {nearest(path, families())}")


def _options(name: str, query: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in query.split("&") if part]
    if any(not key or not value for key, _, value in pairs):
        raise IdrlError(f"{name!r}: options are written ?option=value&option=value.")
    return {key: value for key, _, value in pairs}


def _only(name: str, options: dict[str, str], cls: type) -> None:
    known = [p for p in inspect.signature(cls).parameters if p != "size"]
    for option in options:
        if option not in known:
            raise IdrlError(f"{name!r}: unknown option {option!r}; {nearest(option, known)}")


def _number(name: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise IdrlError(f"{name!r}: {text!r} is not {what}.") from None
