"""One episode, step by step, in an environment of either kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import jax
import numpy as np

from idrl.envs import Env, HostEnv
from idrl.envs.base import mask_of
from idrl.envs.host import Seen
from idrl.training.seeding import env_seeds, stream, task_of


class Sight(NamedTuple):
    """What is seen after a step, or at the start."""

    obs: Any
    allowed: np.ndarray | None = None  # [A] actions that may follow; None: all
    reward: float = 0.0  # of the step that led here
    over: bool = False  # the episode ended here
    picture: np.ndarray | None = None  # [H, W, 3], where the environment draws itself


def walk(
    env: Env | HostEnv, key: jax.Array, advance: Callable | None = None, number: int = 0
) -> Generator[Sight, Any, None]:
    """Episode `number` of those that the seed with this key is shown in; takes actions, ends after
    the last. `advance`: `jax.jit(env.step)`, which several episodes may share."""
    if isinstance(env, HostEnv):
        return _hosted(env.for_evaluation(), key, number)
    return _on_device(env, key, advance or jax.jit(env.step), number)


def _on_device(
    env: Env, key: jax.Array, advance: Callable, number: int
) -> Generator[Sight, Any, None]:
    task = task_of(env, key)  # the same in all episodes
    key = jax.random.fold_in(key, number) if number else key
    state, obs = env.reset(task, stream(key, "score"))
    mask = mask_of(env)

    def allowed() -> np.ndarray | None:
        return None if mask is None else np.asarray(mask(task, state))

    sight = Sight(obs, allowed())
    for t in itertools.count(1):
        action = yield sight
        state, step = advance(task, state, action, stream(key, "score", t))
        over = bool(step.terminated) or bool(step.truncated)
        sight = Sight(step.obs, allowed(), float(step.reward), over)
        if over:
            yield sight
            return


def _hosted(env: HostEnv, key: jax.Array, number: int) -> Generator[Sight, Any, None]:
    vector = env.make(1)
    try:
        seed = env_seeds(jax.random.key_data(key)[None], "score", number, 1)[0]
        shown = vector.step(env.no_actions(1), seed)
        obs = None
        while True:
            obs = _stacked(env, obs, shown)
            over = bool(shown.terminated[0] or shown.truncated[0])
            allowed = None if shown.allowed is None else shown.allowed[0]
            reward = float(shown.reward[0])
            action = yield Sight(obs, allowed, reward, over, vector.picture())
            if over:
                return
            shown = vector.step(np.array([action]), np.array([-1]))
    finally:
        vector.close()


def _stacked(env: HostEnv, before: np.ndarray | None, shown: Seen) -> np.ndarray:
    """What the agent sees: the newest frame is the last, after those it saw before."""
    newest = shown.obs[0]
    if env.stack == 1:
        return newest
    if before is None or shown.reset[0]:
        past = newest if env.repeat_first else np.zeros_like(newest)
        return np.stack([past] * (env.stack - 1) + [newest], -1)
    return np.concatenate([before[..., 1:], newest[..., None]], -1)
