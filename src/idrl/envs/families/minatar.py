"""MinAtar (Young & Tian 2019) as gymnax has it: five small games on a 10×10 board."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from idrl.envs.adapters.gymnax_env import GymnaxEnv
from idrl.envs.base import Step
from idrl.envs.declaring import family
from idrl.envs.presets import PresetContext, Settings, discrete
from idrl.errors import IdrlError

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


@discrete
def preset(task: PresetContext) -> Settings:
    """Young & Tian 2019 (their section on experiments and released `dqn.py`), per frame.

    Their DQN has RMSProp, which every agent declared with it keeps. The IDS agents keep Adam, as in
    their own paper: K heads and a return head send gradients of different scales into one
    optimiser, which Adam evens out per weight. Its step size is RMSProp's, its ε the paper's.
    """
    dense = {"hidden": [128]}
    adam = {"kind": "adam", "lr": 2.5e-4, "b2": 0.999, "eps": 0.01 / 32}
    # PyTorch's ε is outside the root, where theirs is 0.01: inside it is about 0.01².
    rmsprop = {"lr": 2.5e-4, "eps": 1e-4}
    return {
        "trunk": {"kind": "minatar_cnn", "channels": 16},
        "kinds": {
            "q": dense,
            "ensemble": dense,
            # No game has a negative reward; one every fourth frame for ever is worth 25 at γ = 0.99
            "categorical": {**dense, "v_min": 0.0, "v_max": 25.0},
            "quantile": {**dense, "quantiles": 51},  # as many numbers as C51 has atoms
            "implicit": dense,
            # a fifth of the replay, every 1,000 updates
            "bayesian": {**dense, "fit_batch": 20_000},
            "epsilon_greedy": {"start": 1.0, "end": 0.1, "decay_steps": 100_000},
        },
        "optimiser": task.by_optimiser(adam=adam, rmsprop=rmsprop),
        "learning": {
            "gamma": 0.99,
            "batch_size": 32,
            "update_every_steps": 1,
            "target_every_steps": 1_000,
            "learning_starts_steps": 5_000,
            "replay_capacity": 100_000,
        },
        "training": {"steps": 5_000_000, "envs": 1, "log_every_steps": 10_000},
        # One environment: each drops the episode that it is in at the end, the likelier the longer.
        # Of episodes of 300 frames on average (exponential) ten environments of 3000 frames score
        # 9% too little, of 1000 frames 30%; one of 30,000 less than 1%.
        "evaluation": {"every_steps": 250_000, "steps": 30_000, "envs": 1},
    }


@family(
    "minatar/GAME",
    options={"sticky": 0.1, "limit": 0},
    arguments={
        name: f"10×10 board (gymnax {full}); ?sticky=0, ?limit=1000" for name, full in GAMES.items()
    },
    noun="MinAtar game",
    preset=preset,
    host=False,
)
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
