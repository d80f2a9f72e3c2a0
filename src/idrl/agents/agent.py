"""Turns a declaration into functions over one pytree: init, act, learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from idrl.actions import Actions, some_allowed
from idrl.agents import units
from idrl.agents.metrics import averaged
from idrl.agents.rule_base import Beliefs, Rule, RuleContext
from idrl.agents.spec import AgentSpec
from idrl.ids import Decided
from idrl.networks.heads import Transition
from idrl.replay.magnitudes import Magnitudes

_LARGE = 2**20  # weights of a matrix whose reading and writing takes time
_ROWS = 16
_SMALL = 2**16  # weights of an array that takes less time than starting a kernel for it


class AgentState(NamedTuple):
    """Everything that changes with an update, and the priors, which never do."""

    params: Any
    target: Any  # the parameters that targets are computed with
    opt_state: Any
    prior: Any  # fixed random functions, per head that has them; never trained
    fast: Any = None  # `params` as updates compute with them, where that is in less precision


class Considered(NamedTuple):
    """What a rule made of a batch of states."""

    decision: Decided
    memory: jax.Array  # [E, ...] for the next step
    beliefs: Beliefs  # of the actions that were compared
    metrics: dict[str, jax.Array]  # the rule's own, a number each


class Agent:
    """The functions of one declared agent for one kind of observation and actions with numbers.
    Holds no state. `control.ControlAgent` is the same for continuous ones."""

    def __init__(self, spec: AgentSpec, obs_shape: tuple[int, ...], actions: Actions):
        self.spec = spec
        self.actions = actions
        self.obs_shape = tuple(obs_shape)
        spec.trunk.check_fits(self.obs_shape)
        self.trunk = spec.trunk.module(self.obs_shape)
        self.heads = spec.values
        self.modules = {name: head.module(self.num_actions) for name, head in self.heads.items()}
        self.optimiser = spec.optimiser.clipped()
        # Values come from the ensemble if there is one, noise from the head that knows of it.
        self.q_name = max(self.heads, key=lambda name: self.heads[name].members)
        self.z_name = next((n for n, head in self.heads.items() if head.knows_variance), None)
        head = self.heads[self.q_name]
        self.k = head.members
        self.mask_prob = head.mask_prob
        self.mixed = spec.learning.precision == "mixed"
        self.measures = spec.learning.unit == "measured"
        self.fit_name = max(self.heads, key=lambda name: self.heads[name].fit_batch)
        self.fit_batch = self.heads[self.fit_name].fit_batch

    @property
    def num_actions(self) -> int:
        """How many values a head has for one input."""
        assert isinstance(self.actions, int)
        return self.actions

    def blank_actions(self, envs: int) -> jax.Array:
        """What a row of the replay has before anything was done."""
        return jnp.zeros(envs, jnp.int32)

    def blank_memory(self, envs: int) -> jax.Array:
        """What rules keep, before an episode."""
        return jnp.zeros(envs, jnp.int32)

    def random_actions(self, key: jax.Array, envs: int, allowed=None) -> jax.Array:
        if allowed is None:
            return jax.random.randint(key, (envs,), 0, self.num_actions)
        logits = jnp.where(some_allowed(allowed), 0.0, -jnp.inf)
        return jax.random.categorical(key, logits).astype(jnp.int32)

    def init(self, key: jax.Array, example_obs: jax.Array) -> AgentState:
        """`example_obs` `[B, ...]`: typical observations, to measure the priors' spread on."""
        params_key, prior_key = jax.random.split(key)
        params = self._init_params(params_key, example_obs)
        prior = {}
        for name, head in self.heads.items():
            if head.prior_scale > 0 and head.members > 1:
                prior_key, one_key = jax.random.split(prior_key)
                fixed = self._init_params(one_key, example_obs, only=name)
                spread = self._raw(fixed, name, example_obs).var(1).mean() ** 0.5
                fixed["scale"] = head.prior_scale / jnp.maximum(spread, 1e-8)
                prior[name] = fixed
        opt_state = self.optimiser.init(params)
        if self.measures:
            params = {**params, "units": units.no_units(self.heads)}
        target = jax.tree.map(jnp.copy, self._cast(params))
        fast = self._cast(params) if self.mixed else None
        return AgentState(params, target, opt_state, prior, fast)

    def _cast(self, params):
        """As updates compute with them. In mixed precision that is bfloat16 for convolutions and
        large matrices, which is where time goes; the masters and the moments stay as they are."""
        if not self.mixed:
            return params

        def cast(path, x):
            costly = x.ndim == 4 or x.size >= _LARGE
            return x.astype(jnp.bfloat16) if costly and path[-1].key == "kernel" else x

        return jax.tree_util.tree_map_with_path(cast, params)

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

    def outputs(
        self, params, prior, obs: jax.Array, key=None, *, acting: bool = False, noisy: bool = True,
        midpoints: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """What each head says of `obs` `[B, ...]`; gradients to the trunk as the heads declare.

        `key` is for heads with chance in them: noisy weights (unless `noisy` is false) and the
        fractions of implicit quantiles (unless `midpoints`: then they are evenly spaced), which are
        fewer and bent by risk when `acting`.
        """
        features = self.trunk.apply(params["trunk"], obs)
        out: dict[str, Any] = {}
        for number, (name, head) in enumerate(self.heads.items()):
            share = head.trunk_share
            seen = features if share == 1 else optax.scale_gradient(features, share)
            chance = {}
            if key is not None:
                tau, noise = jax.random.split(jax.random.fold_in(key, number))
                chance = {"noise": noise} if noisy else {}
                chance |= {} if midpoints else {"tau": tau}
            out[name] = self.modules[name].apply(params["heads"][name], seen, acting, rngs=chance)
            if name in prior:
                fixed = prior[name]["scale"] * self._raw(prior[name], name, obs)
                out[name] = out[name] + jax.lax.stop_gradient(fixed)
        return out

    def beliefs(
        self, params, prior, obs: jax.Array, key=None, noisy: bool = False, midpoints: bool = False
    ) -> Beliefs:
        """What the heads say of `obs` `[B, ...]`, in the units of the task."""
        believed = self._beliefs(params, prior, obs, key, noisy, midpoints)
        return believed.times(units.unit_of(params, self.q_name)) if self.measures else believed

    def _beliefs(
        self, params, prior, obs: jax.Array, key=None, noisy: bool = False, midpoints: bool = False
    ) -> Beliefs:
        out = self.outputs(params, prior, obs, key, acting=True, noisy=noisy, midpoints=midpoints)
        q_heads = self.heads[self.q_name].q_heads(out[self.q_name])
        if self.z_name is None:
            return Beliefs(q_heads)
        head, said = self.heads[self.z_name], out[self.z_name]
        variance = head.return_variance(said)
        noise = None
        if key is not None:
            drawn = head.return_draw(said, jax.random.fold_in(key, len(self.modules)))
            noise = drawn - head.q_heads(said)[..., 0, :]
        if not self.measures:
            return Beliefs(q_heads, variance, noise)
        # In the unit of the values.
        ratio = units.unit_of(params, self.z_name) / units.unit_of(params, self.q_name)
        return Beliefs(q_heads, variance, noise).times(ratio)._replace(q_heads=q_heads)

    def choose(
        self, rule: Rule, params, prior, obs, first, memory, key, step, mask=None, *,
        noisy: bool = False, midpoints: bool = False,
    ) -> tuple[Decided, jax.Array]:  # fmt: skip
        """A `Decision` for `obs` `[E, ...]`, and the memory; `first` `[E]` marks new episodes.
        `mask` `[E, A]` is true where an action is allowed; a state in which none is has all.

        `noisy` moves noisy weights: for exploring, not for evaluating. `midpoints` asks for evenly
        spaced quantiles where they would be drawn."""
        considered = self.consider(
            rule, params, prior, obs, first, memory, key, step, mask,
            noisy=noisy, midpoints=midpoints,
        )  # fmt: skip
        return considered.decision, considered.memory

    def consider(
        self, rule: Rule, params, prior, obs, first, memory, key, step, mask=None, *,
        noisy: bool = False, midpoints: bool = False,
    ) -> Considered:  # fmt: skip
        """The same, and what was believed of the actions that were compared."""
        memory_key, rule_key = jax.random.split(key)
        memory = rule.remember(memory, first, memory_key, self.k)
        beliefs = self._beliefs(params, prior, obs, jax.random.fold_in(key, 2), noisy, midpoints)
        mask = None if mask is None else some_allowed(mask)
        context = RuleContext(step, memory, rule_key, mask)
        decision = rule(beliefs, context)
        kept = rule.keep(decision, context)
        if self.measures:
            unit = units.unit_of(params, self.q_name)
            decision = decision.times(unit, rule.gain_in_returns)
            beliefs = beliefs.times(unit)
        own = averaged(rule.metrics(decision, beliefs, context))
        return Considered(decision, kept, beliefs, own)

    def _seen(self, params, state: AgentState, batch: Transition, key) -> tuple[dict, dict, dict]:
        """Outputs before the step, and after it by the online and by the target network, each with
        chance of its own."""
        keys = [None] * 3 if key is None else list(jax.random.split(key, 3))
        out_tm1 = self.outputs(params, state.prior, batch.s_tm1, keys[0])
        online_t = self.outputs(params, state.prior, batch.s_t, keys[1])
        target_t = self.outputs(state.target, state.prior, batch.s_t, keys[2])
        return out_tm1, jax.lax.stop_gradient(online_t), jax.lax.stop_gradient(target_t)

    def loss(self, params, state: AgentState, batch: Transition, key=None):
        """Sum over heads of the mean over the batch; metrics and TD priorities beside it."""
        out_tm1, online_t, target_t = self._seen(params, state, batch, key)
        losses: dict[str, Any] = {}
        metrics: dict[str, Any] = {}
        for name, head in self.heads.items():
            measured = self._measured(params, name, batch)
            each = head.loss(out_tm1[name], online_t[name], target_t[name], measured)
            losses[name] = (each if batch.weight is None else batch.weight * each).mean()
            own = head.metrics(params["heads"][name], out_tm1[name], measured)
            metrics |= {f"loss_{name}": losses[name], **averaged(own)}
        if self.measures:
            metrics |= self._told(params, out_tm1)
        td_priority = None
        if batch.where is not None:
            name = self.q_name
            td_priority = self.heads[name].td_priority(
                out_tm1[name], online_t[name], target_t[name], self._measured(params, name, batch)
            )
        return sum(losses.values()), (metrics, td_priority)

    def learn(self, state: AgentState, batch: Transition, key=None, number=0):
        """Update `number` from one batch: the new state, metrics, and how surprising each
        transition was (`[B]`, if the batch was drawn by priorities)."""
        params = state.params if state.fast is None else state.fast
        grads, (metrics, td_priority) = jax.grad(self.loss, has_aux=True)(params, state, batch, key)
        weights = units.trained(state.params)
        grads = jax.tree.map(lambda g, p: g.astype(p.dtype), units.trained(grads), weights)
        updates, opt_state = self.optimiser.update(grads, state.opt_state, weights)
        params = {**state.params, **optax.apply_updates(weights, updates)}
        metrics["grad_norm"] = norm(grads)
        return self._with(state, params)._replace(opt_state=opt_state), metrics, td_priority

    def _with(self, state: AgentState, params) -> AgentState:
        fast = None if state.fast is None else self._cast(params)
        return state._replace(params=params, fast=fast)

    def _measured(self, params, name: str, batch: Transition) -> Transition:
        """The batch with rewards and returns in a head's units. The head that actions are compared
        by is told no bounds: where the best return is at one, all actions would look the same."""
        if not self.measures:
            return batch
        returns = None if name == self.q_name else batch.returns
        unit = units.unit_of(params, name)
        r_t, returns = jax.tree.map(lambda x: x / unit, (batch.r_t, returns))
        # One for each transition: a head may take the batch apart.
        returns = jax.tree.map(lambda x: jnp.broadcast_to(x, r_t.shape), returns)
        return batch._replace(r_t=r_t, returns=returns)

    def _told(self, params, out_tm1) -> dict[str, jax.Array]:
        """What is worth watching of units."""
        told = {"unit": params["units"][self.q_name]}
        for name, head in self.heads.items():
            at_ends = head.at_ends(out_tm1[name])
            told |= {} if at_ends is None else {f"at_ends_{name}": at_ends.mean()}
        return told

    def remeasured(self, state: AgentState, seen: Magnitudes) -> AgentState:
        """In units that fit what was seen."""
        new = units.fitted(state.params["units"], self.heads, seen)
        state = self._with(state, units.converted(state.params, self.heads, new))
        return state._replace(target=units.converted(state.target, self.heads, new))

    def refit(
        self, state: AgentState, draw: Callable[[Any], Transition], batches: int, scale, key
    ) -> AgentState:
        """With the head that has a fit (`Head.refit`) fitted anew, from `batches` batches that
        `draw` returns by their number; each transition counts as `scale` of one."""
        name, head = self.fit_name, self.heads[self.fit_name]

        def evidence(number):
            batch = draw(number)
            seen = self._seen(state.params, state, batch, None)
            out_tm1, online_t, target_t = (out[name] for out in seen)
            measured = self._measured(state.params, name, batch)
            return head.evidence(out_tm1, online_t, target_t, measured)

        found = jax.lax.fori_loop(
            1, batches, lambda n, sums: jax.tree.map(jnp.add, sums, evidence(n)), evidence(0)
        )
        heads = dict(state.params["heads"])
        heads[name] = head.refit(heads[name], found, scale, key)
        return self._with(state, {**state.params, "heads": heads})


def refresh_target(state: AgentState, share: float = 1.0) -> AgentState:
    """With the weights as the target, or the target moved to them by a `share` of the way."""
    new = state.params if state.fast is None else state.fast
    if share < 1:
        moved = jax.tree.map(lambda old, x: old + share * (x - old), state.target, new)
        return state._replace(target=moved)
    return state._replace(target=jax.tree.map(jnp.copy, new))  # a buffer of its own


def norm(grads) -> jax.Array:
    """Of all gradients. Of a large matrix every 16th row stands for all, since reading it whole
    once more would take 4% of an update on a GPU; small arrays are one, since a kernel each would
    take as much."""

    def square(x):
        if x.size < _LARGE or x.ndim < 2:
            return (x**2).sum()
        inputs = max(range(max(1, x.ndim - 1)), key=lambda axis: x.shape[axis])  # not the heads
        some = jax.lax.slice_in_dim(x, 0, None, _ROWS, inputs)
        return (some**2).sum() * (x.shape[inputs] / some.shape[inputs])

    leaves = jax.tree.leaves(grads)
    small = [x.ravel() for x in leaves if x.size < _SMALL]
    others = [x for x in leaves if x.size >= _SMALL] + ([jnp.concatenate(small)] if small else [])
    return sum(square(x) for x in others) ** 0.5
