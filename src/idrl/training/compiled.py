"""The whole loop on the device: act, step, store and learn as one program over many seeds.

Everything that changes is one pytree, `TrainState`, with a leading axis of seeds. Counters are
the same for all seeds and stay outside the vmapped part, so that writes to the replay keep one
address and no branch is needed; every random key is folded from a seed's own key and a counter,
so a seed draws the same numbers alone or among others.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from idrl import replay as ring
from idrl.agents import Agent, AgentState
from idrl.agents.agent import refresh_target
from idrl.envs.base import Env
from idrl.training.evaluation import Score, play, play_episodes
from idrl.training.rollout import Worlds, advance, begin
from idrl.training.seeding import seed_key, stream, task_of
from idrl.training.spec import Cadence, Evaluation, Training, cadence

_EXAMPLE_STEPS = 64  # random steps whose observations measure the priors' spread


# Where the seeds of a pytree are: first, behind the steps of a stretch, or nowhere.
SEEDS, STEPS_SEEDS, SAME = PartitionSpec("seeds"), PartitionSpec(None, "seeds"), PartitionSpec()


class Best(NamedTuple):
    """The weights of the best evaluation so far."""

    score: jax.Array
    params: Any


class TrainState(NamedTuple):
    agent: AgentState
    replay: ring.Replay
    worlds: Worlds
    best: Best
    task: Any
    key: jax.Array  # as raw data, so that it can be saved like any array


class Episodes(NamedTuple):
    """Completed episodes of one stretch of vector steps: `[steps, S, E]` each."""

    ended: jax.Array
    returns: jax.Array
    lengths: jax.Array
    info: dict[str, jax.Array]


class Program:
    """The compiled functions of one run: `start`, `block`, `copy_target`, `evaluate`."""

    def __init__(
        self, agent: Agent, env: Env, training: Training, evaluation: Evaluation, seeds: int
    ):
        self.agent, self.env, self.envs, self.seeds = agent, env, training.envs, seeds
        self.learning = agent.spec.learning
        self.evaluation = evaluation
        self.mesh = _mesh(seeds)
        self.replay_rows = max(3, self.learning.replay_capacity // self.envs)
        largest = _largest_block(self)
        self.cadence: Cadence = cadence(training, evaluation, self.learning, largest)
        over = functools.partial(_over_devices, self.mesh)
        # What runs once or rarely need not be optimised for seconds: 10 s of compiling become 3.
        quick = {"xla_backend_optimization_level": 1} if jax.default_backend() == "cpu" else None
        self.start = jax.jit(
            over(self._start, (SEEDS,), (SEEDS, STEPS_SEEDS)), compiler_options=quick
        )
        self.block = jax.jit(
            over(self._block, (SEEDS, SAME), (SEEDS, (STEPS_SEEDS, SEEDS))), donate_argnums=0
        )
        self.copy_target = jax.jit(over(self._copy_target, (SEEDS,), SEEDS), donate_argnums=0)
        self.evaluate = jax.jit(
            over(self._evaluate, (SEEDS, SAME), (SEEDS, SEEDS)),
            donate_argnums=0,
            compiler_options=quick,
        )

    # -- one seed -----------------------------------------------------------------------------

    def _act(self, rule, state: TrainState, t, step) -> tuple[TrainState, Any]:
        """One vector step by `rule` (or at random), written to the replay."""
        key = _key(state, "act", t)
        act_key, env_key, mask_key = jax.random.split(key, 3)
        worlds = state.worlds
        told: dict[str, jax.Array] = {}
        if rule is None:
            action = jax.random.randint(act_key, (self.envs,), 0, self.agent.num_actions)
            memory = worlds.memory
        else:
            decision, memory = self.agent.choose(
                rule, state.agent.params, state.agent.prior, worlds.obs, worlds.first,
                worlds.memory, act_key, step,
            )  # fmt: skip
            action = decision.action
            told = _told(decision)
        mask = None
        if self.agent.mask_prob < 1:
            shape = (self.envs, self.agent.k)
            mask = jax.random.bernoulli(mask_key, self.agent.mask_prob, shape)
        after, happened = advance(self.env, state.task, worlds, action, memory, env_key)
        row = ring.Row(worlds.obs, action, happened.reward, happened.terminated, ~worlds.dead, mask)
        episodes = Episodes(
            happened.ended, happened.episode_return, happened.episode_length, happened.info
        )
        state = state._replace(worlds=after, replay=ring.add(state.replay, row, t))
        return state, (episodes, told)

    def _learn(self, state: TrainState, written, update) -> tuple[TrainState, dict]:
        batch = ring.sample(
            state.replay, _key(state, "learn", update), written, self.learning.batch_size,
            self.learning.gamma,
        )  # fmt: skip
        agent, metrics = self.agent.learn(state.agent, batch)
        return state._replace(agent=agent), metrics

    def _init(self, key_data: jax.Array) -> TrainState:
        key = jax.random.wrap_key_data(key_data)
        agent_key, env_key, example_key = jax.random.split(stream(key, "init"), 3)
        task = task_of(self.env, key)
        worlds = begin(self.env, task, env_key, self.envs)
        examples = self._examples(task, example_key)
        agent = self.agent.init(agent_key, examples)
        row = jax.eval_shape(lambda: self._row_like(worlds))
        best = Best(jnp.float32(-jnp.inf), jax.tree.map(jnp.copy, agent.params))
        replay = ring.empty(row, self.replay_rows)
        return TrainState(agent, replay, worlds, best, task, key_data)

    def _row_like(self, worlds: Worlds) -> ring.Row:
        mask = None
        if self.agent.mask_prob < 1:
            mask = jnp.zeros((self.envs, self.agent.k), bool)
        action = jnp.zeros(self.envs, jnp.int32)
        return ring.Row(worlds.obs, action, worlds.episode_return, worlds.dead, worlds.dead, mask)

    def _examples(self, task, key) -> jax.Array:
        """Observations of random play, `[64, ...]`."""
        begin_key, key = jax.random.split(key)

        def one(worlds, t):
            act_key, env_key = jax.random.split(jax.random.fold_in(key, t))
            action = jax.random.randint(act_key, (1,), 0, self.agent.num_actions)
            after, _ = advance(self.env, task, worlds, action, worlds.memory, env_key)
            return after, worlds.obs[0]

        worlds = begin(self.env, task, begin_key, 1)
        return jax.lax.scan(one, worlds, jnp.arange(_EXAMPLE_STEPS))[1]

    # -- all seeds ----------------------------------------------------------------------------

    def _start(self, key_data: jax.Array) -> tuple[TrainState, Episodes]:
        """Fresh seeds, after their random steps."""
        state = jax.vmap(self._init)(key_data)
        act = jax.vmap(functools.partial(self._act, None), (0, None, None))

        def one(state, t):
            state, (episodes, _) = act(state, t, t * self.envs)
            return state, episodes

        return jax.lax.scan(one, state, jnp.arange(self.cadence.warmup_vector_steps))

    def _block(self, state: TrainState, start) -> tuple[TrainState, tuple[Episodes, dict]]:
        """`cadence.block` iterations from iteration `start` on."""
        c = self.cadence
        act = jax.vmap(functools.partial(self._act, self.agent.spec.explore), (0, None, None))
        learn = jax.vmap(self._learn, (0, None, None))

        def vector_step(state, t):
            return act(state, t, t * self.envs)

        def update(carry, u):
            state, written = carry
            state, metrics = learn(state, written, u)
            return (state, written), metrics

        def iteration(state, i):
            t0 = c.warmup_vector_steps + i * c.vector_steps
            state, seen = _loop(vector_step, state, t0 + jnp.arange(c.vector_steps))
            written = t0 + c.vector_steps
            updates = i * c.updates + jnp.arange(c.updates)
            (state, _), metrics = _loop(update, (state, written), updates)
            return state, (seen, metrics)

        def cycle(state, first):
            state, out = jax.lax.scan(iteration, state, first + jnp.arange(inner))
            if inner == c.target_every:
                state = state._replace(agent=refresh_target(state.agent))
            return state, out

        inner = min(c.block, c.target_every)
        state, ((episodes, told), metrics) = _loop(
            cycle, state, start + inner * jnp.arange(c.block // inner)
        )
        flat = functools.partial(_flatten, leaf_axes=2)  # [vector steps, S, E]
        told = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]).mean(0), told)
        metrics = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]).mean(0), metrics)
        return state, (jax.tree.map(flat, episodes), metrics | told)

    def _copy_target(self, state: TrainState) -> TrainState:
        return state._replace(agent=refresh_target(state.agent))

    def _evaluate(self, state: TrainState, number) -> tuple[TrainState, tuple[Score, jax.Array]]:
        """Score every seed and keep its weights where they are its best so far."""

        def one(state: TrainState):
            score = play(
                self.agent, self.env, state.agent.params, state.agent.prior, state.task,
                _key(state, "evaluate", number), self.evaluation.steps, self.evaluation.envs,
            )  # fmt: skip
            better = score.return_mean > state.best.score
            kept = Best(score.return_mean, state.agent.params)
            best = jax.tree.map(lambda new, old: jnp.where(better, new, old), kept, state.best)
            return state._replace(best=best), (score, better)

        return jax.vmap(one)(state)

    def score_best(self, state: TrainState, episodes: int, limit_steps: int) -> Score:
        """The best weights of every seed over whole episodes."""

        def one(state: TrainState) -> Score:
            return play_episodes(
                self.agent, self.env, state.best.params, state.agent.prior, state.task,
                _key(state, "score", 0), episodes, limit_steps,
            )  # fmt: skip

        return jax.jit(_over_devices(self.mesh, jax.vmap(one), (SEEDS,), SEEDS))(state)

    def seed_keys(self, seed: int) -> jax.Array:
        """The keys of seeds `seed`, `seed + 1`, …, laid over the devices."""
        numbers = jnp.arange(seed, seed + self.seeds, dtype=jnp.uint32)
        return self.place(jax.vmap(lambda n: jax.random.key_data(seed_key(n)))(numbers))

    def place(self, tree: Any) -> Any:
        """Lay the seeds of a pytree over the devices, as the programs expect them."""
        if self.mesh is None:
            return jax.tree.map(jnp.asarray, tree)
        return jax.device_put(tree, NamedSharding(self.mesh, SEEDS))


def _key(state: TrainState, name: str, number) -> jax.Array:
    return stream(jax.random.wrap_key_data(state.key), name, number)


def _told(decision) -> dict[str, jax.Array]:
    """What the acting rule saw, as one number a seed: the ranges people watch."""
    return {
        "q_max": decision.mu.max(-1).mean(),
        "sigma_min": decision.sigma.min(-1).mean(),
        "sigma_max": decision.sigma.max(-1).mean(),
        "rho2_min": decision.rho2.min(-1).mean(),
        "rho2_max": decision.rho2.max(-1).mean(),
        "not_greedy": (decision.mu.argmax(-1) != decision.action).mean(dtype=jnp.float32),
    }


def _loop(body, carry, xs):
    """`lax.scan`, but a single turn is written out: XLA fuses across it."""
    if xs.shape[0] > 1:
        return jax.lax.scan(body, carry, xs)
    carry, out = body(carry, xs[0])
    return carry, jax.tree.map(lambda x: x[None], out)


def _flatten(x: jax.Array, leaf_axes: int) -> jax.Array:
    return x.reshape(-1, *x.shape[x.ndim - leaf_axes :])


def _mesh(seeds: int) -> Mesh | None:
    """As many devices as share the seeds evenly; on a CPU that is one per core."""
    devices = jax.devices()
    count = max(n for n in range(1, len(devices) + 1) if seeds % n == 0)
    return Mesh(np.array(devices[:count]), ("seeds",)) if count > 1 else None


def _over_devices(mesh: Mesh | None, function, in_specs, out_specs):
    """Seeds never talk to each other, so each device runs its share on its own."""
    if mesh is None:
        return function
    return jax.shard_map(
        function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
    )


def _largest_block(program: Program) -> int:
    """Iterations of about a second, from the operations that one update takes."""
    agent, size = program.agent, program.learning.batch_size
    obs: Any = jax.ShapeDtypeStruct((size, *agent.obs_shape), jnp.float32)
    number: Any = jax.ShapeDtypeStruct((size,), jnp.float32)
    whole: Any = jax.ShapeDtypeStruct((size,), jnp.int32)
    state = jax.eval_shape(agent.init, jax.random.key(0), obs)
    batch = ring.Transition(obs, whole, number, number, obs)
    cost = jax.jit(agent.learn).lower(state, batch).cost_analysis() or {}
    work = max(float(cost.get("flops", 0.0)), 1e5) * program.seeds
    rate = 2e10 if jax.default_backend() == "cpu" else 5e12  # operations a second, roughly
    return int(np.clip(rate / work, 1, 8192))
