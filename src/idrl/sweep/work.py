"""How much arithmetic, memory and disk a run takes, from its config alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from idrl.actions import actions_of
from idrl.agents import make_agent
from idrl.config import RunConfig
from idrl.envs import Env, HostEnv, find, make_env
from idrl.runs.sizing import check_replay, frame_bytes, needs, operations, parameters

# Bytes of a step: frames of random play take 23 to 91, and are there twice (docs/promises.md).
_SAVED = 200.0


def _stand_in(env: str) -> Env | HostEnv | None:
    family = find(env)
    return None if family is None else family.stand_in


def _key(config: RunConfig) -> RunConfig:
    """Environments with the same stand-in are one, and so are all seeds."""
    stand_in = _stand_in(config.env)
    env = config.env if stand_in is None else stand_in.name
    return replace(config, env=env, seed=0, seeds=1)


_known: dict[str, tuple[float, float, float, float]] = {}


def _facts(config: RunConfig) -> tuple[float, float, float, float]:
    """Operations of a pass, bytes on the device, bytes of a checkpoint, and of what is saved apart
    from it: frames, and weights that are kept."""
    key = repr(_key(config))
    if key not in _known:
        env = _stand_in(config.env) or make_env(config.env)
        agent = make_agent(config.spec, env.obs_shape, actions_of(env), env.name)
        size = saved = float(sum(needs(agent, config, env).values()))
        frames = 0.0
        if isinstance(env, HostEnv) and env.stack > 1:  # frames are saved apart from checkpoints
            saved -= config.learning.replay_capacity * frame_bytes(agent, env)
            frames = config.learning.replay_capacity * _SAVED
        kept = 4.0 * parameters(agent) * config.training.keep_weights
        _known[key] = operations(agent), size, saved, frames + kept
    return _known[key]


def per_step(config: RunConfig) -> float:
    """Operations of updates for each step of a seed."""
    learning = config.learning
    return _facts(config)[0] * learning.batch_size / learning.update_every_steps


def memory_of(config: RunConfig) -> float:
    """Bytes of one seed on its device, at least."""
    return _facts(config)[1]


def disk_of(config: RunConfig) -> float:
    """Bytes of one seed's folder: two checkpoints, frames, and weights that are kept."""
    return 2.0 * _facts(config)[2] + _facts(config)[3]


def check_replays(configs: Iterable[RunConfig]) -> None:
    """Refuse replays that `idrl train` would refuse."""
    envs: dict[str, Env | HostEnv] = {}
    for config in configs:
        if config.env not in envs:
            envs[config.env] = _stand_in(config.env) or make_env(config.env)
        check_replay(config, envs[config.env])


def check_installed(envs: Iterable[str]) -> None:
    """Build one of each environment: refuses names that are wrong, and what is not installed."""
    for env in dict.fromkeys(envs):
        make_env(env)
