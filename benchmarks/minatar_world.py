"""MinAtar as both sides of `benchmarks.minatar_dqn` play it, how they are judged, and what they
tell. Needs JAX, gymnax, gymnasium and numpy, and idrl's environments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs import make_env

LONGEST = 20_000  # frames of an episode that is judged; one that goes on counts as far as it got


class OneGame(gymnasium.Env):
    """Our game as Gymnasium wants one, channels first."""

    metadata = {"render_modes": []}

    def __init__(self, name: str):
        env = make_env(name)
        height, width, channels = env.obs_shape
        self.observation_space = gymnasium.spaces.Box(0, 1, (channels, height, width), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(env.num_actions)
        task = env.task(jax.random.key(0))

        @jax.jit
        def reset(key):
            key, now = jax.random.split(key)
            state, obs = env.reset(task, now)
            return (key, state), obs.transpose(2, 0, 1)

        @jax.jit
        def step(carry, action):
            key, state = carry
            key, now = jax.random.split(key)
            state, seen = env.step(task, state, action, now)
            told = jnp.stack([seen.reward, seen.terminated, seen.truncated])
            return (key, state), seen.obs.transpose(2, 0, 1), told

        self._reset, self._step = reset, step
        self._carry = (jax.random.key(0), None)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        key = self._carry[0] if seed is None else jax.random.key(seed)
        self._carry, obs = self._reset(key)
        return np.asarray(obs), {}

    def step(self, action):
        self._carry, obs, told = self._step(self._carry, np.int32(action))
        reward, terminated, truncated = np.asarray(told).tolist()
        return np.asarray(obs), reward, bool(terminated), bool(truncated), {}


class Played(NamedTuple):
    mean: float
    length: float
    unfinished: int


class Judge:
    """Plays the first episode of each of `episodes` games, so that short ones weigh no more than
    long."""

    def __init__(self, name: str, episodes: int):
        env = make_env(name)
        self.episodes = episodes

        @jax.jit
        def reset(key):
            task = env.task(key)
            return jax.vmap(env.reset, (None, 0))(task, jax.random.split(key, episodes))

        @jax.jit
        def step(state, actions, key, t):
            keys = jax.random.split(jax.random.fold_in(key, t), episodes)
            return jax.vmap(env.step, (None, 0, 0, 0))(env.task(key), state, actions, keys)

        self._reset, self._step = reset, step

    def play(self, act: Callable[[np.ndarray], np.ndarray], seed: int) -> Played:
        """`act` takes boards `[N, 10, 10, C]`."""
        key = jax.random.key(seed)
        state, obs = self._reset(key)
        alive = np.ones(self.episodes, bool)
        totals, lengths = np.zeros(self.episodes), np.zeros(self.episodes, int)
        for t in range(LONGEST):
            actions = np.asarray(act(np.asarray(obs)), np.int32)
            state, seen = self._step(state, actions, key, np.int32(t))
            obs = seen.obs
            totals += np.where(alive, np.asarray(seen.reward), 0.0)
            lengths += alive
            alive &= ~(np.asarray(seen.terminated) | np.asarray(seen.truncated))
            if not alive.any():
                break
        return Played(float(totals.mean()), float(lengths.mean()), int(alive.sum()))


class Told:
    """Rows of one seed, appended whole to files that all seeds share."""

    def __init__(self, out: str | Path, who: str, game: str, seed: int):
        self.out, self.head = Path(out), f"{who},{game},{seed}"

    def episode(self, steps: int, total: float, length: int) -> None:
        self._row("episodes.csv", f"{steps},{total:g},{length}")

    def score(self, steps: int, played: Played, seconds: float) -> None:
        row = f"{steps},{played.mean:g},{played.length:g},{played.unfinished},{seconds:.1f}"
        self._row("scores.csv", row)

    def _row(self, name: str, row: str) -> None:
        with open(self.out / name, "a") as file:  # one short write: no other can come between
            file.write(f"{self.head},{row}\n")
