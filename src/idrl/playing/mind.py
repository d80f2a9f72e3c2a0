"""What an agent believes and decides in each state of an episode."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl import rules
from idrl.ids import Decision
from idrl.policy import Policy
from idrl.training.seeding import seed_key, stream


class Thought(NamedTuple):
    """For one state."""

    action: int  # by the rule that acts
    decision: Decision  # of the rule it explores with
    greedy: int  # the action of the largest mean
    returns: tuple[np.ndarray, np.ndarray] | None  # values and weights `[A, N]`, if learned


class Mind:
    """One seed's agent through one episode. `acting` is "explore" or "evaluate"."""

    def __init__(self, policy: Policy, acting: str):
        self.policy, self.acting = policy, acting
        self.key = seed_key(policy.seed)
        self.memory: Any = jnp.zeros((2, 1), jnp.int32)  # of the two rules
        self.t = 0
        self._think = jax.jit(self._consider)

    def _consider(self, params, prior, obs, first, memory, key, mask):
        agent, spec = self.policy.agent, self.policy.agent.spec
        steps = jnp.int32(self.policy.config.training.steps)  # schedules at their end
        rest = (key, steps, mask)
        explored, first_memory = agent.choose(
            spec.explore, params, prior, obs, first, memory[0], *rest, noisy=True
        )
        judged, second_memory = agent.choose(
            spec.evaluate, params, prior, obs, first, memory[1], *rest
        )
        greedy = rules.greedy(agent.beliefs(params, prior, obs).q_heads, mask=mask).action
        shown = None
        if agent.z_name is not None:
            out = agent.outputs(params, prior, obs, acting=True)[agent.z_name]
            shown = agent.heads[agent.z_name].distribution(out)
        memory = jnp.stack([first_memory, second_memory])
        return explored, judged.action, greedy, shown, memory

    def think(self, obs: Any, allowed: np.ndarray | None) -> Thought:
        obs = np.asarray(obs)[None]
        if obs.dtype == np.float64:
            obs = obs.astype(np.float32)
        first = np.array([self.t == 0])
        mask = None if allowed is None else np.asarray(allowed)[None]
        key = stream(self.key, "act", self.t)
        explored, judged, greedy, shown, self.memory = self._think(
            self.policy.params, self.policy.prior, obs, first, self.memory, key, mask
        )
        self.t += 1
        decision = jax.tree.map(lambda x: np.asarray(x)[0], explored)
        action = decision.action if self.acting == "explore" else np.asarray(judged)[0]
        returns = None if shown is None else (np.asarray(shown[0])[0], np.asarray(shown[1])[0])
        return Thought(int(action), decision, int(np.asarray(greedy)[0]), returns)
