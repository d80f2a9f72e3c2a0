"""A trained agent with the manners of a model of Stable-Baselines3. Imports nothing of it, but for
the logger that its callbacks write to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from idrl.errors import IdrlError

State = tuple[np.ndarray, ...]


class Sb3Model:
    """What `evaluate_policy` and `EvalCallback` of Stable-Baselines3 need of a model.

    `predict` is theirs: with `deterministic` by the rule the agent is evaluated with, without it by
    the rule it explores with. What a rule keeps from step to step (Thompson sampling: the head it
    follows) is the `state`, and `episode_start` says where it begins anew. `env` is for callbacks
    that ask which environment a model is trained in.
    """

    def __init__(self, policy: Any, env: Any = None, seed: int = 0):
        self.agent, self.env = policy, env
        self.num_timesteps = policy.config.training.steps
        self._seed, self._calls = seed, 0
        self._logger: Any = None
        self._choose = jax.jit(self._chosen, static_argnums=0)

    def _chosen(self, explore: bool, params, prior, obs, first, memory, mask, call):
        agent = self.agent.agent
        key = jax.random.fold_in(jax.random.key(self._seed), call)
        decision, memory = agent.choose(
            agent.spec.explore if explore else agent.spec.evaluate, params, prior, obs, first,
            memory, key, jnp.int32(self.agent.config.training.steps), mask, noisy=explore,
        )  # fmt: skip
        return decision.taken, memory

    def predict(
        self,
        observation: Any,
        state: State | None = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[np.ndarray, State | None]:
        """Actions and the next state, for one observation or a batch."""
        if isinstance(observation, Mapping):
            raise IdrlError(
                "the agent takes observations as one array; gymnasium.wrappers.FlattenObservation "
                "makes one of a dictionary."
            )
        obs, mask, single = self.agent.checked(observation, action_masks)
        memory, begun = self._memory(state, len(obs))
        first = np.full(len(obs), not begun)
        if episode_start is not None:
            first = first | np.broadcast_to(np.asarray(episode_start, bool), len(obs))
        action, memory = self._choose(
            not deterministic, self.agent.params, self.agent.prior, obs, first, memory, mask,
            np.int32(self._calls),
        )  # fmt: skip
        self._calls += 1
        action = np.asarray(action)
        return (action[0] if single else action), (np.asarray(memory),)

    def _memory(self, state: State | None, count: int) -> tuple[np.ndarray, bool]:
        blank = np.asarray(self.agent.agent.blank_memory(count))
        if state is None:
            return blank, False
        kept = np.asarray(state[0]) if isinstance(state, tuple) and len(state) == 1 else None
        if kept is None or kept.shape != blank.shape:
            raise IdrlError(
                f"state is not what predict returned for {count} observations before: pass that, "
                "or None."
            )
        return kept.astype(blank.dtype), True

    # -- what callbacks ask for -----------------------------------------------------------------

    def get_env(self) -> Any:
        return self.env

    def get_vec_normalize_env(self) -> None:
        """Observations are taken as they are."""

    @property
    def logger(self) -> Any:
        if self._logger is None:
            from stable_baselines3.common.logger import Logger

            self._logger = Logger(folder=None, output_formats=[])
        return self._logger

    def set_logger(self, logger: Any) -> None:
        self._logger = logger

    def save(self, path: str | Path) -> None:
        """As `Policy.save`: one file, which `idrl.load` reads."""
        self.agent.save(path)

    def __repr__(self) -> str:
        return f"Sb3Model({self.agent!r})"
