"""What both kinds of programs do alike, for one seed and over all of them: choose, learn, and keep
the best weights.

Counters are the same for all seeds and stay outside the vmapped part, so that writes to the replay
keep one address and no branch is needed; every random key is folded from a seed's own key and a
counter, so a seed draws the same numbers alone or among others.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.actions import Box
from idrl.agents import Agent
from idrl.agents.agent import refresh_target
from idrl.agents.metrics import diagnostics as diagnostics_of
from idrl.replay import ring as ring
from idrl.training import distributions
from idrl.training.ahead import Ahead, Early, quick
from idrl.training.batching import loop, over_seeds
from idrl.training.blocks import block_of_a_second
from idrl.training.evaluation import Score, acting_of
from idrl.training.health import FINE, noted
from idrl.training.layout import SAME, SEEDS, SeedLayout
from idrl.training.program import Beside, Best, Frames, TrainState, learning_view
from idrl.training.seeding import key_of, stream
from idrl.training.spec import Cadence, Evaluation, Training, cadence

_DRAWN_BYTES = 2**28  # how much may be drawn ahead
_FIT_PART = 2_048  # transitions of a regression that are looked at together
EXAMPLE_STEPS = 64  # random steps whose observations measure the priors' spread


class Choice(NamedTuple):
    """What E environments of a seed are told to do, `[E, ...]` each."""

    action: jax.Array
    memory: jax.Array
    heads: jax.Array | None  # [E, K] which heads may learn from it
    diagnostics: dict[str, jax.Array]  # what the rule saw, one number each
    env_key: jax.Array  # for the environments' own chance


class Learner(SeedLayout):
    """An agent with its replay, for many seeds."""

    frames: Frames | None = None
    beside: Beside | None = None
    rows_behind = 0  # vector steps whose rows are not in the replay yet when updates are due

    def __init__(
        self, agent: Agent, training: Training, evaluation: Evaluation, seeds: int,
        largest_block: int | None = None, debug: bool = False, block: int | None = None,
        flexible: bool = False, stack: ring.Stack = ring.WHOLE, masked: bool = False,
        acting: str = "evaluate",
    ):  # fmt: skip
        """`largest_block`: iterations of about a second, or None to go by the agent's updates;
        `block`: that of the run so far, where one goes on; `debug`: see `Program`; `flexible`: see
        `Cadence`; `masked`: the environments say which actions are allowed; `acting`: by which
        rule it is scored, that for evaluation or the one it explores with."""
        super().__init__(seeds)
        self.debug = debug
        self.acting = acting_of(agent.spec, acting, training.steps)
        self.agent, self.envs = agent, training.envs
        self.learning = agent.spec.learning
        self.training, self.evaluation = training, evaluation
        self.stack = stack
        self.dims = agent.actions.dims if isinstance(agent.actions, Box) else 0
        self.masked = agent.num_actions if masked else 0  # actions that rows say are allowed or not
        self.unroll = 1 if jax.default_backend() == "cpu" else 8  # a GPU waits for each turn
        least = ring.least_rows(self.learning.n_step, stack.depth)  # earlier runs may say fewer
        self.replay_rows = max(least, self.learning.replay_capacity // self.envs)
        self.largest = largest_block or block_of_a_second(agent, seeds)
        self.cadence: Cadence = cadence(
            training, evaluation, self.learning, self.largest, block, flexible
        )
        self._ahead = Ahead()
        specs = (*(SEEDS,) * 4, SAME), SEEDS
        self._describe = Early(
            self._over_devices(self._describe_all, *specs), compiler_options=quick()
        )
        # Takes nothing over: of a donated state a GPU was seen to return the weights in place of
        # the optimiser's moments as well (JAX 0.11; `benchmarks/gpu_agrees.py`).
        self._renewed = Early(
            self._over_devices(lambda *given: self._copy_target(*given).agent, (SEEDS, SAME), SEEDS)
        )
        # Between the random steps and the first block there may be something to do.
        self.prepares = agent.measures or self.cadence.distributions_every_steps > 0
        self._prepare: Any = lambda state: state
        if self.prepares:
            self._prepare = Early(
                self._over_devices(over_seeds(self._prepared), (SEEDS,), SEEDS),
                donate_argnums=() if debug else 0, compiler_options=quick(),
            )  # fmt: skip

    # -- one seed -----------------------------------------------------------------------------

    def _choose(self, rule, state: TrainState, obs, first, memory, t, step, allowed=None) -> Choice:
        """Actions by `rule`, or at random where it is None, in vector step `t`."""
        act_key, env_key, mask_key = jax.random.split(key_of(state, "act", t), 3)
        diagnostics: dict[str, jax.Array] = {}
        if rule is None:
            action = self.agent.random_actions(act_key, obs.shape[0], allowed)
        else:
            considered = self.agent.consider(
                rule, state.agent.params, state.agent.prior, obs, first, memory, act_key,
                step, allowed, noisy=True,
            )  # fmt: skip
            action, memory = considered.decision.taken, considered.memory
            diagnostics = diagnostics_of(considered.decision, allowed) | considered.metrics
        heads = None
        if self.agent.mask_prob < 1:
            shape = (self.envs, self.agent.k)
            heads = jax.random.bernoulli(mask_key, self.agent.mask_prob, shape)
        return Choice(action, memory, heads, diagnostics, env_key)

    def _store(self, replay: ring.Replay, row: ring.Row, written) -> ring.Replay:
        """With row number `written`, its rewards as the agent is to learn them."""
        row = row._replace(reward=self.learning.seen_reward(row.reward))
        return ring.add(replay, row, written, self.learning.n_step, self.stack, self.learning.gamma)

    def _draw(self, state: TrainState, written, update) -> ring.Transition:
        """The batch of one update."""
        key = key_of(state, "learn", update)
        return self._sample(state, key, written, self.learning.batch_size)

    def _learn(self, state: TrainState, written, update, batch=None) -> tuple[TrainState, dict]:
        batch = self._draw(state, written, update) if batch is None else batch
        key = jax.random.fold_in(key_of(state, "learn", update), 0)
        if state.replay.magnitudes is not None:
            batch = batch._replace(returns=state.replay.magnitudes.bounds(self.learning.gamma))
        agent, metrics, td_priority = self.agent.learn(state.agent, batch, key, update)
        state = state._replace(agent=agent)
        if batch.returns is not None:
            metrics |= dict(zip(("return_low", "return_high"), batch.returns, strict=True))
        if td_priority is not None:
            replay = ring.reprioritise(
                state.replay, batch.where, td_priority, self.learning.priority
            )
            state = state._replace(replay=replay)
        return noted(state, metrics, update), metrics

    def _remeasure(self, state: TrainState) -> TrainState:
        """In units that fit what the replay was told."""
        old, magnitudes = state.agent.params["units"], state.replay.magnitudes
        assert magnitudes is not None
        agent, replay = self.agent.remeasured(state.agent, magnitudes), state.replay
        name = self.agent.q_name
        if self.learning.priority > 0 and self.agent.heads[name].priority_in_units:
            new = agent.params["units"][name]
            factor = jnp.where(old[name] > 0, old[name] / new, 1.0)
            replay = ring.with_unit(replay, factor, self.learning.priority)
        return state._replace(agent=agent, replay=replay)

    def _sample(self, state: TrainState, key, written, size: int) -> ring.Transition:
        done = jnp.clip(written * self.envs / self.training.steps, 0, 1)
        importance = self.learning.importance + (1 - self.learning.importance) * done
        return ring.sample(
            state.replay, key, written, size, self.learning.gamma, self.learning.n_step, importance,
            self.stack, self.dims, self.masked,
        )  # fmt: skip

    def _refresh(self, state: TrainState, written, number) -> TrainState:
        """A new target; Bayesian heads are fitted first."""
        agent = state.agent
        if self.agent.fit_batch:
            key = key_of(state, "refit", number)
            # Regression counts transitions, so it draws them all as likely.
            uniform = state._replace(replay=state.replay._replace(priorities=None))
            size = min(_FIT_PART, self.agent.fit_batch)
            batches = math.ceil(self.agent.fit_batch / size)

            def draw(n):
                return self._sample(uniform, jax.random.fold_in(key, n + 1), written, size)

            stored = jnp.minimum(written, self.replay_rows) * self.envs
            scale = jnp.minimum(1.0, stored / (batches * size))  # nothing counts twice
            agent = self.agent.refit(agent, draw, batches, scale, jax.random.fold_in(key, 0))
        return state._replace(agent=refresh_target(agent, self.learning.tau))

    def _fresh(self, key_data, agent_key, examples, task, worlds) -> TrainState:
        """A seed before its first step; `worlds.obs` is `[E, ...]`."""
        agent = self.agent.init(agent_key, examples)
        best = Best(jnp.float32(-jnp.inf), jax.tree.map(jnp.copy, agent.params))
        row = jax.eval_shape(lambda: self._row_like(worlds.obs))
        if self.learning.replay_place == "host":
            row = row._replace(obs=None)
        often = self.cadence.distributions_every_steps
        states = distributions.blank(worlds.obs, self.masked) if often else None
        replay = ring.empty(row, self.replay_rows, self.learning.priority > 0, self.agent.measures)
        failed = jnp.int32(FINE)
        return TrainState(agent, replay, worlds, best, task, key_data, failed, states)

    def _prepared(self, state: TrainState) -> TrainState:
        """What the random steps are good for: units, and the fixed batch of states."""
        if self.agent.measures:
            state = self._remeasure(state)
        return self._draw_states(state) if state.states is not None else state

    def _draw_states(self, state: TrainState) -> TrainState:
        """With the fixed batch of states, out of the random steps."""
        written, key = self.cadence.warmup_vector_steps, key_of(state, "states", 0)
        states = distributions.draw(state.replay, key, written, self.stack, self.masked)
        return state._replace(states=states)

    def _row_like(self, obs) -> ring.Row:
        heads = None
        if self.agent.mask_prob < 1:
            heads = jnp.zeros((self.envs, self.agent.k), bool)
        zeros, no = jnp.zeros(self.envs), jnp.zeros(self.envs, bool)
        action = self.agent.blank_actions(self.envs)
        allowed = jnp.zeros((self.envs, self.masked), bool) if self.masked else None
        return ring.Row(self.stack.newest(obs), action, zeros, no, no, heads, allowed)

    def _keep_best(self, best: Best, params: Any, fine, score: Score) -> tuple[Best, jax.Array]:
        """`params`, whose `score` that is, where they are the best, and whether they are."""
        better = (score.return_mean > best.score) & fine
        kept = Best(score.return_mean, params)
        return jax.tree.map(lambda new, old: jnp.where(better, new, old), kept, best), better

    # -- all seeds ----------------------------------------------------------------------------

    def _updates(
        self, state: TrainState, written, first, count: int, batches: ring.Transition | None = None
    ) -> tuple[TrainState, dict]:
        """`count` updates from number `first` on; metrics are `[count, S]`. `batches`: what they
        learn from, `[count, S, ...]`, where it was drawn before."""
        numbers = first + jnp.arange(count)
        if self.agent.measures:
            state = over_seeds(self._remeasure)(state)
        together = self.learning.priority == 0 and count * self._batch_bytes() <= _DRAWN_BYTES
        if batches is None and not together:
            learn = over_seeds(self._learn, (0, None, None))

            return loop(lambda state, u: learn(state, written, u), state, numbers)

        # Nothing that is drawn depends on what is learned: all draws at once are one gather, and
        # the replay need not travel through the loop.
        if batches is None:
            batches = self._draws(state, written, numbers)
            if jax.default_backend() != "cpu":
                # Else XLA finds the address of every pixel anew, and for each patch that it is in.
                batches = jax.lax.optimization_barrier(batches)
        learn = over_seeds(self._learn, (0, None, None, 0))
        replay, nothing = state.replay, state.replay._replace(obs=None, facts=None)  # type: ignore[arg-type]

        def update(state, turn):
            return learn(state, written, *turn)

        state, metrics = loop(
            update, state._replace(replay=nothing), (numbers, batches), self.unroll
        )
        replay = state.replay._replace(obs=replay.obs, facts=replay.facts)
        return state._replace(replay=replay), metrics

    def _draws(self, state: TrainState, written, numbers) -> ring.Transition:
        """The batches of these updates, `[count, S, ...]`."""
        each = jax.vmap(self._draw, (None, None, 0))
        return over_seeds(each, (0, None, None), 1)(state, written, numbers)

    def _batch_bytes(self) -> int:
        """Roughly, of all seeds."""
        return 2 * self.seeds * self.learning.batch_size * math.prod(self.agent.obs_shape)

    def distributions(self, state: TrainState, steps: int) -> dict[str, Any]:
        agent = state.agent
        return self._describe(agent.params, agent.prior, state.states, state.key, np.int32(steps))

    def _describe_all(self, params, prior, states, key_data, step):
        def one(params, prior, states, key_data):
            key = stream(jax.random.wrap_key_data(key_data), "states", step)
            return distributions.describe(self.agent, params, prior, states, key, step)

        return over_seeds(one)(params, prior, states, key_data)

    def _copy_target(self, state: TrainState, iteration) -> TrainState:
        """Renew the targets after `iteration` iterations."""
        c = self.cadence
        written = c.warmup_vector_steps + iteration * c.vector_steps - self.rows_behind
        return over_seeds(self._refresh, (0, None, None))(state, written, iteration)

    def _copy(self, state: TrainState, iteration: int) -> TrainState:
        """The same as a program of its own."""
        return state._replace(agent=self._renewed(learning_view(state), np.int32(iteration)))

    def _between_ahead(self, state: Any, fresh: bool) -> None:
        """What is called between blocks; `state`: its shapes."""
        agent = state.agent
        if self.prepares and fresh:
            self._ahead.compile(self._prepare, state)
        if self.cadence.distributions_every_steps:
            given = agent.params, agent.prior, state.states, state.key
            self._ahead.compile(self._describe, *given, np.int32(0))

    def close(self) -> None:
        self._ahead.close()
