"""Any gymnax environment behind our protocol."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from idrl.actions import Box
from idrl.envs.base import Step
from idrl.errors import IdrlError, unknown


class GymnaxEnv:
    """A gymnax `Environment` (≥ 1.0, which tells truncation from termination)."""

    def __init__(self, env: Any, params: Any = None, name: str | None = None):
        self.env = env
        self.params = env.default_params if params is None else params
        self.name = name or f"gymnax/{env.name}"
        space = env.action_space(self.params)
        self.num_actions, self.action_box = 0, None
        if hasattr(space, "n"):
            self.num_actions = int(space.n)
        else:
            self.action_box = _box(space, self.name)
        obs, _ = jax.eval_shape(lambda key: self.reset(self.params, key)[::-1], jax.random.key(0))
        if not hasattr(obs, "shape"):
            raise IdrlError(f"{self.name} has structured observations; idrl needs one array.")
        self.obs_shape = tuple(obs.shape)

    def task(self, key: jax.Array) -> Any:
        return jax.tree.map(jnp.asarray, self.params)

    def reset(self, task: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        obs, state = self.env.reset_env(key, task)
        # gymnax mixes Python numbers and arrays; a scan needs the types that `step` will return.
        return jax.tree.map(jnp.asarray, state), jnp.asarray(obs)

    def step(self, task: Any, state: Any, action: jax.Array, key: jax.Array) -> tuple[Any, Step]:
        obs, new_state, reward, terminated, _ = self.env.step_env(key, state, action, task)
        truncated = self.env.is_truncated(new_state, task)
        new_state = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), new_state, state)
        return new_state, Step(
            jnp.asarray(obs), jnp.asarray(reward, jnp.float32),
            jnp.asarray(terminated, bool), jnp.asarray(truncated, bool),
        )  # fmt: skip


def _box(space: Any, name: str) -> Box:
    if not (hasattr(space, "low") and hasattr(space, "high") and len(space.shape) == 1):
        raise IdrlError(
            f"{name} has {type(space).__name__} actions; idrl's agents take discrete ones or a "
            "box of one axis."
        )
    low, high = (np.broadcast_to(x, space.shape).tolist() for x in (space.low, space.high))
    return Box(tuple(low), tuple(high))


def make_gymnax(name: str) -> GymnaxEnv:
    """By gymnax's own name."""
    import gymnax  # here because it takes a second to import

    if name not in gymnax.registered_envs:
        raise unknown("gymnax environment", name, gymnax.registered_envs)
    return GymnaxEnv(*gymnax.make(name))
