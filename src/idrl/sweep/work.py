"""How much arithmetic, memory and disk a run takes, from its config alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from idrl.agents import Agent
from idrl.config import RunConfig
from idrl.config.atari_presets import is_atari
from idrl.envs import Env, HostEnv, make_env
from idrl.envs.adapters.atari import SIDE
from idrl.runs.sizing import needs, operations

_FRAMES_SAVED = 100e6  # bytes: a million frames of random play take 23 to 91 MB (docs/promises.md)


class _Pictures(HostEnv):
    """What an Atari game shows, without the game: it need not be installed to be planned."""

    name = "atari"
    obs_shape = (SIDE, SIDE, 4)
    obs_dtype: Any = "uint8"
    num_actions = 18
    stack = 4


def _world(env: str) -> Env | HostEnv:
    return _Pictures() if is_atari(env) else make_env(env)


def _key(config: RunConfig) -> RunConfig:
    """Games of one shape are one, and so are all seeds."""
    env = "atari/pong" if is_atari(config.env) else config.env
    return replace(config, env=env, seed=0, seeds=1)


_known: dict[str, tuple[float, float, float]] = {}


def _facts(config: RunConfig) -> tuple[float, float, float]:
    """Operations of a pass, bytes on the device, and bytes of a checkpoint."""
    key = repr(_key(config))
    if key not in _known:
        env = _world(config.env)
        agent = Agent(config.spec, env.obs_shape, env.num_actions)
        sizes = [sum(needs(agent, config, env, playing=p).values()) for p in (False, True)]
        _known[key] = operations(agent), float(sizes[0]), float(sizes[1])
    return _known[key]


def per_step(config: RunConfig) -> float:
    """Operations of updates for each step of a seed."""
    learning = config.learning
    return _facts(config)[0] * learning.batch_size / learning.update_every_steps


def memory_of(config: RunConfig) -> float:
    """Bytes of one seed on its device, at least."""
    return _facts(config)[1]


def disk_of(config: RunConfig) -> float:
    """Bytes of one seed's folder: two checkpoints, and frames where these are saved apart."""
    return 2.0 * _facts(config)[2] + (_FRAMES_SAVED if is_atari(config.env) else 0.0)


def check_installed(envs: Iterable[str]) -> None:
    """Build one of each environment: refuses names that are wrong, and what is not installed."""
    for env in dict.fromkeys(envs):
        make_env(env)
