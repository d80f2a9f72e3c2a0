"""A moment in an episode of a trained agent, to be looked at."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from idrl import api
from idrl.envs import Env, HostEnv, make_env
from idrl.errors import IdrlError
from idrl.ids import Decision
from idrl.training.seeding import env_seeds, seed_key, stream, task_of


class Moment(NamedTuple):
    obs: np.ndarray
    decision: Decision
    title: str


def moment(run_path: str | Path, *, seed: int | None = None, step: int = 0) -> Moment:
    """The decision at `step` of one episode that the run's agent plays by its evaluation rule."""
    run = api.open_run(run_path)
    if step < 0:
        raise IdrlError(f"step is {step}; an episode's first step is 0.")
    policy = api.load(run, seed)
    episode = _episode(make_env(run.config.env), seed_key(policy.seed))
    obs, mask = next(episode)
    for t in range(step):
        seen = episode.send(policy.predict(obs, mask))
        if seen is None:
            raise IdrlError(f"the episode ended after {t + 1} steps; --step must be below that.")
        obs, mask = seen
    title = f"{run.config.agent} on {run.config.env}, seed {policy.seed}, step {step}"
    return Moment(np.asarray(obs), policy.explain(obs, mask), title)


def _episode(env: Env | HostEnv, key: jax.Array) -> Generator[Any, Any, None]:
    """Observations with the actions allowed there (None: all); takes actions; None at the end."""
    if isinstance(env, HostEnv):
        vector = env.make(1)
        seed = env_seeds(jax.random.key_data(key)[None], "score", 0, 1)[0]
        shown = vector.step(np.array([-1]), seed)
        while True:
            action = yield shown.obs[0], None if shown.allowed is None else shown.allowed[0]
            shown = vector.step(np.array([action]), np.array([-1]))
            if shown.terminated[0] or shown.truncated[0]:
                yield None
    task = task_of(env, key)
    state, obs = env.reset(task, stream(key, "score"))
    advance = jax.jit(env.step)
    for t in itertools.count(1):
        action = yield obs, None
        state, seen = advance(task, state, action, stream(key, "score", t))
        obs = seen.obs
        if bool(seen.terminated) or bool(seen.truncated):
            yield None
