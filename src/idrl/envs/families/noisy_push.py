"""A chain with continuous actions: is noise mistaken for something to learn, and is a reward found
that nothing leads to?

N cells in a row, entered at 0, and a hidden way for each cell, left or right, drawn with the task.
An action is two numbers in [-1, 1]. The first is a push: pushed with strength p along the cell's
way, one moves a cell forward with probability p; against it, a cell back (not below 0). The second,
above 0, is a gamble of strength g: it pays g·N(0, noise²) and takes the share g of the push away.
Every push costs 0.1·|p|/N. Reaching cell N-1 pays 1 and ends the episode; 3N steps cut it short.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from idrl.actions import Box
from idrl.envs.base import Step
from idrl.envs.control_presets import among_candidates, small_box
from idrl.envs.declaring import family
from idrl.envs.presets import PresetContext, Settings, continuous
from idrl.errors import IdrlError


@continuous
def preset(task: PresetContext) -> Settings:
    """Chosen on `noisy_push/10`, seeds 0 to 9; `results/control` tells what was tried."""
    longest = 3 * task.size + 1  # a cut episode takes a row more
    changes = small_box(task, 200 * longest, longest, 50 * longest)
    changes["learning"] |= {
        "learning_starts_steps": 10 * task.size,
        # At γ = 0.99 a gamble whose mean was m so far is worth 100·m to whoever can stay with it.
        "gamma": 0.95,
        "n_step": 3,  # the goal is far, and there are few episodes
        "batch_size": 32,
        # With 0.005 what priors promise takes thousands of updates to fade from the targets.
        "tau": 0.05,
    }
    for name in task.heads("actor"):
        # Without it actors stay in corners of the box that their critics know to be wrong.
        changes["heads"][name]["restraint"] = 0.01
    if task.explores("gaussian_noise"):
        # With 0.1, and one-step returns, no seed came to the goal.
        changes["explore"] = {"scale": 0.3}
    # The goal's; with 0.3 σ was gone before it was found.
    return among_candidates(task, changes, prior_scale=1.0)


class NoisyPushState(NamedTuple):
    where: jax.Array
    time: jax.Array
    gambled: jax.Array  # strengths so far
    paid: jax.Array  # what pushes cost so far


@family(
    "noisy_push/N",
    options={"noise": 0.5},
    summary="a chain pushed along a hidden way, a gamble; continuous; ?noise=0.5",
    preset=preset,
    host=False,
)
class NoisyPush:
    """`noise`: the standard deviation of what a whole gamble pays."""

    num_actions = 0  # they have no numbers
    action_box = Box((-1.0, -1.0), (1.0, 1.0))

    def __init__(self, size: int = 10, noise: float = 0.5):
        if not 2 <= size <= 1000:
            raise IdrlError(f"noisy_push/{size}: the size is a whole number from 2 to 1000.")
        if not (math.isfinite(noise) and noise >= 0):
            raise IdrlError(f"noisy_push noise={noise}: a standard deviation, at least 0.")
        self.size, self.noise, self.limit = size, noise, 3 * size
        self.cost = 0.1 / size  # the whole way costs a tenth of what it pays
        self.name = f"noisy_push/{size}"
        self.obs_shape: tuple[int, ...] = (size,)

    def task(self, key: jax.Array) -> jax.Array:
        """`[N]`: which way is forward, -1 or 1."""
        return jax.random.rademacher(key, (self.size,), jnp.float32)

    def reset(self, task: jax.Array, key: jax.Array) -> tuple[NoisyPushState, jax.Array]:
        state = NoisyPushState(jnp.int32(0), jnp.int32(0), jnp.float32(0), jnp.float32(0))
        return state, self._observe(state)

    def _observe(self, state: NoisyPushState) -> jax.Array:
        return (jnp.arange(self.size) == state.where).astype(jnp.uint8)

    def step(self, task, state: NoisyPushState, action, key) -> tuple[NoisyPushState, Step]:
        move_key, gamble_key = jax.random.split(key)
        push, gamble = action[0] * task[state.where], jnp.maximum(action[1], 0.0)
        moved = jax.random.uniform(move_key) < jnp.abs(push) * (1 - gamble)
        where = state.where + moved * jnp.sign(push).astype(jnp.int32)
        where = jnp.clip(where, 0, self.size - 1)
        solved = where == self.size - 1
        cost = self.cost * jnp.abs(push)
        state = NoisyPushState(where, state.time + 1, state.gambled + gamble, state.paid + cost)
        luck = gamble * self.noise * jax.random.normal(gamble_key)
        info = {
            "bad": (~solved).astype(jnp.float32),  # 0 where the goal was reached
            "gambles": state.gambled / state.time,  # their mean strength in the episode
            "raw_return": solved - state.paid,  # without what the gambles paid
        }
        truncated = (state.time >= self.limit) & ~solved
        reward = solved - cost + luck
        return state, Step(self._observe(state), reward, solved, truncated, info)

    def optimal_return(self, task: jax.Array | None = None) -> float:
        """Of N-1 whole pushes. Weaker ones cost as much on average, since they are needed more
        often, and may come too late."""
        return 1.0 - self.cost * (self.size - 1)
