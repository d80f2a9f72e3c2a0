"""What both kinds of programs do alike, for one seed and over all of them: choose, learn, keep
the best weights, and lay seeds over devices.

Counters are the same for all seeds and stay outside the vmapped part, so that writes to the replay
keep one address and no branch is needed; every random key is folded from a seed's own key and a
counter, so a seed draws the same numbers alone or among others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from idrl import replay as ring
from idrl.agents import Agent
from idrl.agents.agent import refresh_target
from idrl.training.evaluation import Score
from idrl.training.health import FINE, noted
from idrl.training.program import Best, TrainState
from idrl.training.seeding import seed_key, stream
from idrl.training.spec import Cadence, Evaluation, Training, cadence

EXAMPLE_STEPS = 64  # random steps whose observations measure the priors' spread

# Where the seeds of a pytree are: first, behind the steps of a stretch, or nowhere.
SEEDS, STEPS_SEEDS, SAME = PartitionSpec("seeds"), PartitionSpec(None, "seeds"), PartitionSpec()


class Choice(NamedTuple):
    """What E environments of a seed are told to do, `[E, ...]` each."""

    action: jax.Array
    memory: jax.Array
    heads: jax.Array | None  # [E, K] which heads may learn from it
    told: dict[str, jax.Array]  # what the rule saw, one number each
    env_key: jax.Array  # for the environments' own chance


class Learner:
    """An agent with its replay, for many seeds."""

    def __init__(
        self, agent: Agent, training: Training, evaluation: Evaluation, seeds: int,
        largest_block: int | None = None, debug: bool = False, block: int | None = None,
    ):  # fmt: skip
        """`largest_block`: iterations of about a second, or None to go by the agent's updates;
        `block`: that of the run so far, where one goes on; `debug`: see `Program`."""
        self.debug = debug
        self.agent, self.envs, self.seeds = agent, training.envs, seeds
        self.learning = agent.spec.learning
        self.training, self.evaluation = training, evaluation
        self.mesh = _mesh(seeds)
        self.replay_rows = max(3, self.learning.replay_capacity // self.envs)
        self.largest = largest_block or _largest_block(agent, seeds)
        self.cadence: Cadence = cadence(training, evaluation, self.learning, self.largest, block)

    # -- one seed -----------------------------------------------------------------------------

    def _choose(self, rule, state: TrainState, obs, first, memory, t, step, allowed=None) -> Choice:
        """Actions by `rule`, or at random where it is None, in vector step `t`."""
        act_key, env_key, mask_key = jax.random.split(key_of(state, "act", t), 3)
        told: dict[str, jax.Array] = {}
        if rule is None:
            action = self._random(act_key, obs.shape[0], allowed)
        else:
            decision, memory = self.agent.choose(
                rule, state.agent.params, state.agent.prior, obs, first, memory, act_key,
                step, allowed,
            )  # fmt: skip
            action = decision.action
            told = _told(decision)
        heads = None
        if self.agent.mask_prob < 1:
            shape = (self.envs, self.agent.k)
            heads = jax.random.bernoulli(mask_key, self.agent.mask_prob, shape)
        return Choice(action, memory, heads, told, env_key)

    def _random(self, key, envs: int, allowed=None) -> jax.Array:
        if allowed is None:
            return jax.random.randint(key, (envs,), 0, self.agent.num_actions)
        return jax.random.categorical(key, jnp.where(allowed, 0.0, -jnp.inf)).astype(jnp.int32)

    def _learn(self, state: TrainState, written, update) -> tuple[TrainState, dict]:
        batch = ring.sample(
            state.replay, key_of(state, "learn", update), written, self.learning.batch_size,
            self.learning.gamma,
        )  # fmt: skip
        agent, metrics = self.agent.learn(state.agent, batch)
        return noted(state._replace(agent=agent), metrics, update), metrics

    def _fresh(self, key_data, agent_key, examples, task, worlds, obs) -> TrainState:
        """A seed before its first step; `obs` `[E, ...]` is shaped like its observations."""
        agent = self.agent.init(agent_key, examples)
        best = Best(jnp.float32(-jnp.inf), jax.tree.map(jnp.copy, agent.params))
        row = jax.eval_shape(self._row_like, obs)
        replay, failed = ring.empty(row, self.replay_rows), jnp.int32(FINE)
        return TrainState(agent, replay, worlds, best, task, key_data, failed)

    def _row_like(self, obs) -> ring.Row:
        heads = None
        if self.agent.mask_prob < 1:
            heads = jnp.zeros((self.envs, self.agent.k), bool)
        zeros, no = jnp.zeros(self.envs), jnp.zeros(self.envs, bool)
        return ring.Row(obs, zeros.astype(jnp.int32), zeros, no, no, heads)

    def _keep_best(self, state: TrainState, score: Score) -> tuple[TrainState, jax.Array]:
        """With the weights of `score` as the best where they are, and whether they are."""
        better = (score.return_mean > state.best.score) & (state.failed < 0)
        kept = Best(score.return_mean, state.agent.params)
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), kept, state.best)
        return state._replace(best=best), better

    # -- all seeds ----------------------------------------------------------------------------

    def _updates(self, state: TrainState, written, first) -> tuple[TrainState, dict]:
        """The updates of one iteration from number `first` on; metrics are `[updates, S]`."""
        learn = jax.vmap(self._learn, (0, None, None))

        def update(carry, u):
            state, written = carry
            state, metrics = learn(state, written, u)
            return (state, written), metrics

        numbers = first + jnp.arange(self.cadence.updates)
        (state, _), metrics = loop(update, (state, written), numbers)
        return state, metrics

    def _copy_target(self, state: TrainState) -> TrainState:
        return state._replace(agent=refresh_target(state.agent))

    def _over_devices(self, function, in_specs, out_specs):
        """Seeds never talk to each other, so each device runs its share on its own."""
        if self.mesh is None:
            return function
        return jax.shard_map(
            function, mesh=self.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
        )

    def seed_keys(self, seed: int) -> jax.Array:
        """The keys of seeds `seed`, `seed + 1`, …, laid over the devices."""
        numbers = jnp.arange(seed, seed + self.seeds, dtype=jnp.uint32)
        return self._spread(jax.vmap(lambda n: jax.random.key_data(seed_key(n)))(numbers))

    def _spread(self, tree: Any) -> Any:
        """Lay the seeds of a pytree over the devices, as the programs expect them."""
        if self.mesh is None:
            return jax.tree.map(jnp.asarray, tree)
        return jax.device_put(tree, NamedSharding(self.mesh, SEEDS))


def quick() -> dict[str, int] | None:
    """Compiler options of what runs once or rarely: 10 s of compiling become 3."""
    return {"xla_backend_optimization_level": 1} if jax.default_backend() == "cpu" else None


def key_of(state: TrainState, name: str, number) -> jax.Array:
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


def loop(body, carry, xs):
    """`lax.scan`, but a single turn is written out: XLA fuses across it."""
    if xs.shape[0] > 1:
        return jax.lax.scan(body, carry, xs)
    carry, out = body(carry, xs[0])
    return carry, jax.tree.map(lambda x: x[None], out)


def _mesh(seeds: int) -> Mesh | None:
    """As many devices as share the seeds evenly; on a CPU that is one per core."""
    devices = jax.devices()
    count = max(n for n in range(1, len(devices) + 1) if seeds % n == 0)
    return Mesh(np.array(devices[:count]), ("seeds",)) if count > 1 else None


def _largest_block(agent: Agent, seeds: int) -> int:
    """Iterations of about a second, from the operations that one update takes."""
    size = agent.spec.learning.batch_size
    obs: Any = jax.ShapeDtypeStruct((size, *agent.obs_shape), jnp.float32)
    number: Any = jax.ShapeDtypeStruct((size,), jnp.float32)
    whole: Any = jax.ShapeDtypeStruct((size,), jnp.int32)
    state = jax.eval_shape(agent.init, jax.random.key(0), obs)
    batch = ring.Transition(obs, whole, number, number, obs)
    cost = jax.jit(agent.learn).lower(state, batch).cost_analysis() or {}
    work = max(float(cost.get("flops", 0.0)), 1e5) * seeds
    rate = 2e10 if jax.default_backend() == "cpu" else 5e12  # operations a second, roughly
    return int(np.clip(rate / work, 1, 8192))
