"""A family of environments: corridor/N, with options, in pure JAX."""

import jax
import jax.numpy as jnp

import idrl


def preset(task):
    """What the task decides: how long to train, how often to evaluate."""
    episodes = 300
    return {
        "training": {"steps": episodes * task.size, "envs": 1, "log_every_steps": 30 * task.size},
        "evaluation": {"every_steps": 60 * task.size, "steps": 10 * task.size, "envs": 1},
    }


@idrl.family(
    "corridor/N", options={"slip": 0.0}, summary="N cells, a reward at the right end; ?slip=0.1",
    preset=preset,
)  # fmt: skip
class Corridor:
    """An episode is N steps long; being in the last cell pays 1 and ends it."""

    num_actions = 2

    def __init__(self, size: int = 10, slip: float = 0.0):
        if size < 2:
            raise idrl.IdrlError(f"corridor/{size}: it has at least 2 cells.")
        self.size, self.slip = size, slip
        self.name, self.obs_shape = f"corridor/{size}", (size,)

    def task(self, key: jax.Array):
        return ()  # nothing differs between seeds

    def reset(self, task, key: jax.Array):
        state = (jnp.int32(0), jnp.int32(0))  # the cell, and the time
        return state, self._see(state)

    def step(self, task, state, action: jax.Array, key: jax.Array):
        cell, time = state
        slips = jax.random.bernoulli(key, self.slip)
        right = jnp.where(slips, 1 - action, action)
        cell = jnp.clip(cell + 2 * right - 1, 0, self.size - 1)
        state = (cell, time + 1)
        reached = cell == self.size - 1
        late = (time + 1 >= 2 * self.size) & ~reached
        return state, idrl.Step(self._see(state), reached.astype(jnp.float32), reached, late)

    def _see(self, state):
        return jax.nn.one_hot(state[0], self.size, dtype=jnp.float32)
