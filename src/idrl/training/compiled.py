"""The whole loop on the device: act, step, store and learn as one program over many seeds.

Everything that changes is one pytree, `TrainState`, with a leading axis of seeds; a stretch of
training is one call of a jitted function of it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from idrl.agents import Agent
from idrl.envs.base import Env, mask_of
from idrl.replay import ring as ring
from idrl.training.ahead import Early, quick
from idrl.training.batching import loop, over_seeds
from idrl.training.doing import RANDOM, Between, Doing, Tell, nothing
from idrl.training.evaluation import (
    Played,
    Score,
    ends_of,
    fresh,
    play,
    play_episodes,
    score_of,
)
from idrl.training.health import hold
from idrl.training.layout import SAME, SEEDS, STEPS_SEEDS
from idrl.training.learner import EXAMPLE_STEPS, Learner
from idrl.training.locating import first_bad_operation
from idrl.training.program import Episodes, TrainState
from idrl.training.rollout import Worlds, advance, allowed, begin
from idrl.training.seeding import key_of, stream, task_of
from idrl.training.spec import Evaluation, Stretches, Training, due


class Compiled(Learner):
    """The compiled functions of one run: `start`, `block`, `evaluate`."""

    def __init__(
        self, agent: Agent, env: Env, training: Training, evaluation: Evaluation, seeds: int,
        **how: Any,
    ):  # fmt: skip
        masked = mask_of(env) is not None
        super().__init__(agent, training, evaluation, seeds, masked=masked, **how)
        self.env = env
        self.warmup = Stretches(self.cadence.warmup_vector_steps, self.largest)
        window = math.ceil(evaluation.steps / evaluation.envs)
        # A vector step of few environments costs less than an update, one of many more.
        batch = self.learning.batch_size
        self.window = Stretches(window, self.largest * batch // max(batch, evaluation.envs))
        over, used = self._over_devices, () if self.debug else (0,)
        specs = (SEEDS, STEPS_SEEDS)
        self._open = Early(over(self._start, (SEEDS,), specs), compiler_options=quick())
        self._warm = Early(
            over(self._random_steps, (SEEDS, SAME), specs),
            donate_argnums=used, compiler_options=quick(),
        )  # fmt: skip
        self._run = functools.cache(self._running)  # by its iterations
        self._enter = Early(over(self._enter_all, (SEEDS, SAME), SEEDS), compiler_options=quick())
        self._play = Early(
            over(self._stretch, (SEEDS, SEEDS, SAME, SAME), specs),
            donate_argnums=1, compiler_options=quick(),
        )  # fmt: skip
        self._judge = Early(
            over(self._score, (SEEDS, STEPS_SEEDS), (SEEDS, SEEDS)),
            donate_argnums=used, compiler_options=quick(),
        )  # fmt: skip

    # -- one seed -----------------------------------------------------------------------------

    def _act(self, rule, state: TrainState, t, step) -> tuple[TrainState, Any]:
        """Vector step `t` by `rule` (or at random), written to the replay."""
        worlds = state.worlds
        mask = allowed(self.env, state.task, worlds)
        choice = self._choose(rule, state, worlds.obs, worlds.first, worlds.memory, t, step, mask)
        after, happened = advance(
            self.env, state.task, worlds, choice.action, choice.memory, choice.env_key
        )
        row = ring.Row(
            worlds.obs, choice.action, happened.reward, happened.terminated, ~worlds.dead,
            choice.heads, mask,
        )  # fmt: skip
        episodes = Episodes(
            happened.ended, happened.episode_return, happened.episode_length, happened.info
        )
        state = state._replace(worlds=after, replay=self._store(state.replay, row, t))
        return state, (episodes, choice.diagnostics)

    def _init(self, key_data: jax.Array) -> TrainState:
        key = jax.random.wrap_key_data(key_data)
        agent_key, env_key, example_key = jax.random.split(stream(key, "init"), 3)
        task = task_of(self.env, key)
        worlds = begin(self.env, task, env_key, self.agent.blank_memory(self.envs))
        examples = self._examples(task, example_key)
        return self._fresh(key_data, agent_key, examples, task, worlds)

    def _examples(self, task, key) -> jax.Array:
        """Observations of random play, `[64, ...]`."""
        begin_key, key = jax.random.split(key)

        def one(worlds, t):
            act_key, env_key = jax.random.split(jax.random.fold_in(key, t))
            action = self.agent.random_actions(act_key, 1, allowed(self.env, task, worlds))
            after, _ = advance(self.env, task, worlds, action, worlds.memory, env_key)
            return after, worlds.obs[0]

        worlds = begin(self.env, task, begin_key, self.agent.blank_memory(1))
        return jax.lax.scan(one, worlds, jnp.arange(EXAMPLE_STEPS))[1]

    # -- all seeds ----------------------------------------------------------------------------

    def ahead(self, fresh: bool, iteration: int = 0) -> None:
        """In the order in which a run needs them, but the block, which takes longest, early."""
        c, number, compile = self.cadence, np.int32(0), self._ahead.compile
        if iteration >= c.total:
            return
        compile(self._keys, self._seed_numbers(0))
        if fresh:
            state = self._placed(compile(self._open, self._key_shapes())[0])
        else:
            state = self._placed(self.like())
        compile(self._run(c.end(iteration) - iteration), state, number)
        for times in self.warmup.pieces()[1:2] if fresh else ():
            compile(self._warm, state, times)
        self._between_ahead(state, fresh)
        if c.eval_every_steps < c.steps_at(c.total):  # else the first is at the end
            worlds = self._placed(compile(self._enter, state, number))
            _, ends = compile(self._play, state, worlds, number, self.window.pieces()[0])
            total = self.window.total
            ends = jax.tree.map(lambda x: x.update(shape=(total, *x.shape[1:])), ends)
            compile(self._judge, state, ends)
        self._ahead.that_is_all()

    def start(self, keys: jax.Array, between: Between = nothing) -> tuple[TrainState, Episodes]:
        between()
        state, episodes = self._open(keys)
        parts = [jax.device_get(episodes)]
        for times in self.warmup.pieces()[1:]:
            between(Doing(RANDOM, int(times[0]) * self.envs, self.cadence.warmup_steps))
            state, episodes = self._warm(state, times)
            parts.append(jax.device_get(episodes))
        state = self._prepare(state)
        return state, jax.tree.map(lambda *x: np.concatenate(x), *parts)

    def _start(self, key_data: jax.Array) -> tuple[TrainState, Episodes]:
        """Fresh seeds and the first of their random steps. (By `_warm` these would differ in their
        last bits: here XLA knows the environment's constants.)"""
        return self._random_steps(over_seeds(self._init)(key_data), jnp.arange(self.warmup.length))

    def _acting(self, rule):
        """Not `over_seeds`: a ring that gives up its axis of seeds to be written to is copied."""
        return jax.vmap(functools.partial(self._act, rule), (0, None, None))

    def _random_steps(self, state: TrainState, times) -> tuple[TrainState, Episodes]:
        act = self._acting(None)

        def one(state, t):
            state, (episodes, _) = act(state, t, t * self.envs)
            return state, episodes

        return jax.lax.scan(one, state, times)

    def bring(self, state: TrainState, iteration: int, between: Between = nothing) -> TrainState:
        return state  # which is all there is

    def block(
        self, state: TrainState, start: Any, tell: Tell = nothing
    ) -> tuple[TrainState, tuple[Episodes, dict[str, Any]]]:
        c = self.cadence
        end = c.end(int(start))
        state, out = self._run(end - int(start))(state, start)
        if c.block < c.target_every and due(int(start), end, c.target_every):
            state = self._copy(state, end)
        return state, out

    def _running(self, count: int):
        """The program of a block. The short one that ends a longer run is run once."""
        c = self.cadence
        once = count < c.block and c.total > c.block
        specs = (SEEDS, SAME), (SEEDS, (STEPS_SEEDS, SEEDS))
        return Early(
            self._over_devices(functools.partial(self._block, count), *specs),
            donate_argnums=() if self.debug else 0, compiler_options=quick() if once else None,
        )  # fmt: skip

    def _block(
        self, count: int, state: TrainState, start
    ) -> tuple[TrainState, tuple[Episodes, dict]]:
        """`count` iterations from iteration `start` on, where a whole block may begin."""
        c = self.cadence

        def cycle(state, first):
            state, out = jax.lax.scan(self._iteration, state, first + jnp.arange(inner))
            if inner == c.target_every:
                state = self._copy_target(state, first + inner)
            return state, out

        before, inner = state.agent.params, min(count, c.target_every)
        cycles, rest = divmod(count, inner)
        state, out = loop(cycle, state, start + inner * jnp.arange(cycles))
        parts = [out]
        if rest:  # of a short block
            state, out = loop(self._iteration, state, start + jnp.arange(count - rest, count))
            parts.append(out)
        state = hold(state, before)
        episodes, told = zip(*parts, strict=True)
        return state, (_joined(episodes, 2), _apart(_joined(told, 2)))  # [vector steps, S, E]

    def _iteration(self, state: TrainState, i) -> tuple[TrainState, Any]:
        c = self.cadence
        act = self._acting(self.agent.spec.explore)

        def vector_step(state, t):
            return act(state, t, t * self.envs)

        t0 = c.warmup_vector_steps + i * c.vector_steps
        state, (episodes, diagnostics) = loop(vector_step, state, t0 + jnp.arange(c.vector_steps))
        state, metrics = self._updates(state, t0 + c.vector_steps, i * c.updates, c.updates)
        return state, (episodes, _together(metrics | diagnostics))

    def evaluate(
        self, state: TrainState, number: Any, between: Between = nothing
    ) -> tuple[TrainState, tuple[Score, Any]]:
        between()
        worlds, parts = self._enter(state, number), []
        for times in self.window.pieces():
            between()
            worlds, ends = self._play(state, worlds, number, times)
            parts.append(jax.device_get(ends))
        return self._judge(state, jax.tree.map(lambda *x: np.concatenate(x), *parts))

    def _enter_all(self, state: TrainState, number) -> Worlds:
        def one(state: TrainState) -> Worlds:
            key = key_of(state, "evaluate", number)
            memory = self.agent.blank_memory(self.evaluation.envs)
            return fresh(self.env, state.task, key, memory)

        return over_seeds(one)(state)

    def _stretch(self, state: TrainState, worlds: Worlds, number, times) -> tuple[Worlds, Played]:
        """Part of an evaluation, with the ends of episodes as `[steps, S, E]`."""

        def one(state: TrainState, worlds: Worlds):
            return play(
                self.agent, self.acting, self.env, state.agent.params, state.agent.prior,
                state.task, key_of(state, "evaluate", number), worlds, times,
            )  # fmt: skip

        worlds, seen = over_seeds(one, out_axes=(0, 1))(state, worlds)
        return worlds, ends_of(seen)

    def _score(self, state: TrainState, ends: Played) -> tuple[TrainState, tuple[Score, Any]]:
        score = jax.vmap(score_of, 1)(ends)
        given = state.best, state.agent.params, state.failed < 0, score
        best, better = over_seeds(self._keep_best)(*given)
        return state._replace(best=best), (score, better)

    def score_best(self, state: TrainState, episodes: int, limit_steps: int) -> Score:
        """The best weights of every seed over whole episodes."""

        def one(state: TrainState) -> Score:
            return play_episodes(
                self.agent, self.acting, self.env, state.best.params, state.agent.prior, state.task,
                key_of(state, "score", 0), episodes, limit_steps,
            )  # fmt: skip

        return jax.jit(self._over_devices(over_seeds(one), (SEEDS,), SEEDS))(state)

    def score_window(self, state: TrainState, steps: int) -> Score:
        """The same over the episodes that so many steps complete."""
        envs = self.evaluation.envs
        times = jnp.arange(-(-steps // envs))

        def one(state: TrainState) -> Score:
            key = key_of(state, "score", 0)
            worlds = fresh(self.env, state.task, key, self.agent.blank_memory(envs))
            _, seen = play(
                self.agent, self.acting, self.env, state.best.params, state.agent.prior,
                state.task, key, worlds, times,
            )  # fmt: skip
            return score_of(ends_of(seen))

        return jax.jit(self._over_devices(over_seeds(one), (SEEDS,), SEEDS))(state)

    def like(self) -> TrainState:
        return jax.eval_shape(self._open.jitted, self._key_shapes())[0]

    def place(self, tree: Any) -> Any:
        return self._spread(tree)

    def locate(self, state: TrainState, start: Any, index: int) -> str:
        c = self.cadence
        one = jax.tree.map(lambda x: np.asarray(x)[index : index + 1], state)
        iteration = jax.jit(self._iteration)
        for i in range(int(start), c.end(int(start))):
            after, _ = iteration(one, np.int32(i))
            if np.asarray(after.failed)[0] >= 0:
                return first_bad_operation(self._iteration, one, np.int32(i))
            if c.block >= c.target_every and (i + 1) % c.target_every == 0:
                after = self._copy_target(after, np.int32(i + 1))
            one = after
        return ""


def _together(numbers: dict[str, jax.Array]) -> dict[tuple[str, ...], jax.Array]:
    """The means of `[times, S]` each, side by side under all their names: of a loop's outputs every
    array is a kernel of its own in every turn."""
    means = [x.mean(0) for x in numbers.values()]
    return {tuple(numbers): jnp.stack(means, -1)[None]}


def _apart(numbers: dict[tuple[str, ...], jax.Array]) -> dict[str, jax.Array]:
    """Their means over all turns, `[S]` each by its name."""
    ((names, values),) = numbers.items()
    return dict(zip(names, jnp.moveaxis(values.mean(0), -1, 0), strict=True))


def _joined(parts: Sequence[Any], leaf_axes: int) -> Any:
    """One after the other, their loops' axes flattened."""

    def join(*leaves: jax.Array) -> jax.Array:
        return jnp.concatenate([x.reshape(-1, *x.shape[x.ndim - leaf_axes :]) for x in leaves])

    return jax.tree.map(join, *parts)
