"""MinAtar (Young & Tian 2019) as gymnax has it: five small games on a 10×10 board."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from idrl.envs.adapters.gymnax_env import GymnaxEnv
from idrl.envs.base import Step
from idrl.errors import IdrlError, unknown

GAMES = {
    "asterix": "Asterix-MinAtar",
    "breakout": "Breakout-MinAtar",
    "freeway": "Freeway-MinAtar",
    "seaquest": "Seaquest-MinAtar",
    "space_invaders": "SpaceInvaders-MinAtar",
}


FREEWAY_FRAMES = 2_500  # then the game is over: a part of its rules, not a limit of ours
NONE = 2**31 - 1  # gymnax counts frames in 32 bits


class MinAtarState(NamedTuple):
    game: Any
    last_action: jax.Array


class MinAtar(GymnaxEnv):
    """A game with its smallest set of actions. `sticky`: the probability that the last action is
    repeated instead of the one chosen; 0.1 is the reference package's, gymnax has none. Without it
    breakout is deterministic but for its first frame, and an agent can settle in one short loop.
    `limit`: frames after which an episode is truncated, 0 for none, as in the reference; gymnax
    itself has 1,000, in freeway 2,500.

    The limit is a part of the task, which is a part of a run's state: a checkpoint keeps its own.
    """

    def __init__(self, game: str, sticky: float = 0.1, limit: int = 0):
        import gymnax  # here because it takes a second to import

        if game not in GAMES:
            raise unknown("MinAtar game", game, GAMES)
        if not (math.isfinite(sticky) and 0 <= sticky < 1):
            raise IdrlError(f"minatar sticky={sticky}: a probability from 0 to below 1.")
        if not 0 <= limit < NONE:
            raise IdrlError(f"minatar limit={limit}: a number of frames, or 0 for none.")
        self.sticky, self.is_freeway = sticky, game == "freeway"
        env, params = gymnax.make(GAMES[game])
        params = params.replace(max_steps_in_episode=limit or NONE)
        super().__init__(env, params, f"minatar/{game}")

    def reset(self, task: Any, key: jax.Array) -> tuple[MinAtarState, jax.Array]:
        game, obs = super().reset(task, key)
        return MinAtarState(game, jnp.int32(0)), _bytes(obs)

    def step(
        self, task: Any, state: MinAtarState, action: jax.Array, key: jax.Array
    ) -> tuple[Any, Step]:
        if self.sticky:
            key, sticky_key = jax.random.split(key)
            repeat = jax.random.bernoulli(sticky_key, self.sticky)
            action = jnp.where(repeat, state.last_action, action)
        game, step = super().step(task, state.game, action, key)
        if self.is_freeway:  # gymnax has this end as its time limit alone
            step = step._replace(terminated=game.time > FREEWAY_FRAMES)
        return MinAtarState(game, jnp.asarray(action, jnp.int32)), step._replace(
            obs=_bytes(step.obs)
        )


def _bytes(obs: jax.Array) -> jax.Array:
    """Cells are 0 or 1; gymnax hands them out as floats, of four times the size in the replay."""
    return obs.astype(jnp.uint8)
