"""An agent for continuous actions: critics of state and action, an actor, and candidates.

The heads are those of any other agent, made for one action, which is part of their input. A rule
that compares actions is given a finite set of them, and so is used as it is.
"""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
import optax

from idrl import rules
from idrl.actions import Box
from idrl.agents.actor_rules import Acting, ActorRule
from idrl.agents.agent import Agent, AgentState, Considered, norm
from idrl.agents.composing import as_actor
from idrl.agents.metrics import averaged
from idrl.agents.rule_base import Beliefs, Rule, RuleContext
from idrl.agents.spec import AgentSpec
from idrl.ids import Comparison
from idrl.networks.heads import Transition


class ControlAgent(Agent):
    """The functions of one declared agent with an actor. Holds no state."""

    def __init__(self, spec: AgentSpec, obs_shape: tuple[int, ...], box: Box):
        super().__init__(spec, obs_shape, box)
        assert spec.actor is not None
        self.box, self.actor_name = box, spec.actor
        self.actor = as_actor(spec.heads[spec.actor])
        self.actor_module = self.actor.module(box.dims)

    @property
    def num_actions(self) -> int:
        return 1

    def blank_actions(self, envs: int) -> jax.Array:
        return jnp.zeros((envs, self.box.dims))

    def blank_memory(self, envs: int) -> jax.Array:
        """Which head is followed, and an action or the noise on it."""
        return jnp.zeros((envs, 1 + self.box.dims))

    def random_actions(self, key: jax.Array, envs: int, allowed=None) -> jax.Array:
        unit = jax.random.uniform(key, (envs, self.box.dims), minval=-1, maxval=1)
        return self.box.from_unit(unit)

    # -- parameters -----------------------------------------------------------------------------

    def init(self, key: jax.Array, example_obs: jax.Array) -> AgentState:
        params_key, prior_key, action_key = jax.random.split(key, 3)
        shape = (len(example_obs), self.box.dims)
        unit = jax.random.uniform(action_key, shape, minval=-1, maxval=1)
        params = self._init_control(params_key, example_obs, unit)
        prior = {}
        for name, head in self.heads.items():
            if head.prior_scale > 0 and head.members > 1:
                prior_key, one_key = jax.random.split(prior_key)
                fixed = self._init_control(one_key, example_obs, unit)
                fixed = {"trunk": fixed["trunk"], "heads": {name: fixed["heads"][name]}}
                said = self._critic(fixed, name, self._features(fixed, example_obs), unit)
                spread = said.var(1).mean() ** 0.5
                prior[name] = {**fixed, "scale": head.prior_scale / jnp.maximum(spread, 1e-8)}
        target = jax.tree.map(jnp.copy, params)
        critics, actor = self._apart(params)
        opt_state = {
            "critics": self.optimiser.init(critics), "actor": self.optimiser.init(actor)
        }  # fmt: skip
        return AgentState(params, target, opt_state, prior)

    def _init_control(self, key, example_obs, unit) -> dict[str, Any]:
        trunk_key, actor_key, *head_keys = jax.random.split(key, 2 + len(self.modules))
        params: dict[str, Any] = {"trunk": self.trunk.init(trunk_key, example_obs[:1])}
        features = self._features(params, example_obs[:1])
        joined = jnp.concatenate([features, unit[:1]], -1)
        params["heads"] = {
            name: module.init(head_key, joined)
            for (name, module), head_key in zip(self.modules.items(), head_keys, strict=True)
        }
        params["heads"][self.actor_name] = self.actor_module.init(actor_key, features)
        return params

    def _apart(self, params) -> tuple[Any, Any]:
        """The critics with the trunk, and the actor."""
        heads = dict(params["heads"])
        actor = heads.pop(self.actor_name)
        return {"trunk": params["trunk"], "heads": heads}, actor

    def _together(self, critics, actor) -> dict[str, Any]:
        return {**critics, "heads": {**critics["heads"], self.actor_name: actor}}

    # -- what is said of actions ----------------------------------------------------------------

    def _features(self, params, obs) -> jax.Array:
        return self.trunk.apply(params["trunk"], obs)

    def _critic(self, params, name, features, unit, key=None, acting: bool = False):
        """Head `name` on features `[B, F]` and actions `[B, D]`: of one action each."""
        chance = {} if key is None else {"tau": key}
        joined = jnp.concatenate([features, unit], -1)
        return self.modules[name].apply(params["heads"][name], joined, acting, rngs=chance)

    def critics(
        self, params, prior, obs: jax.Array, unit: jax.Array, key=None, *, acting: bool = False,
        only: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """What each head, or `only` one, says of `obs` `[B, ...]` and actions `[B, D]` or
        `[B, A, D]` of the unit box, with `[B·A]` rows; gradients to the trunk as heads declare."""
        many = unit.shape[1] if unit.ndim == 3 else 1
        unit = unit.reshape(-1, unit.shape[-1])
        features = self._features(params, obs)
        out: dict[str, Any] = {}
        for number, (name, head) in enumerate(self.heads.items()):
            if only is not None and name != only:
                continue
            share = head.trunk_share
            seen = features if share == 1 else optax.scale_gradient(features, share)
            seen = jnp.repeat(seen, many, 0)
            chance = None if key is None else jax.random.fold_in(key, number)
            out[name] = self._critic(params, name, seen, unit, chance, acting)
            if name in prior:
                far = jnp.repeat(self._features(prior[name], obs), many, 0)
                fixed = prior[name]["scale"] * self._critic(prior[name], name, far, unit)
                # The prior is fixed; what it says of an action is not.
                out[name] = out[name] + fixed
        return out

    def believed(self, params, prior, obs, unit, key=None) -> Beliefs:
        """Of candidates `[B, A, D]`."""
        out = self.critics(params, prior, obs, unit, key, acting=True)
        shape = unit.shape[:2]
        q_heads = self.heads[self.q_name].q_heads(out[self.q_name])[..., 0]  # [B·A, K]
        q_heads = jnp.moveaxis(q_heads.reshape(*shape, -1), -1, -2)
        if self.z_name is None:
            return Beliefs(q_heads)
        variance = self.heads[self.z_name].return_variance(out[self.z_name])
        assert variance is not None
        return Beliefs(q_heads, variance.reshape(shape))

    def consider(
        self, rule: Rule, params, prior, obs, first, memory, key, step, mask=None, *,
        noisy: bool = False, midpoints: bool = False,
    ) -> Considered:  # fmt: skip
        assert mask is None
        memory_key, rule_key, set_key, head_key = jax.random.split(key, 4)
        chance = None if midpoints else head_key
        head = rule.remember(memory[:, 0].astype(jnp.int32), first, memory_key, self.k)
        out = self.actor_module.apply(params["heads"][self.actor_name], self._features(params, obs))
        before, actor = memory[:, 1:], self.actor.mean(out)
        context = RuleContext(step, head, rule_key)
        if rule.follows_actor:
            acting = Acting(self.actor, out, before, first, rule_key)
            chosen, kept = cast(ActorRule, rule).act(acting)
            actions = jnp.stack([actor, chosen], 1)
            beliefs = self.believed(params, prior, obs, actions, chance)
            described = {"return_variance": beliefs.return_variance}
            decision = rules.given(beliefs.q_heads, 1, **described)
        else:
            before = jnp.where(first[:, None], 0.0, before)
            actions = self.actor.candidates.propose(set_key, actor, before)
            beliefs = self.believed(params, prior, obs, actions, chance)
            decision = rule(beliefs, context)
            for turn in range(self.actor.candidates.refine if rule.minimises_ratio else 0):
                more = self.actor.candidates.around_best(
                    jax.random.fold_in(set_key, turn), actions, decision.ratio
                )
                new = self.believed(params, prior, obs, more, chance)
                actions = jnp.concatenate([actions, more], 1)
                beliefs = jax.tree.map(lambda *x: jnp.concatenate(x, -1), beliefs, new)
                decision = rule(beliefs, context)
            kept = Comparison(*decision, actions).taken
        own = averaged(rule.metrics(decision, beliefs, context))
        head = rule.keep(decision, context)
        memory = jnp.concatenate([head[:, None].astype(memory.dtype), kept], 1)
        compared = Comparison(*decision, self.box.from_unit(actions))
        return Considered(compared, memory, beliefs, own)

    # -- learning -------------------------------------------------------------------------------

    def _ahead(self, params, state: AgentState, obs, key) -> tuple[jax.Array, jax.Array]:
        """The action `[B, D]` that targets are computed with, and what its entropy is worth."""
        return self.actor.next_action(
            self._policy(state.target if self.actor.has_target else params, obs), key
        )

    def _policy(self, params, obs) -> Any:
        features = self._features(params, obs)
        return self.actor_module.apply(params["heads"][self.actor_name], features)

    def critic_loss(self, critics, state: AgentState, batch: Transition, key):
        """As `Agent.loss`, of the critics alone."""
        keys = jax.random.split(key, 3)
        unit_t, bonus = self._ahead(state.params, state, batch.s_t, keys[0])
        unit_tm1 = self.box.to_unit(batch.a_tm1)
        out_tm1 = self.critics(critics, state.prior, batch.s_tm1, unit_tm1, keys[1])
        out_t = self.critics(state.target, state.prior, batch.s_t, unit_t, keys[2])
        if self.heads[self.q_name].says_q:
            q_t = out_t[self.q_name]  # [B, K, 1]

            def ask(some: jax.Array) -> jax.Array:
                said = self.critics(
                    state.target, state.prior, batch.s_t, some, keys[2], only=self.q_name
                )
                return said[self.q_name].reshape(*some.shape[:2], *q_t.shape[1:])

            seen = self.actor.target_values(q_t, unit_t, ask, jax.random.fold_in(key, 3))
            out_t[self.q_name] = seen + bonus[:, None, None]
        out_t = jax.lax.stop_gradient(out_t)
        one = batch._replace(a_tm1=jnp.zeros(len(batch.r_t), jnp.int32))
        losses: dict[str, Any] = {}
        metrics: dict[str, Any] = {}
        td_priority = None
        for name, head in self.heads.items():
            each = head.loss(out_tm1[name], out_t[name], out_t[name], one)
            losses[name] = (each if batch.weight is None else batch.weight * each).mean()
            own = head.metrics(critics["heads"][name], out_tm1[name], one)
            metrics |= {f"loss_{name}": losses[name], **averaged(own)}
        if batch.where is not None:
            q_tm1, q_t = out_tm1[self.q_name], out_t[self.q_name]
            td_priority = self.heads[self.q_name].td_priority(q_tm1, q_t, q_t, one)
        return sum(losses.values()), (metrics, td_priority)

    def actor_loss(self, weights, params, prior, obs, key) -> jax.Array:
        """How far the actor is from what it climbs."""
        out = self.actor_module.apply(weights, self._features(params, obs))
        value_key, draw_key = jax.random.split(key)
        unit, log_prob = self.actor.tried(out, draw_key)
        said = self.critics(params, prior, obs, unit, value_key)[self.q_name]
        q_heads = self.heads[self.q_name].q_heads(said)[..., 0]  # [B, K]
        return self.actor.policy_loss(out, self.actor.climbed(q_heads), log_prob)

    def learn(self, state: AgentState, batch: Transition, key=None, number=0):
        key = jax.random.key(0) if key is None else key
        critic_key, actor_key = jax.random.split(key)
        critics, weights = self._apart(state.params)
        grads, (metrics, td_priority) = jax.grad(self.critic_loss, has_aux=True)(
            critics, state, batch, critic_key
        )
        critics, critics_state = self._stepped(critics, grads, state.opt_state["critics"])
        params = self._together(critics, weights)

        def improve(weights, opt_state):
            loss, slope = jax.value_and_grad(self.actor_loss)(
                weights, params, state.prior, batch.s_tm1, actor_key
            )
            return *self._stepped(weights, slope, opt_state), loss * self.actor.delay, norm(slope)

        def leave(weights, opt_state):  # a loss in `delay`, and the mean over updates is right
            return weights, opt_state, jnp.float32(0), jnp.float32(0)

        given = (weights, state.opt_state["actor"])
        if self.actor.delay > 1:
            due = number % self.actor.delay == 0
            weights, actor_state, loss, slope = jax.lax.cond(due, improve, leave, *given)
        else:
            weights, actor_state, loss, slope = improve(*given)
        metrics |= {f"loss_{self.actor_name}": loss, "grad_norm": norm(grads) + slope}
        metrics |= averaged(self.actor.metrics(weights, None, batch))
        state = state._replace(
            params=self._together(critics, weights),
            opt_state={"critics": critics_state, "actor": actor_state},
        )
        return state, metrics, td_priority

    def _stepped(self, weights, grads, opt_state):
        updates, opt_state = self.optimiser.update(grads, opt_state, weights)
        return optax.apply_updates(weights, updates), opt_state
