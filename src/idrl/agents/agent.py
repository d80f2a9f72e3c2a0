"""Turns a declaration into functions over one pytree: init, act, learn."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from idrl.agents.choosing import Beliefs, Moment, Rule
from idrl.agents.spec import AgentSpec
from idrl.ids import Decision
from idrl.networks.heads import Ensemble, Transition


class AgentState(NamedTuple):
    params: Any
    target: Any  # the parameters that targets are computed with
    opt_state: Any
    prior: Any  # fixed random functions, per head that has them; never trained


class Agent:
    """The functions of one declared agent for one kind of observation. Holds no state."""

    def __init__(self, spec: AgentSpec, obs_shape: tuple[int, ...], num_actions: int):
        self.spec = spec
        self.num_actions = num_actions
        self.obs_shape = tuple(obs_shape)
        self.trunk = spec.trunk.module(self.obs_shape)
        self.modules = {name: head.module(num_actions) for name, head in spec.heads.items()}
        self.optimiser = spec.optimiser.make()
        ensembles = [n for n, head in spec.heads.items() if isinstance(head, Ensemble)]
        noisy = [n for n in spec.heads if n not in ensembles]
        self.q_name = (ensembles or noisy)[0]
        self.z_name = noisy[0] if noisy else None
        head = spec.heads[self.q_name]
        self.k = head.k if isinstance(head, Ensemble) else 1
        self.mask_prob = head.mask_prob if isinstance(head, Ensemble) else 1.0

    def init(self, key: jax.Array, example_obs: jax.Array) -> AgentState:
        """`example_obs` `[B, ...]`: typical observations, to measure the priors' spread on."""
        params_key, prior_key = jax.random.split(key)
        params = self._init_params(params_key, example_obs)
        prior = {}
        for name, head in self.spec.heads.items():
            if isinstance(head, Ensemble) and head.prior_scale > 0 and head.k > 1:
                prior_key, one_key = jax.random.split(prior_key)
                fixed = self._init_params(one_key, example_obs, only=name)
                spread = self._raw(fixed, name, example_obs).var(1).mean() ** 0.5
                fixed["scale"] = head.prior_scale / jnp.maximum(spread, 1e-8)
                prior[name] = fixed
        target = jax.tree.map(jnp.copy, params)
        return AgentState(params, target, self.optimiser.init(params), prior)

    def _init_params(self, key, example_obs, only: str | None = None) -> dict[str, Any]:
        trunk_key, *head_keys = jax.random.split(key, 1 + len(self.modules))
        params: dict[str, Any] = {"trunk": self.trunk.init(trunk_key, example_obs[:1])}
        features = self.trunk.apply(params["trunk"], example_obs[:1])
        params["heads"] = {
            name: module.init(head_key, features)
            for (name, module), head_key in zip(self.modules.items(), head_keys, strict=True)
            if only in (None, name)
        }
        return params

    def _raw(self, params, name, obs):
        features = self.trunk.apply(params["trunk"], obs)
        return self.modules[name].apply(params["heads"][name], features)

    def outputs(self, params, prior, obs: jax.Array) -> dict[str, jax.Array]:
        """What each head says of `obs` `[B, ...]`; gradients to the trunk as the heads declare."""
        features = self.trunk.apply(params["trunk"], obs)
        out = {}
        for name, head in self.spec.heads.items():
            share = head.trunk_share
            seen = features if share == 1 else optax.scale_gradient(features, share)
            out[name] = self.modules[name].apply(params["heads"][name], seen)
            if name in prior:
                fixed = prior[name]["scale"] * self._raw(prior[name], name, obs)
                out[name] = out[name] + jax.lax.stop_gradient(fixed)
        return out

    def beliefs(self, params, prior, obs: jax.Array) -> Beliefs:
        out = self.outputs(params, prior, obs)
        q_heads = self.spec.heads[self.q_name].q_heads(out[self.q_name])
        if self.z_name is None:
            return Beliefs(q_heads)
        return Beliefs(q_heads, self.spec.heads[self.z_name].return_variance(out[self.z_name]))

    def choose(self, rule: Rule, params, prior, obs, first, memory, key, step, mask=None):
        """A `Decision` for `obs` `[E, ...]`, and the memory; `first` `[E]` marks new episodes."""
        memory_key, rule_key = jax.random.split(key)
        memory = rule.remember(memory, first, memory_key, self.k)
        decision: Decision = rule(
            self.beliefs(params, prior, obs), Moment(step, memory, rule_key, mask)
        )
        return decision, memory

    def loss(self, params, state: AgentState, batch: Transition):
        """Sum over heads of the mean over the batch; per-head losses beside it."""
        out_tm1 = self.outputs(params, state.prior, batch.s_tm1)
        online_t = jax.lax.stop_gradient(self.outputs(state.params, state.prior, batch.s_t))
        target_t = jax.lax.stop_gradient(self.outputs(state.target, state.prior, batch.s_t))
        losses = {
            name: head.loss(out_tm1[name], online_t[name], target_t[name], batch).mean()
            for name, head in self.spec.heads.items()
        }
        return sum(losses.values()), losses

    def learn(self, state: AgentState, batch: Transition) -> tuple[AgentState, dict]:
        """One update from one batch."""
        grads, losses = jax.grad(self.loss, has_aux=True)(state.params, state, batch)
        updates, opt_state = self.optimiser.update(grads, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        metrics = {f"loss_{name}": loss for name, loss in losses.items()}
        metrics["grad_norm"] = optax.tree.norm(grads)
        return state._replace(params=params, opt_state=opt_state), metrics


def refresh_target(state: AgentState) -> AgentState:
    return state._replace(target=state.params)
