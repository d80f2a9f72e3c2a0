"""Scores of trained agents over whole episodes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.actions import Actions, actions_of, in_words
from idrl.agents import AgentState, make_agent
from idrl.config import RunConfig
from idrl.envs import Env, HostEnv
from idrl.envs.checking import own_env
from idrl.envs.declaring import steps_of
from idrl.errors import IdrlError
from idrl.runs.loading import check_acting, check_weights, open_agent
from idrl.runs.policy import Policy
from idrl.runs.resuming import restore_state
from idrl.runs.run import Run, newest_checkpoint
from idrl.runs.session import make_program
from idrl.runs.sizing import check_memory
from idrl.storage import checkpoint
from idrl.storage.arrays import check_finite
from idrl.storage.folder import RunFolder
from idrl.system.arguments import whole
from idrl.system.devices import prepare
from idrl.training.evaluation import Score
from idrl.training.predictors import Predictor, is_predictor, score_episodes
from idrl.training.program import Best, RunProgram, TrainState, playing_view
from idrl.training.seeding import task_of

LIMIT_STEPS = 108_000
MOST_EPISODES = 1_000_000  # results of all of them are held at once


def evaluate(
    agent: Policy | Run | str | Path | Predictor, env: Any = None, *, episodes: int | None = None,
    seed: int | None = None, frames: int | None = None, limit_steps: int = LIMIT_STEPS,
    weights: str = "best", acting: str = "evaluate", deterministic: bool = False,
) -> Score:  # fmt: skip
    """Score an agent over whole episodes, by default by its evaluation rule.

    Returns a `Score` of numbers for a loaded agent, and of `[S]` arrays for a run: one for every
    seed, by default with its best weights. Anything else with a `predict(observation, state,
    episode_start, deterministic)`, as the models of Stable-Baselines3 have it, plays the episodes
    that an agent of `seed` would.

    Args:
        agent: a loaded agent, a run, its folder, a model file, or an object with a `predict`.
        env: a name, an object or a factory; by default the task that the agent was trained on. An
            agent keeps the draw of the task of its own seed.
        episodes: how many episodes each seed plays (100).
        seed: which episodes are played: those of this seed instead of the agent's own.
        frames: for Atari: score by the paper's protocol instead, the mean over the episodes
            completed in this many frames.
        limit_steps: an episode that is longer counts with the return it has by then.
        weights: of a run: `"best"`, those of each seed's best evaluation, or `"latest"`.
        acting: `"evaluate"` acts by the rule it is evaluated with, `"explore"` by the one it
            explores with, its schedules at their end; a `predict` is told so by `deterministic`.
        deterministic: make a GPU compute the same bits every time, more slowly.
    """
    if episodes is not None and frames is not None:
        raise IdrlError("episodes and frames both say how long to play: omit one.")
    episodes = whole("episodes", 100 if episodes is None else episodes, most=MOST_EPISODES)
    limit_steps = whole("limit_steps", limit_steps)
    seed = None if seed is None else whole("seed", seed, 0)
    check_weights(weights)
    check_acting(acting)
    if deterministic:
        prepare(deterministic=True)  # what follows may be the first to use JAX
    source = agent
    if isinstance(agent, Run | str | Path):
        source = open_agent(agent)
    if weights != "best" and not isinstance(source, Run):
        raise IdrlError(f"only a run has more than its best weights: omit weights={weights!r}.")
    if not isinstance(source, Policy | Run):
        return _of_predictor(source, env, episodes, frames, limit_steps, seed or 0, acting)
    name = env if isinstance(env, str) else source.config.env
    window = None if frames is None else steps_of(frames, name)
    how = _Scoring(episodes, limit_steps, window, seed, weights, acting)
    if isinstance(source, Policy):
        return _of_policy(source, env, how)
    return _of_run(source, env, how)


class _Scoring(NamedTuple):
    episodes: int
    limit_steps: int
    window: int | None  # steps to play instead
    seed: int | None
    weights: str
    acting: str


def _of_predictor(
    model: Any, env: Any, episodes: int, frames: int | None, limit_steps: int, seed: int,
    acting: str,
) -> Score:  # fmt: skip
    if not is_predictor(model):
        raise IdrlError(
            f"{type(model).__name__} cannot be evaluated: pass a run, a loaded agent, or an "
            "object with predict(observation, state, episode_start, deterministic)."
        )
    if frames is not None:
        raise IdrlError("frames is for runs and agents of idrl; say how many episodes instead.")
    if env is None:
        raise IdrlError(f"{type(model).__name__} does not say what it plays: pass env=….")
    prepare()
    fixed = acting == "evaluate"
    return score_episodes(model, own_env(env), seed, episodes, limit_steps, deterministic=fixed)


def _of_policy(policy: Policy, env: Any, how: _Scoring) -> Score:
    prepare()
    config = replace(policy.config, seed=policy.seed, seeds=1)
    shapes = policy.agent.obs_shape, policy.agent.actions
    world = world_of(config, env, policy.env_object, *shapes)
    program = make_program(config, world, acting=how.acting)
    params, prior = jax.tree.map(lambda x: np.asarray(x)[None], (policy.params, policy.prior))
    nothing: Any = None
    state = TrainState(
        agent=AgentState(nothing, None, None, prior), replay=nothing, worlds=None,
        best=Best(nothing, params), task=_tasks(program, world, config),
        key=program.seed_keys(config.seed), failed=nothing,
    )  # fmt: skip
    score = _play(program, program.place(state), how)
    return jax.tree.map(lambda x: x[0], score)


def _of_run(run: Run, env: Any, how: _Scoring) -> Score:
    place = newest_checkpoint(run)
    folder = RunFolder.open(run.path)
    prepare()
    env_object = folder.read_about().get("env_object")
    world = world_of(run.config, env, env_object, *folder.read_shapes())
    agent = make_agent(run.config.spec, *folder.read_shapes())
    check_memory(agent, run.config, world, playing=True)
    program = make_program(run.config, world, acting=how.acting)
    if env is None:
        state, _, _ = restore_state(program, folder)
    else:  # whose tasks are of another kind than those in the checkpoint, perhaps
        like = playing_view(program.like())._replace(task=())
        state = checkpoint.restore(place, like)._replace(task=_tasks(program, world, run.config))
        state = program.place(state)
    if how.weights == "latest":
        state = state._replace(best=state.best._replace(params=state.agent.params))
    else:
        state = _scored_or_latest(state, run.seeds)
    check_finite((state.best.params, state.agent.prior), f"the {how.weights} weights of the run")
    return _play(program, state, how)


def _scored_or_latest(state: TrainState, seeds: Sequence[int]) -> TrainState:
    """Where no evaluation completed an episode the best weights are those that a seed began with;
    its latest ones stand in for them, as in `load`."""
    scored = np.isfinite(np.asarray(state.best.score))
    if scored.all():
        return state
    others = [str(seed) for seed, known in zip(seeds, scored, strict=True) if not known]
    told = ("seeds " if others[1:] else "seed ") + ", ".join(others)
    warnings.warn(f"no evaluation has scored {told}: the latest weights are played.", stacklevel=3)

    def chosen(best: Any, latest: Any) -> Any:
        return jnp.where(scored.reshape(-1, *[1] * (best.ndim - 1)), best, latest)

    params = jax.tree.map(chosen, state.best.params, state.agent.params)
    return state._replace(best=state.best._replace(params=params))


def world_of(
    config: RunConfig, env: Any, env_object: Any, shape: tuple[int, ...], actions: Actions
) -> Env | HostEnv:
    """What to play in; by default what the agent was trained on. An `env_object` may have had
    wrappers that its name does not tell."""
    if env is None and env_object:
        raise IdrlError(
            "the agent was trained on an environment object, which cannot be made again from its "
            "name; in Python, pass it as env=…."
        )
    world = own_env(config.env if env is None else env)
    if (tuple(world.obs_shape), actions_of(world)) != (shape, actions):
        raise IdrlError(
            f"the agent is for observations of shape {shape} and {in_words(actions)}, but "
            f"{world.name} has {world.obs_shape} and {in_words(actions_of(world))}."
        )
    return world


def _tasks(program: RunProgram, world: Env | HostEnv, config: RunConfig) -> Any:
    """What each seed plays, `[S, ...]`; on the host there is no such thing."""
    if isinstance(world, HostEnv):
        return ()
    keys = program.seed_keys(config.seed)
    return jax.vmap(lambda key: task_of(world, jax.random.wrap_key_data(key)))(keys)


def _play(program: RunProgram, state: Any, how: _Scoring) -> Score:
    try:
        if how.seed is not None:
            state = state._replace(key=program.seed_keys(how.seed))
        if how.window is None:
            return jax.device_get(program.score_best(state, how.episodes, how.limit_steps))
        return jax.device_get(program.score_window(state, how.window))
    finally:
        program.close()
