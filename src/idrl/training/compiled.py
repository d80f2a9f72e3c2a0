"""The whole loop on the device: act, step, store and learn as one program over many seeds.

Everything that changes is one pytree, `TrainState`, with a leading axis of seeds; a stretch of
training is one call of a jitted function of it.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from idrl import replay as ring
from idrl.agents import Agent
from idrl.envs.base import Env
from idrl.training.evaluation import Score, play, play_episodes
from idrl.training.learner import (
    EXAMPLE_STEPS,
    SAME,
    SEEDS,
    STEPS_SEEDS,
    Learner,
    key_of,
    loop,
    quick,
)
from idrl.training.program import Episodes, TrainState
from idrl.training.rollout import advance, begin
from idrl.training.seeding import stream, task_of
from idrl.training.spec import Evaluation, Training


class Compiled(Learner):
    """The compiled functions of one run: `start`, `block`, `copy_target`, `evaluate`."""

    def __init__(
        self, agent: Agent, env: Env, training: Training, evaluation: Evaluation, seeds: int
    ):
        super().__init__(agent, training, evaluation, seeds)
        self.env = env
        over = self._over_devices
        self.start = jax.jit(
            over(self._start, (SEEDS,), (SEEDS, STEPS_SEEDS)), compiler_options=quick()
        )
        self.block = jax.jit(
            over(self._block, (SEEDS, SAME), (SEEDS, (STEPS_SEEDS, SEEDS))), donate_argnums=0
        )
        self.copy_target = jax.jit(over(self._copy_target, (SEEDS, SAME), SEEDS), donate_argnums=0)
        self.evaluate = jax.jit(
            over(self._evaluate, (SEEDS, SAME), (SEEDS, SEEDS)),
            donate_argnums=0,
            compiler_options=quick(),
        )

    # -- one seed -----------------------------------------------------------------------------

    def _act(self, rule, state: TrainState, t, step) -> tuple[TrainState, Any]:
        """Vector step `t` by `rule` (or at random), written to the replay."""
        worlds = state.worlds
        choice = self._choose(rule, state, worlds.obs, worlds.first, worlds.memory, t, step)
        after, happened = advance(
            self.env, state.task, worlds, choice.action, choice.memory, choice.env_key
        )
        row = ring.Row(
            worlds.obs, choice.action, happened.reward, happened.terminated, ~worlds.dead,
            choice.heads,
        )  # fmt: skip
        episodes = Episodes(
            happened.ended, happened.episode_return, happened.episode_length, happened.info
        )
        state = state._replace(
            worlds=after, replay=ring.add(state.replay, row, t, self.learning.n_step)
        )
        return state, (episodes, choice.told)

    def _init(self, key_data: jax.Array) -> TrainState:
        key = jax.random.wrap_key_data(key_data)
        agent_key, env_key, example_key = jax.random.split(stream(key, "init"), 3)
        task = task_of(self.env, key)
        worlds = begin(self.env, task, env_key, self.envs)
        examples = self._examples(task, example_key)
        return self._fresh(key_data, agent_key, examples, task, worlds, worlds.obs)

    def _examples(self, task, key) -> jax.Array:
        """Observations of random play, `[64, ...]`."""
        begin_key, key = jax.random.split(key)

        def one(worlds, t):
            act_key, env_key = jax.random.split(jax.random.fold_in(key, t))
            action = self._random(act_key, 1)
            after, _ = advance(self.env, task, worlds, action, worlds.memory, env_key)
            return after, worlds.obs[0]

        worlds = begin(self.env, task, begin_key, 1)
        return jax.lax.scan(one, worlds, jnp.arange(EXAMPLE_STEPS))[1]

    # -- all seeds ----------------------------------------------------------------------------

    def _start(self, key_data: jax.Array) -> tuple[TrainState, Episodes]:
        """Fresh seeds, after their random steps."""
        state = jax.vmap(self._init)(key_data)
        act = jax.vmap(functools.partial(self._act, None), (0, None, None))

        def one(state, t):
            state, (episodes, _) = act(state, t, t * self.envs)
            return state, episodes

        state, episodes = jax.lax.scan(one, state, jnp.arange(self.cadence.warmup_vector_steps))
        return jax.vmap(self._draw_states)(state), episodes

    def _block(self, state: TrainState, start) -> tuple[TrainState, tuple[Episodes, dict]]:
        """`cadence.block` iterations from iteration `start` on."""
        c = self.cadence
        act = jax.vmap(functools.partial(self._act, self.agent.spec.explore), (0, None, None))

        def vector_step(state, t):
            return act(state, t, t * self.envs)

        def iteration(state, i):
            t0 = c.warmup_vector_steps + i * c.vector_steps
            state, seen = loop(vector_step, state, t0 + jnp.arange(c.vector_steps))
            state, metrics = self._updates(state, t0 + c.vector_steps, i * c.updates)
            return state, (seen, metrics)

        def cycle(state, first):
            state, out = jax.lax.scan(iteration, state, first + jnp.arange(inner))
            if inner == c.target_every:
                state = self._copy_target(state, first + inner)
            return state, out

        inner = min(c.block, c.target_every)
        state, ((episodes, told), metrics) = loop(
            cycle, state, start + inner * jnp.arange(c.block // inner)
        )
        flat = functools.partial(_flatten, leaf_axes=2)  # [vector steps, S, E]
        told = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]).mean(0), told)
        metrics = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]).mean(0), metrics)
        return state, (jax.tree.map(flat, episodes), metrics | told)

    def _evaluate(self, state: TrainState, number) -> tuple[TrainState, tuple[Score, jax.Array]]:
        """Score every seed and keep its weights where they are its best so far."""

        def one(state: TrainState):
            score = play(
                self.agent, self.env, state.agent.params, state.agent.prior, state.task,
                key_of(state, "evaluate", number), self.evaluation.steps, self.evaluation.envs,
            )  # fmt: skip
            state, better = self._keep_best(state, score)
            return state, (score, better)

        return jax.vmap(one)(state)

    def score_best(self, state: TrainState, episodes: int, limit_steps: int) -> Score:
        """The best weights of every seed over whole episodes."""

        def one(state: TrainState) -> Score:
            return play_episodes(
                self.agent, self.env, state.best.params, state.agent.prior, state.task,
                key_of(state, "score", 0), episodes, limit_steps,
            )  # fmt: skip

        return jax.jit(self._over_devices(jax.vmap(one), (SEEDS,), SEEDS))(state)

    def like(self) -> TrainState:
        return jax.eval_shape(self.start, self.seed_keys(0))[0]

    def place(self, tree: Any) -> Any:
        return self._spread(tree)

    def close(self) -> None:
        pass


def _flatten(x: jax.Array, leaf_axes: int) -> jax.Array:
    return x.reshape(-1, *x.shape[x.ndim - leaf_axes :])
