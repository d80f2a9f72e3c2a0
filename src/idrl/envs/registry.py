"""Environments by name: `family`, `family/argument`, `family/argument?option=value&…`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from idrl.envs.adapters.atari import GAMES as ATARI_GAMES
from idrl.envs.adapters.atari import AtariEnv
from idrl.envs.adapters.brax_env import EPISODE, BraxEnv
from idrl.envs.adapters.gymnax_env import ALIASES, GymnaxEnv, make_gymnax
from idrl.envs.base import Env, mask_of
from idrl.envs.families.bsuite import GAMES as BSUITE_GAMES
from idrl.envs.families.bsuite import make_bsuite
from idrl.envs.families.deep_sea import DeepSea
from idrl.envs.families.heteroscedastic import SOURCES, heteroscedastic
from idrl.envs.families.maze import Maze
from idrl.envs.families.minatar import GAMES, MinAtar
from idrl.envs.families.noisy_chain import NoisyChain
from idrl.envs.families.noisy_push import NoisyPush
from idrl.envs.host import HostEnv
from idrl.errors import IdrlError, nearest
from idrl.schema import parse_assignment

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
        "maze/N": "N×N cells, a door at the end, action masks; ?mask=0 hides them",
        "noisy_push/N": "a chain pushed along a hidden way, a gamble; continuous; ?noise=0.5",
        "noisy_chain/N": "N states, one reward at the end, a gamble on the way; ?noise=1.0",
        **{f"hetero/{name}": f"exact Var Z: {text}" for name, (_, text) in SOURCES.items()},
        **{
            f"minatar/{name}": f"10×10 board (gymnax {GAMES[name]}); ?sticky=0, ?limit=1000"
            for name in GAMES
        },
        **{alias: f"{text} (gymnax {name})" for alias, (name, text) in ALIASES.items()},
        **{
            f"bsuite/{game}": f"{facts.line} (bsuite); ?noise=1.0"
            for game, facts in BSUITE_GAMES.items()
        },
        "atari/GAME": "Atari 2600 (idrl[atari]); ?sticky=0.25, ?life_loss=0, ?release=1",
        "gymnax/NAME": "any other gymnax environment",
        "brax/NAME": "Brax's (idrl[brax]), continuous; ?backend=spring, ?episode=1000",
        "gym/ID": "any Gymnasium environment; ?option=value for its make; MuJoCo's: idrl[mujoco]",
    }
    return known | dict.fromkeys(_USER, "registered by you")


def atari_games() -> tuple[str, ...]:
    """What GAME of `atari/GAME` may be."""
    return ATARI_GAMES


def is_registered(name: str) -> bool:
    return name in _USER


def family_of(name: str) -> str:
    """The family that a preset is chosen by."""
    return name.split("?")[0].split("/")[0]


def size_of(name: str, default: int = 10) -> int:
    """N of `family/N`."""
    argument = name.split("?")[0].partition("/")[2]
    return _number(name, argument, int) if argument else default


def option_of(name: str, option: str, default: float, kind: type = float) -> Any:
    """The number that `name` gives an option, or its default."""
    text = options_of(name).get(option)
    return default if text is None else _number(name, text, kind)


def options_of(name: str) -> dict[str, str]:
    """What `name` says behind its question mark."""
    _, mark, query = name.partition("?")
    pairs = [part.partition("=") for part in query.split("&")] if mark else []
    if any(not key or not value for key, _, value in pairs):
        raise IdrlError(f"{name!r}: options are written ?option=value&option=value.")
    options = {key: value for key, _, value in pairs}
    if len(options) < len(pairs):
        raise IdrlError(f"{name!r} says an option twice: leave one away.")
    return options


def make_env(env: Any) -> Env | HostEnv:
    """An environment from a name, from an object (ours, gymnax's, Gymnasium's) or its factory."""
    if isinstance(env, str):
        return _by_name(env)
    if isinstance(env, HostEnv):
        return env
    factory = None
    if isinstance(env, type) or (callable(env) and not hasattr(env, "step")):
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
            f"{type(env).__name__} is no environment idrl knows: it lacks {', '.join(missing)}; "
            "see idrl.envs.Env for the protocol, or pass one of gymnax or Gymnasium."
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
            f"{env.name}.allowed(task, state) returns shape {shape} of {dtype}; it is a boolean "
            f"for each of the {env.num_actions} actions."
        )


def _is_gymnasium(env: Any) -> bool:
    """Without an import: where nobody imported Gymnasium, nobody has an environment of it."""
    gymnasium = sys.modules.get("gymnasium")
    return gymnasium is not None and isinstance(env, gymnasium.Env)


def _by_name(name: str) -> Env | HostEnv:
    if name in _USER:
        registered = make_env(_USER[name])
        registered.name = name
        return registered
    path, options = name.partition("?")[0], options_of(name)
    family, _, argument = path.partition("/")
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
    if family == "noisy_chain":
        _only(name, options, NoisyChain)
        chain = NoisyChain(size_of(name), noise=option_of(name, "noise", 1.0))
        chain.name = name
        return chain
    if family == "maze":
        _only(name, options, Maze)
        maze = Maze(size_of(name, 4), mask=_switch(name, options, "mask", "1"))
        maze.name = name
        return maze
    if family == "noisy_push":
        _only(name, options, NoisyPush)
        push = NoisyPush(size_of(name), noise=option_of(name, "noise", 0.5))
        push.name = name
        return push
    if family == "minatar" and argument:
        _only(name, options, MinAtar)
        game = MinAtar(
            argument, option_of(name, "sticky", 0.1), limit=option_of(name, "limit", 0, int)
        )
        game.name = name
        return game
    if family == "atari" and argument:
        _only(name, options, AtariEnv)
        atari = AtariEnv(
            argument,
            sticky=option_of(name, "sticky", 0.0),
            life_loss=_switch(name, options, "life_loss", "1"),
            release=_switch(name, options, "release", "0"),
        )
        atari.name = name
        return atari
    if family == "brax" and argument:
        _only(name, options, BraxEnv)
        backend = options.get("backend", "generalized")
        brax = BraxEnv(argument, backend, option_of(name, "episode", EPISODE, int))
        brax.name = name
        return brax
    if options and (family in ("gymnax", "hetero") or path in ALIASES):
        raise IdrlError(f"{name!r}: {path} takes no options.")
    if family == "hetero" and argument:
        return heteroscedastic(argument)
    if (family == "gymnax" and argument) or path in ALIASES:
        return make_gymnax(path)
    if family == "gym" and argument:
        from idrl.envs.adapters.gymnasium_env import from_id  # it takes a while to import

        values = [parse_assignment(f"{key}={value}") for key, value in options.items()]
        return from_id(name, {key: value for each in values for key, value in each.items()})
    raise IdrlError(f"unknown environment {name!r}; {nearest(path, families())}")


def _only(name: str, options: dict[str, str], cls: type) -> None:
    # What is behind a star is not said by name.
    parameters = inspect.signature(cls).parameters.values()
    named = [p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    known = [p for p in named if p not in ("size", "game", "model")]
    for option in options:
        if option not in known:
            raise IdrlError(f"{name!r}: unknown option {option!r}; {nearest(option, known)}")


def _switch(name: str, options: dict[str, str], option: str, default: str) -> bool:
    text = options.get(option, default)
    if text not in ("0", "1"):
        raise IdrlError(f"{name!r}: {option} is 0 or 1, not {text!r}.")
    return text == "1"


def _number(name: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise IdrlError(f"{name!r}: {text!r} is not {what}.") from None
