"""Whether a run can fit into memory, whether it and its replay are long enough to learn, and
whether it can end in anybody's time: asked before anything is allocated, from its config alone."""

from __future__ import annotations

import math
import os
from typing import Any

import jax
import numpy as np

from idrl.agents import Agent
from idrl.config import RunConfig
from idrl.envs import Env, HostEnv, unit_of
from idrl.envs.base import mask_of
from idrl.envs.declaring import STEPS
from idrl.errors import IdrlError
from idrl.replay.ring import columns, least_rows
from idrl.system.devices import cores
from idrl.training.spec import cadence

_COUNTED_SIDE = 84  # of the images whose convolutions' operations and time are known


def check_memory(
    agent: Agent, config: RunConfig, env: Env | HostEnv, playing: bool = False
) -> None:
    """Refuse what is sure not to fit, with what would; `playing`: see `needs`."""
    on_host = config.learning.replay_place == "host"
    if not isinstance(env, HostEnv) and not playing:  # an agent may be from an environment there
        if on_host:
            raise IdrlError(
                f"learning.replay_place=host is for environments that run on the host; {env.name} "
                "runs on the device, and its replay is there too: omit it."
            )
        on_host_alone = {
            "training.env_processes": config.training.env_processes,
            "evaluation.beside": config.evaluation.beside,
        }
        for name in (name for name, said in on_host_alone.items() if said):
            raise IdrlError(
                f"{name} is for environments that run on the host; {env.name} runs on the device: "
                "omit it."
            )
    parts = needs(agent, config, env, playing)
    if on_host:
        _check_fits({_REPLAY: parts.pop(_REPLAY)}, config, host_memory(), "memory on the host")
    elsewhere = "learning.replay_place=host" if isinstance(env, HostEnv) and has_own() else ""
    _check_fits(parts, config, memory(), "memory", elsewhere)


def _check_fits(
    parts: dict[str, int], config: RunConfig, have: int, kind: str, elsewhere: str = ""
) -> None:
    """`elsewhere`: the setting by which a replay needs another memory."""
    name, size = max(parts.items(), key=lambda part: part[1])
    need = sum(parts.values()) * config.seeds
    if need <= have:
        return
    told = (
        f"this run needs at least {_shown(need)} of {kind} and there are {_shown(have)}; most "
        f"of it, {_shown(size * config.seeds)}, is for {name} of {config.seeds} seeds."
    )
    if name == _REPLAY:
        # a tenth is left to what is not counted
        left = 0.9 * have / config.seeds - (sum(parts.values()) - size)
        fits = int(left * config.learning.replay_capacity / size)
        if fits >= config.learning.batch_size:
            coarse = 10 ** max(len(str(fits)) - 2, 0)
            told += f" --set {name}={fits // coarse * coarse} would fit."
        if elsewhere and size * config.seeds <= host_memory():
            told += f" --set {elsewhere} keeps the replay in the host's memory."
    raise IdrlError(told)


_REPLAY = "learning.replay_capacity"


def check_replay(config: RunConfig, env: Env | HostEnv) -> None:
    """Refuse a replay that holds too few steps to draw from. Runs that were begun with one before
    this was asked have the least, and may go on."""
    learning, envs = config.learning, config.training.envs
    stack = env.stack if isinstance(env, HostEnv) else 1
    least = least_rows(learning.n_step, stack) * envs
    if learning.replay_capacity >= least:
        return
    *given, last = (
        f"training.envs={envs}", f"learning.n_step={learning.n_step}",
        *([f"observations of {stack} frames"] if stack > 1 else []),
    )  # fmt: skip
    raise IdrlError(
        f"{_REPLAY} is {learning.replay_capacity}; with {', '.join(given)} and {last} it must be "
        f"at least {least:,}."
    )


def needs(
    agent: Agent, config: RunConfig, env: Env | HostEnv, playing: bool = False
) -> dict[str, int]:
    """Bytes of one seed by what they are for. The estimate is low: numbers of environments on the
    device may take more than a byte, and what a computation needs on the way is left out. Who is
    only `playing` has no use for a replay."""
    seen = _seen(agent, env)
    masked = env.masked if isinstance(env, HostEnv) else mask_of(env) is not None
    facts = 4 + (columns(env.num_actions) if masked else 0)  # numbers of a row, beside what is seen
    row = 0 if playing else frame_bytes(agent, env) + 4 * facts
    learning, evaluation = config.learning, config.evaluation
    return {
        _REPLAY: learning.replay_capacity * row,
        "learning.batch_size": learning.batch_size * 2 * seen,
        "training.envs": config.training.envs * seen,
        "evaluation.envs": evaluation.envs * seen,
        "evaluation.steps": evaluation.steps * 10,
        # online, target, best, and Adam's two; and those of an evaluation beside training
        "the agent's networks": (20 + 4 * evaluation.beside) * parameters(agent),
    }


def _seen(agent: Agent, env: Env | HostEnv) -> int:
    """Bytes of an observation."""
    one = np.dtype(env.obs_dtype).itemsize if isinstance(env, HostEnv) else 1
    return math.prod(agent.obs_shape) * one


def frame_bytes(agent: Agent, env: Env | HostEnv) -> int:
    """Of what a row of the replay keeps of an observation: of a stack the newest frame alone."""
    return _seen(agent, env) // (env.stack if isinstance(env, HostEnv) else 1)


def parameters(agent: Agent) -> int:
    """Numbers in the agent's networks, without making them."""
    return _count(shapes(agent)[0])


def _count(tree: Any) -> int:
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))


_known: dict[str, Any] = {}  # of the last networks: a study asks for the same again and again


def shapes(agent: Agent):
    """The shapes of parameters and priors."""
    spec = agent.spec
    key = repr((spec.trunk, spec.heads, spec.explore, agent.obs_shape, agent.actions))
    if key not in _known:
        if len(_known) > 1_000:
            _known.clear()
        _known[key] = _shapes(agent)
    return _known[key]


def _shapes(agent: Agent):
    example = jax.ShapeDtypeStruct((1, *agent.obs_shape), np.float32)
    try:
        state = jax.eval_shape(agent.init, jax.random.key(0), example)
    except (OverflowError, TypeError, ValueError) as error:  # more than an array can have
        line = " ".join(str(error).split())[:200]
        raise IdrlError(f"the agent's networks cannot be built: {line}.") from None
    return state.params, state.prior


def memory() -> int:
    """Bytes that a run's arrays could take at most. On a GPU that is what JAX allows itself, three
    quarters of it unless XLA_CLIENT_MEM_FRACTION says otherwise."""
    return sum(_limits()) if has_own() else host_memory()


def has_own() -> bool:
    """Whether the devices have memory of their own, beside the host's."""
    return all(_limits())


def _limits() -> list[int]:
    devices = jax.local_devices()
    return [(device.memory_stats() or {}).get("bytes_limit", 0) for device in devices]


def host_memory() -> int:
    """Bytes of the host's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def too_short(config: RunConfig) -> str | None:
    """A sentence on a run that is over before learning starts; None where it is longer."""
    plan = cadence(config.training, config.evaluation, config.learning, 1, flexible=True)
    if config.training.steps > plan.warmup_steps:
        return None
    unit = unit_of(config.env)
    flag, each = unit if unit.name == "frames" else STEPS
    counts = (config.training.steps, plan.warmup_steps, plan.steps_at(plan.total))
    asked, random, made = (f"{count * each:,}" for count in counts)
    return (
        f"learning starts after {random} random {flag}, and --{flag} is {asked}: the run makes "
        f"{made} {flag} and {plan.updates:,} update{'s' * (plan.updates > 1)}, so it learns next "
        f"to nothing. Use --{flag} of more than {random}, or --set learning.learning_starts_steps "
        f"to fewer than {config.training.steps:,} steps."
    )


def without_gpu(agent: Agent, config: RunConfig) -> str | None:
    """A sentence on how long a run on images takes on a CPU; None where it is nobody's concern."""
    images = len(agent.obs_shape) == 3 and min(agent.obs_shape[:2]) >= _COUNTED_SIDE
    if not images or jax.default_backend() != "cpu":
        return None
    unit = unit_of(config.env)
    total = config.training.steps * unit.per_step
    seconds = config.training.steps * step_seconds(agent, config)
    if seconds < 600:
        return None
    told = f"no GPU was found: {total / 1e6:,.4g}M {unit.name} take roughly {_lasting(seconds)} on "
    told += f"{cores()} CPU cores; "
    flag, each = unit if unit.name == "frames" else STEPS
    if config.training.steps * each > 1_000_000:
        told += f"--{flag} 1M takes {_lasting(1e6 / each * step_seconds(agent, config))}, or "
    return told + "use a machine with a GPU."


def step_seconds(agent: Agent, config: RunConfig) -> float:
    """Roughly, for all seeds, on a CPU. An update of c51-ids from 32 transitions took 0.1 s on two
    cores; others are taken to need time as their operations. Emulation is small beside it."""
    update = 0.1 * 2 / cores() * operations(agent) / 51e6 * config.learning.batch_size / 32
    return update / config.learning.update_every_steps * config.seeds


def operations(agent: Agent) -> float:
    """Of a pass of one observation through the agent's networks."""
    found = shapes(agent)[0]
    total = agent.spec.trunk.operations(_count(found["trunk"]))
    for name, head in agent.spec.heads.items():
        total += 2 * head.passes * _count(found["heads"][name])
    return total


def _lasting(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3_600)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:,.0f} {unit}s"
    return f"{seconds / 60:,.0f} minutes"


def _shown(size: float) -> str:
    return f"{size / 1e9:,.3g} GB" if size < 1e15 else f"{size / 1e9:.0e} GB"
