"""One vector step of E environments: act, step, reset what ended."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from idrl.envs.base import Env, mask_of


class Worlds(NamedTuple):
    """E environments in the middle of their episodes, `[E, ...]` each."""

    state: Any
    obs: jax.Array
    first: jax.Array  # obs is the first of an episode
    dead: jax.Array  # a time limit was hit: obs is a last observation, the next step only resets
    memory: jax.Array  # what the rule keeps
    episode_return: jax.Array
    episode_length: jax.Array


class Happened(NamedTuple):
    """What one vector step brought, `[E]` each."""

    reward: jax.Array
    terminated: jax.Array
    ended: jax.Array  # an episode was completed by this step
    episode_return: jax.Array
    episode_length: jax.Array
    info: dict[str, jax.Array]


def begin(env: Env, task: Any, key: jax.Array, memory: jax.Array) -> Worlds:
    """As many as there are memories `[E, ...]`."""
    envs = len(memory)
    state, obs = jax.vmap(env.reset, (None, 0))(task, jax.random.split(key, envs))
    zeros = jnp.zeros(envs, jnp.int32)
    return Worlds(
        state, obs, first=jnp.ones(envs, bool), dead=jnp.zeros(envs, bool), memory=memory,
        episode_return=jnp.zeros(envs), episode_length=zeros,
    )  # fmt: skip


def allowed(env: Env, task: Any, worlds: Worlds) -> jax.Array | None:
    """`[E, A]`: what may be done in each; None: always all."""
    mask = mask_of(env)
    return None if mask is None else jax.vmap(mask, (None, 0))(task, worlds.state)


def advance(env: Env, task: Any, worlds: Worlds, action, memory, key) -> tuple[Worlds, Happened]:
    """Take `action` `[E, ...]`. A terminated episode restarts at once, since nobody needs its last
    observation; a truncated one keeps it for a step, so that its value can be bootstrapped."""
    keys = jax.random.split(key, (2, worlds.first.shape[0]))
    state, step = jax.vmap(env.step, (None, 0, 0, 0))(task, worlds.state, action, keys[0])
    fresh_state, fresh_obs = jax.vmap(env.reset, (None, 0))(task, keys[1])

    alive = ~worlds.dead
    terminated = step.terminated & alive
    truncated = step.truncated & alive & ~terminated
    ended = terminated | truncated
    restart = terminated | worlds.dead

    def pick(new, old):
        return jnp.where(restart.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    reward = jnp.where(alive, step.reward, 0.0).astype(jnp.float32)
    total = worlds.episode_return + reward
    length = worlds.episode_length + alive
    happened = Happened(reward, terminated, ended, total, length, step.info)
    worlds = Worlds(
        state=jax.tree.map(pick, fresh_state, state),
        obs=pick(fresh_obs, step.obs.astype(fresh_obs.dtype)),
        first=restart,
        dead=truncated,
        memory=memory,
        episode_return=jnp.where(ended, 0.0, total),
        episode_length=jnp.where(ended, 0, length),
    )
    return worlds, happened
