"""Whole episodes by anything with a `predict`: a model of Stable-Baselines3, or a baseline of one's
own. It plays what an agent of ours with the same seed would play."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from idrl.actions import Actions, Box, actions_of
from idrl.envs.base import Env
from idrl.envs.host import HostEnv
from idrl.errors import IdrlError, in_a_line
from idrl.replay.ring import Stack
from idrl.training.evaluation import Played, Score, ends_of, score_of
from idrl.training.hosted.evaluation import whole_episodes
from idrl.training.hosted.fleet import Fleet
from idrl.training.hosted.playing import Playing
from idrl.training.rollout import Worlds, advance, allowed, begin
from idrl.training.seeding import env_seeds, seed_key, stream, task_of

_SIDE_BY_SIDE = 16  # environments on the host


class Predictor(Protocol):
    """What is asked of a baseline: actions for observations `[N, ...]`, and what it remembers.

    `episode_start` `[N]` marks first observations. An `action_masks` among its parameters is given
    `[N, A]` where the environment says which actions are allowed."""

    def predict(
        self, observation: np.ndarray, state: Any, episode_start: np.ndarray, deterministic: bool
    ) -> tuple[Any, Any]: ...


def is_predictor(thing: Any) -> bool:
    return callable(getattr(thing, "predict", None))


def score_episodes(
    model: Predictor, env: Env | HostEnv, seed: int, episodes: int, limit_steps: int, *,
    deterministic: bool = True,
) -> Score:  # fmt: skip
    """As `evaluation.play_episodes` of an agent."""
    player = Asked(model, actions_of(env), env.name, deterministic)
    key = seed_key(seed)
    if isinstance(env, HostEnv):
        envs = min(episodes, _SIDE_BY_SIDE)
        seeds = env_seeds(jax.random.key_data(key)[None], "score", 0, episodes)

        def play(world: HostEnv, vector: Any) -> Any:
            act = _stacked(world, player, envs)
            return whole_episodes(world, vector, seeds, envs, act, limit_steps)

        return _summed(_on_host(env, envs, play))
    games = _Games(env, key, stream(key, "score", 0), episodes)
    done, kept = np.zeros(episodes, bool), None
    for t in range(limit_steps):
        seen = games.step(player)
        new = (seen.ended | (t + 1 >= limit_steps)) & ~done
        kept = seen if kept is None else kept
        kept = jax.tree.map(lambda now, old, new=new: np.where(new, now, old), seen, kept)
        done |= new
        if done.all():
            break
    assert kept is not None
    return _summed(kept._replace(ended=done))


def score_window(
    model: Predictor, env: Env | HostEnv, seed: int, number: int, steps: int, envs: int
) -> Score:
    """As evaluation `number` of a run: the episodes that `steps` steps complete."""
    player = Asked(model, actions_of(env), env.name)
    key = seed_key(seed)
    if isinstance(env, HostEnv):
        seeds = env_seeds(jax.random.key_data(key)[None], "evaluate", number, envs).reshape(-1)

        def play(world: HostEnv, vector: Any) -> Any:
            act = _stacked(world, player, envs)
            return Playing(world, vector, seeds, 1, steps, act).finish()[0]

        found = np.array(_on_host(env, envs, play), np.float64).reshape(-1, 3)
        truncated, returns, lengths = found.T
        return _summed(Played(np.ones(len(found), bool), truncated > 0, returns, lengths, {}))
    games = _Games(env, key, stream(key, "evaluate", number), envs)
    rows = [games.step(player) for _ in range(-(-steps // envs))]
    return _summed(jax.tree.map(lambda *x: np.stack(x), *rows))


class Asked:
    """A model that plays: what it says is looked at before an environment is told."""

    def __init__(self, model: Predictor, actions: Actions, env: str, deterministic: bool = True):
        self.model, self.actions, self.env = model, actions, env
        self.deterministic = deterministic
        self.name = type(model).__name__
        self.state: Any = None
        try:
            self.takes_masks = "action_masks" in inspect.signature(model.predict).parameters
        except (TypeError, ValueError):  # written in C
            self.takes_masks = False

    def __call__(self, obs: Any, first: Any, mask: Any) -> np.ndarray:
        more = {"action_masks": np.asarray(mask)} if mask is not None and self.takes_masks else {}
        try:
            found = self.model.predict(
                np.asarray(obs), state=self.state, episode_start=np.asarray(first),
                deterministic=self.deterministic, **more,
            )  # fmt: skip
            action, self.state = found if isinstance(found, tuple) else (found, None)
            action = np.asarray(action)
        except IdrlError:
            raise
        except Exception as error:
            raise IdrlError(
                f"{self.name}.predict(observation, state, episode_start, deterministic) failed on "
                f"{self.env}: {in_a_line(error)}."
            ) from error
        return self._checked(action, len(first), mask)

    def _checked(self, action: np.ndarray, count: int, mask: Any) -> np.ndarray:
        if isinstance(self.actions, Box):
            box = self.actions
            if action.shape != (count, box.dims) or not _numbers(action, "fiu"):
                raise self._wrong(action, f"numbers of shape {(count, box.dims)}")
            return np.clip(action.astype(np.float32), box.low, box.high).astype(np.float32)
        if action.shape == (count, 1):
            action = action[:, 0]
        if action.shape != (count,) or not _numbers(action, "iu"):
            raise self._wrong(action, f"whole numbers of shape {(count,)}")
        if action.min() < 0 or action.max() >= self.actions:
            raise self._wrong(action, f"numbers below {self.actions}")
        if mask is not None and not _possible(np.asarray(mask), action).all():
            raise self._wrong(
                action, "among the allowed; a predict with `action_masks` is told which those are"
            )
        return action.astype(np.int32)

    def _wrong(self, action: np.ndarray, wanted: str) -> IdrlError:
        numbers = action.size and action.dtype.kind in "biuf"
        ends = f", from {action.min()} to {action.max()}" if numbers else ""
        return IdrlError(
            f"{self.name}.predict answered {action.dtype} of shape {action.shape}{ends}; the "
            f"actions of {self.env} are {wanted}."
        )


def _numbers(action: np.ndarray, kinds: str) -> bool:
    return action.dtype.kind in kinds and bool(np.isfinite(action).all())


def _possible(mask: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Where nothing is allowed an episode is over, and anything may be said."""
    return np.take_along_axis(mask, action[:, None], 1)[:, 0] | ~mask.any(1)


class _Games:
    """Environments on the device, stepped with actions from the host; keys as agents have them."""

    def __init__(self, env: Env, seed: jax.Array, key: jax.Array, envs: int):
        task = task_of(env, seed)
        start, self.loop = jax.random.split(key)
        self.worlds: Worlds = jax.jit(lambda k: begin(env, task, k, jnp.zeros(envs)))(start)
        self.t = 0

        def step(worlds: Worlds, action, loop, t):
            _, env_key = jax.random.split(jax.random.fold_in(loop, t))
            return advance(env, task, worlds, action, worlds.memory, env_key)

        self._step = jax.jit(step)
        self._allowed = jax.jit(lambda worlds: allowed(env, task, worlds))

    def step(self, player: Asked) -> Played:
        worlds = self.worlds
        action = player(worlds.obs, worlds.first, self._allowed(worlds))
        self.worlds, seen = self._step(worlds, action, self.loop, self.t)
        self.t += 1
        return jax.device_get(ends_of(seen))


def _on_host(env: HostEnv, envs: int, play: Callable[[HostEnv, Any], Any]) -> Any:
    world = env.for_evaluation()
    vector = world.make(envs)
    try:
        return play(world, vector)
    finally:
        vector.close()


def _stacked(env: HostEnv, player: Asked, envs: int) -> Callable[[Fleet], np.ndarray]:
    """Shows the player what an agent would see: the newest frames of an episode together."""
    stack = Stack(env.stack, env.repeat_first)
    seen: Any = np.zeros((envs, *env.obs_shape), env.obs_dtype)

    def act(fleet: Fleet) -> np.ndarray:
        nonlocal seen
        frame: Any = fleet.obs
        first: Any = fleet.first
        seen = np.asarray(stack.push(seen, frame, first))
        return player(seen, fleet.first, fleet.allowed)

    return act


def _summed(ends: Played) -> Score:
    return jax.device_get(score_of(ends))
