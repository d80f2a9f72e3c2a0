"""A chain with a distraction: is noise mistaken for something to learn?

N states in a row, entered at 0. Three actions, whose meaning is drawn anew for every state: forward
(+1), back (−1, not below 0), and gamble (stay, and be paid N(0, noise²)). Reaching state N−1 pays 1
and ends the episode; 3N steps cut it short. A gamble teaches nothing and pays nothing on average,
but its value stays uncertain to whoever has seen few of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs.base import Step
from idrl.envs.declaring import family
from idrl.envs.presets import PresetContext, Settings, deep_exploration, discrete
from idrl.envs.tabular import Mdp
from idrl.errors import IdrlError

FORWARD, BACK, GAMBLE = range(3)


@discrete
def preset(task: PresetContext) -> Settings:
    """A chain with one reward, as in deep_sea, and a gamble in every state.

    Everything that is no matter of the noise is deep_sea's, and all agents get the same.

    Unlike there, an episode can stay where it is. A gamble whose mean was m in the data so far is
    worth m/(1-γ) = 100·m to whoever bootstraps on it for long, so slow targets are what helps.
    Share of episodes that missed the goal, c51-ids and bootstrapped-dqn, N = 6, 8000 steps, seeds
    0 to 3: a copy every 100 steps 0.83 and 0.92, every 500 0.90 and 0.69, every 1000 0.84 and 0.60.
    deep_sea's own (every 4, lr 3e-3) missed 99% at N = 10; masks of 0.5 or a prior of 1 did
    c51-ids no good (0.84 and, every 500, 0.96).
    """
    # An episode is at most 3N steps, and a cut one takes a row more for its last observation.
    longest = 3 * task.size + 1
    # 1000 episodes even for a seed that never gets there; one that does plays some three times more
    settings = deep_exploration(task.size, episodes=1000)
    # The best policy's return after one gamble is N(γ^n, noise²): three standard deviations fit.
    # A learner that still thinks gambling pays would need more (1/(1-γ²) = 50 times the variance);
    # for it the ends of the range saturate, which leaves its gambles the noisiest action by far.
    bound = 1.0 + 3.0 * task.options["noise"]
    settings["kinds"]["categorical"] |= {"v_min": -bound, "v_max": bound}
    settings["optimiser"] |= {"lr": 1e-3}
    settings["learning"] |= {
        "gamma": 0.99,  # part of the task's definition
        "target_every_steps": 1_000,  # 19 to 43 copies in a run; the reward needs N-1 to reach 0
        "replay_capacity": 50_000,  # all of N ≤ 16: forgotten gambles would count as new luck
    }
    settings["training"] |= {"steps": 1000 * longest, "log_every_steps": 50 * longest}
    settings["evaluation"] |= {"every_steps": 50 * longest, "steps": 4 * longest}
    return settings


class NoisyChainState(NamedTuple):
    where: jax.Array
    time: jax.Array
    gambles: jax.Array


@family(
    "noisy_chain/N",
    options={"noise": 1.0},
    summary="N states, one reward at the end, a gamble on the way; ?noise=1.0",
    preset=preset,
    host=False,
)
class NoisyChain:
    """`noise`: the standard deviation of what a gamble pays."""

    num_actions = 3

    def __init__(self, size: int = 10, noise: float = 1.0):
        if not 2 <= size <= 1000:
            raise IdrlError(f"noisy_chain/{size}: the size is a whole number from 2 to 1000.")
        if not (math.isfinite(noise) and noise >= 0):
            raise IdrlError(f"noisy_chain noise={noise}: a standard deviation, at least 0.")
        self.size, self.noise, self.limit = size, noise, 3 * size
        self.name = f"noisy_chain/{size}"
        self.obs_shape: tuple[int, ...] = (size,)

    def task(self, key: jax.Array) -> jax.Array:
        """`[N, 3]`: what each action means (forward, back, gamble), per state."""
        meanings = jnp.tile(jnp.arange(3), (self.size, 1))
        return jax.random.permutation(key, meanings, axis=1, independent=True)

    def reset(self, task: jax.Array, key: jax.Array) -> tuple[NoisyChainState, jax.Array]:
        state = NoisyChainState(jnp.int32(0), jnp.int32(0), jnp.int32(0))
        return state, self._observe(state)

    def _observe(self, state: NoisyChainState) -> jax.Array:
        return (jnp.arange(self.size) == state.where).astype(jnp.uint8)

    def step(self, task, state: NoisyChainState, action, key) -> tuple[NoisyChainState, Step]:
        meaning = task[state.where, action]
        gambled = meaning == GAMBLE
        move = jnp.where(gambled, 0, jnp.where(meaning == FORWARD, 1, -1))
        state = NoisyChainState(
            jnp.clip(state.where + move, 0, self.size - 1),
            state.time + 1,
            state.gambles + gambled,
        )
        solved = state.where == self.size - 1
        paid = self.noise * jax.random.normal(key)
        reward = jnp.where(solved, 1.0, jnp.where(gambled, paid, 0.0))
        info = {
            "bad": (~solved).astype(jnp.float32),  # 0 where the goal was reached
            "gambles": state.gambles / state.time,  # share of the episode's actions
            "raw_return": solved.astype(jnp.float32),  # without what the gambles paid
        }
        truncated = (state.time >= self.limit) & ~solved
        return state, Step(self._observe(state), reward, solved, truncated, info)

    def optimal_return(self, task: jax.Array | None = None) -> float:
        """Expected undiscounted return of the best policy: the goal is always within 3N steps, and
        whatever is gambled on the way pays 0 on average."""
        return 1.0

    def mdp(self) -> Mdp:
        """The same task with its actions in order (forward, back, gamble), for exact values.

        Its time limit is left away, as the agents' bootstrap does.
        """
        size = self.size
        move = np.zeros((size, 3, size))
        for s in range(size):
            move[s, FORWARD, min(s + 1, size - 1)] = 1
            move[s, BACK, max(s - 1, 0)] = 1
            move[s, GAMBLE, s] = 1
        reward, ends, noise = np.zeros((3, size, 3))
        reward[size - 2, FORWARD] = ends[size - 2, FORWARD] = 1
        ends[size - 1] = 1  # never acted in
        noise[: size - 1, GAMBLE] = self.noise
        return Mdp(np.eye(size), np.eye(size)[0], move, reward, noise, ends)
