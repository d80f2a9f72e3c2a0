"""Games as gymnax has them, with sticky actions and our time limit."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from idrl.envs.adapters.gymnax_env import GymnaxEnv
from idrl.envs.base import Step
from idrl.envs.families.minatar.boards import NONE

GAMES = {
    "asterix": "Asterix-MinAtar",
    "breakout": "Breakout-MinAtar",
    "freeway": "Freeway-MinAtar",
    "seaquest": "Seaquest-MinAtar",
    "space_invaders": "SpaceInvaders-MinAtar",
}

FREEWAY_FRAMES = 2_500  # then the game is over: a part of its rules, not a limit of ours


class MinAtarState(NamedTuple):
    game: Any
    last_action: jax.Array


class GymnaxGame(GymnaxEnv):
    """A game of gymnax. The limit is a part of its parameters, which are the task; gymnax itself
    has 1,000 frames, in freeway 2,500."""

    def __init__(self, game: str, sticky: float, limit: int):
        import gymnax  # here because it takes a second to import

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
