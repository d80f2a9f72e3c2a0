"""What an agent believes and decides in each state of an episode."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl import rules
from idrl.agents.control import ControlAgent
from idrl.agents.units import unit_of
from idrl.ids import Comparison, Decided
from idrl.inspect.play.candidates import arranged
from idrl.runs.policy import Policy, without
from idrl.training.seeding import seed_key, stream


class Thought(NamedTuple):
    """For one state. Continuous actions are numbered as `decision` has its candidates."""

    action: int  # by the rule that acts
    done: Any  # the same as the environment is told it
    decision: Decided  # of the rule it explores with
    greedy: int  # the action of the largest mean; the actor's, where there is one
    # Values and weights `[A, N]`, if learned (weights of 0 where an action is not allowed); of an
    # agent with an actor, of the action taken and of the actor's.
    returns: tuple[np.ndarray, np.ndarray] | None


class DecisionRecorder:
    """A seed's agent through an episode. `acting` is "explore" or "evaluate". What is compiled for
    one serves all that the same run trained."""

    def __init__(self, agent: Any, acting: str):
        self.agent, self.acting = agent, acting
        self._think = jax.jit(self._consider)

    def begin(self, policy: Policy) -> None:
        """An episode of these weights of the agent."""
        self.policy, self.key, self.t = policy, seed_key(policy.seed), 0
        self.memory: Any = jnp.stack([self.agent.blank_memory(1)] * 2)  # of the two rules

    def _consider(self, params, prior, obs, first, memory, key, steps, mask):
        agent, spec = self.agent, self.agent.spec
        rest = (key, steps, mask)
        explored, first_memory = agent.choose(  # without random actions: they tell nothing
            spec.explore.undithered, params, prior, obs, first, memory[0], *rest, noisy=True
        )
        judged, second_memory = agent.choose(
            spec.evaluate, params, prior, obs, first, memory[1], *rest
        )
        memory = jnp.stack([first_memory, second_memory])
        if isinstance(agent, ControlAgent):
            assert isinstance(explored, Comparison)
            done = explored.taken if self.acting == "explore" else judged.taken
            ends = jnp.stack([done, explored.candidates[:, 0]], 1)  # and the actor's
            memory, shown = self._with_actor(agent, params, prior, obs, ends, memory, key)
            return explored, judged.taken, None, shown, memory
        greedy = rules.greedy(agent.beliefs(params, prior, obs).q_heads, mask=mask).action
        shown = None
        if agent.z_name is not None:
            out = agent.outputs(params, prior, obs, acting=True)[agent.z_name]
            shown = agent.heads[agent.z_name].distribution(out)
            if shown is not None and agent.measures:
                shown = shown[0] * unit_of(params, agent.z_name), shown[1]
        return explored, judged.action, greedy, shown, memory

    def _with_actor(self, agent: ControlAgent, params, prior, obs, ends, memory, key):
        """The rule that does not act is told what was done: it compares that in the next step."""
        ends = agent.box.to_unit(ends)
        other = 1 if self.acting == "explore" else 0
        if not (agent.spec.explore, agent.spec.evaluate)[other].follows_actor:
            memory = memory.at[other, :, 1:].set(ends[:, 0])
        if agent.z_name is None:
            return memory, None
        out = agent.critics(params, prior, obs, ends, key, acting=True)[agent.z_name]
        told = agent.heads[agent.z_name].distribution(out)
        return memory, told and tuple(x.reshape(1, 2, -1) for x in told)

    def think(self, obs: Any, allowed: np.ndarray | None) -> Thought:
        obs = np.asarray(obs)[None]
        if obs.dtype == np.float64:
            obs = obs.astype(np.float32)
        first = np.array([self.t == 0])
        mask = None if allowed is None else np.asarray(allowed)[None]
        key = stream(self.key, "act", self.t)
        steps = np.int32(self.policy.config.training.steps)  # schedules at their end
        explored, judged, greedy, shown, self.memory = self._think(
            self.policy.params, self.policy.prior, obs, first, self.memory, key, steps, mask
        )
        self.t += 1
        decision = jax.tree.map(lambda x: np.asarray(x)[0], explored)
        done = decision.taken if self.acting == "explore" else np.asarray(judged)[0]
        returns = None if shown is None else (np.asarray(shown[0])[0], np.asarray(shown[1])[0])
        if isinstance(decision, Comparison):
            decision, action, actor = arranged(decision, done)
            return Thought(action, done, decision, actor, returns)
        if returns is not None and allowed is not None:
            returns = returns[0], np.where(allowed[:, None], returns[1], 0)
        decision, greedy = without(decision, allowed), int(np.asarray(greedy)[0])
        return Thought(int(done), int(done), decision, greedy, returns)
