"""Environments on the host, agent and replay on the device, for many seeds at once.

In vector step t the device is given what the environments showed, writes the row of step t-1 to the
replay and chooses actions; the updates due at t are queued behind that, by a thread of its own
where queueing takes long (hundreds of kernels on a GPU). While the device works on them the host
steps the environments. So the updates of t see rows before t, and the actions of t+1 come from the
weights after the updates of t, whatever takes how long: there is nothing to race.
"""

from __future__ import annotations

import functools
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from idrl.agents import Agent
from idrl.envs.host import HostEnv, Vector
from idrl.envs.processes import how_many, make_vector
from idrl.replay import ring
from idrl.training.ahead import Early, quick
from idrl.training.batching import over_seeds
from idrl.training.doing import LEARNING, RANDOM, Between, Doing, Tell, nothing
from idrl.training.evaluation import Score
from idrl.training.health import hold
from idrl.training.hosted import fleet as fleets
from idrl.training.hosted.beside import BesideTraining
from idrl.training.hosted.compiling import compile_ahead
from idrl.training.hosted.env_state import HostEnvState, Shown, Waiting
from idrl.training.hosted.evaluation import HostEvaluator
from idrl.training.hosted.examples import random_examples
from idrl.training.hosted.fleet import Ends, Fleet, HostRollout, by_seed
from idrl.training.hosted.host_replay import HostReplay, apart, whole
from idrl.training.hosted.locating import locate
from idrl.training.hosted.parcel import Parcel
from idrl.training.hosted.shapes import state_like, sums_like
from idrl.training.hosted.tape import FrameTape
from idrl.training.layout import SAME, SEEDS, STEPS_SEEDS
from idrl.training.learner import Learner
from idrl.training.program import Episodes, TrainState, acting_view, learning_view
from idrl.training.seeding import env_seeds, stream
from idrl.training.spec import Evaluation, Training

_BLOCK_VECTOR_STEPS = 100  # how slow an environment is nobody knows: Ctrl-C must not wait long


class Hosted(Learner):
    """One run with its environments on the host."""

    frames: FrameTape | None
    beside: BesideTraining
    rows_behind = 1

    def __init__(
        self, agent: Agent, env: HostEnv, training: Training, evaluation: Evaluation, seeds: int,
        **how: Any,
    ):  # fmt: skip
        steps = math.lcm(training.envs, agent.spec.learning.update_every_steps) // training.envs
        largest = max(1, _BLOCK_VECTOR_STEPS // steps)
        stack = ring.Stack(env.stack, env.repeat_first)
        super().__init__(
            agent, training, evaluation, seeds, largest, flexible=True, stack=stack,
            masked=env.masked, **how,
        )  # fmt: skip
        self.env = env
        self.frames = FrameTape(self) if env.stack > 1 else None
        self.host = HostReplay(self) if self.learning.replay_place == "host" else None
        shown, facts = (env.shown_shape, env.obs_dtype), ((4,), np.float32)
        self.parcel = Parcel(shown, facts, env.allowed_like)
        self.evaluator = HostEvaluator(self, env)
        self.beside = BesideTraining(self)
        self.vector: Vector | None = None
        self.now: HostEnvState | None = None  # where the vector's environments are
        self.sums: Any = None  # the shapes of what a block sums
        # Queueing updates takes microseconds on a CPU, less than handing it to a thread.
        self.thread = ThreadPoolExecutor(1) if jax.default_backend() != "cpu" else None
        over, used = self._over_devices, () if self.debug else (0,)
        self._begin = Early(
            over(over_seeds(self._init), (SEEDS, SEEDS), SEEDS), compiler_options=quick()
        )

        def acting(rule, options=None):
            specs = (SEEDS,) * 4, (SEEDS,) * 3
            act = over(functools.partial(self._act_all, rule), *specs)
            return Early(act, donate_argnums=used and (1, 3), compiler_options=options)

        self._try, self._act = acting(None, quick()), acting(agent.spec.explore)
        self._update: Any = functools.cache(self._updating)  # by how many are due
        self._duplicate = jax.jit(lambda params: jax.tree.map(jnp.copy, params))
        if self.host is not None and self.prepares:
            self._prepare = self.host.prepare
        self._hold = jax.jit(over(hold, (SEEDS, SEEDS), SEEDS), donate_argnums=used)
        self._keep = Early(
            over(over_seeds(self._keep_best), (SEEDS,) * 4, (SEEDS, SEEDS)),
            donate_argnums=used, compiler_options=quick(),
        )  # fmt: skip

    # -- on the device ------------------------------------------------------------------------

    def _updating(self, count: int):
        update = functools.partial(self._update_all, count)
        given = (STEPS_SEEDS,) * 3 if self.host is not None else ()
        specs = (SEEDS, SEEDS, SAME, SAME, *given), (SEEDS, SEEDS)
        used = () if self.debug else (0, 1)
        return Early(self._over_devices(update, *specs), donate_argnums=used)

    def _init(self, key_data, examples) -> TrainState:
        key = jax.random.wrap_key_data(key_data)
        agent_key = jax.random.split(stream(key, "init"), 3)[0]
        nothing = jnp.zeros((self.envs, *self.env.obs_shape), self.env.obs_dtype)
        row = self._row_like(nothing)
        # A buffer of its own for each: a state is donated, and no buffer can be twice.
        memory = self.agent.blank_memory(self.envs)
        waiting = Waiting(nothing, row.action, row.mask, memory, row.allowed)
        return self._fresh(key_data, agent_key, examples, (), waiting)

    def _write(self, replay: ring.Replay, waiting: Waiting, shown: Shown, t) -> ring.Replay:
        """With the row of the step before `t`. Before step 0 no row waits: an invalid one goes
        where the ring is written last."""
        _, reward, terminated, valid = jnp.moveaxis(shown.facts, -1, 0)
        newest = self.stack.newest(waiting.obs)
        row = ring.Row(
            newest, waiting.action, reward, terminated, valid, waiting.heads, waiting.allowed
        )
        return self._store(replay, row, t - 1)

    def _decide(self, rule, view: TrainState, waiting: Waiting, shown: Shown, t):
        """The actions of vector step `t`."""
        first = shown.facts[:, 0] > 0
        obs = self.stack.push(waiting.obs, shown.obs, first)
        choice = self._choose(
            rule, view, obs, first, waiting.memory, t, t * self.envs, shown.allowed
        )
        waiting = Waiting(obs, choice.action, choice.heads, choice.memory, shown.allowed)
        return waiting, choice.diagnostics, choice.action

    def _act_all(self, rule, view: TrainState, moving, parcel, diagnostics):
        """`view` and `moving` are the parts of a state that acting reads and that it changes;
        `parcel` is what the environments show in which vector step."""
        replay, waiting = moving
        t, parts = self.parcel.unpack(parcel)
        shown = Shown(*parts)
        # Not `over_seeds`: a ring that gives up its axis of seeds to be written to is copied.
        replay = jax.vmap(self._write, (0, 0, 0, None))(replay, waiting, shown, t)
        decide = over_seeds(functools.partial(self._decide, rule), (0, 0, 0, None))
        waiting, more, action = decide(view, waiting, shown, t)
        return (replay, waiting), jax.tree.map(jnp.add, diagnostics, more), action

    def _step(self, act, state: TrainState, rollout: HostRollout, diagnostics):
        """Queue the acting of a vector step."""
        if self.frames is not None:
            self.frames.record(rollout.t, rollout.fleet.obs)
        if self.host is not None and self.host.rows is not None:
            self.host.rows.write(rollout.t, by_seed(rollout.fleet.obs, self.seeds))
        moving, parcel = (state.replay, state.worlds), self._packed(rollout.fleet, rollout.t)
        moving, diagnostics, action = act(acting_view(state), moving, parcel, diagnostics)
        action.copy_to_host_async()  # asked for later, it would wait behind the updates
        return state._replace(replay=moving[0], worlds=moving[1]), diagnostics, action

    def _improve(
        self, state: TrainState, sums, count: int, written: int, first: int, copy: int | None = None
    ):  # fmt: skip
        """Queue `count` updates, and behind them iteration `copy`'s renewal of the targets."""
        if count and self.host is not None:
            state, sums = self.host.updates(state, sums, count, written, first)
        elif count:
            numbers = np.int32(written), np.int32(first)
            after, sums = self._update(count)(learning_view(state), sums, *numbers)
            state = after._replace(worlds=state.worlds, best=state.best, states=state.states)
        return state if copy is None else self._copy(state, copy), sums

    def _meanwhile(self, call, *args):
        """Begin a call; what is returned waits for its result."""
        if self.thread is None:
            result = call(*args)
            return lambda: result
        return self.thread.submit(call, *args).result

    def _update_all(self, count: int, state: TrainState, sums, written, first, *given):
        batches = self.host.batches(*given) if self.host is not None else None
        state, metrics = self._updates(state, written, first, count, batches)
        return state, jax.tree.map(lambda total, x: total + x.sum(0), sums, metrics)

    # -- the program --------------------------------------------------------------------------

    def ahead(self, fresh: bool, iteration: int = 0) -> None:
        if iteration < self.cadence.total:
            # Who makes environments elsewhere begins with it; here they are made when needed.
            wanted = self.training.env_processes
            if how_many(self.env, self.seeds * self.envs, wanted) > 1:
                self._vector()
            self.evaluator.begin(wanted)
        compile_ahead(self, fresh, iteration)

    def start(self, keys: jax.Array, between: Between = nothing) -> tuple[TrainState, Episodes]:
        """Fresh seeds, after their random steps."""
        self.now = None
        examples, vector = random_examples(self, keys, between), self._vector()
        seed = env_seeds(keys, "env", 0, self.envs).reshape(-1)
        fleet = fleets.begin(self.env, vector, seed)
        state = self._begin(keys, examples)
        if self.host is not None:
            self.host.take(state, self.host.empty())
        rollout = HostRollout(vector, fleet, fleets.open_journal(self.env, seed), 0)
        ends = Ends(self.seeds)
        for t in range(self.cadence.warmup_vector_steps):
            between(Doing(RANDOM, t * self.envs, self.cadence.warmup_steps))
            state, _, action = self._step(self._try, state, rollout, {})
            ends.add(rollout.advance(fleets.for_all(action)))
        return self._join(self._prepare(state), rollout), ends.episodes()

    def bring(self, state: TrainState, iteration: int, between: Between = nothing) -> TrainState:
        """The environments do again what they did, unless they are there already."""
        worlds: HostEnvState = state.worlds
        if worlds is not self.now:
            self.now = None
            fleet, journal, t = *worlds[1:], self.cadence.vector_steps_at(iteration)
            found = fleets.replay_journal(self.env, self._vector(), fleet, journal, t, between)
            self.now = HostEnvState(worlds.waiting, *found)
        return state._replace(worlds=self.now)

    def block(
        self, state: TrainState, start: Any, tell: Tell = nothing
    ) -> tuple[TrainState, tuple[Episodes, dict[str, Any]]]:
        c, judged, beside = self.cadence, state.judged, self.beside.of(state)
        state, rollout = self._split(self.bring(state, int(start)), int(start))
        before = self._duplicate(state.agent.params)
        ends, (diagnostics, metrics) = Ends(self.seeds), self._zeros(state, rollout.fleet)
        end, dues = c.end(int(start)), c.updates_due
        for i in range(int(start), end):
            done = i * c.updates
            for step, due in enumerate(dues):
                t = rollout.t
                state, diagnostics, action = self._step(self._act, state, rollout, diagnostics)
                if beside is not None:
                    beside.choose(state)
                copy = i + 1 if step == c.vector_steps - 1 and c.copies(i + 1) else None
                learned = self._meanwhile(self._improve, state, metrics, due, t, done, copy)
                done += due
                ends.add(rollout.advance(fleets.for_all(action), beside))
                state, metrics = learned()
            stopping = tell(Doing(LEARNING, c.steps_at(i + 1), c.steps_at(c.total)))
            beside = None if stopping else beside
        state = self._hold(state, before)
        diagnostics, metrics = jax.device_get((diagnostics, metrics))
        made = end - int(start)
        means = {name: x / (made * c.updates) for name, x in metrics.items()}
        means |= {name: x / (made * c.vector_steps) for name, x in diagnostics.items()}
        return self._join(state, rollout, judged), (ends.episodes(), means)

    def evaluate(
        self, state: TrainState, number: Any, between: Between = nothing
    ) -> tuple[TrainState, tuple[Score, Any]]:
        given = state.agent.params, state.failed < 0, self.evaluator.window(state, number, between)
        return self.decided(self.reseeded(state, int(number)), *given)

    def decided(
        self, state: TrainState, params: Any, fine: Any, score: Score
    ) -> tuple[TrainState, tuple[Score, Any]]:
        """With the `score` of weights `params` told, of the seeds that were fine."""
        best, better = self._keep(state.best, params, fine, score)
        return state._replace(best=best), (score, better)

    def reseeded(self, state: TrainState, number: int) -> TrainState:
        """With new seeds for its environments, where evaluation `number` hands them out."""
        if number % self.reseed_every:
            return state
        before: HostEnvState = state.worlds
        # For the ends of the episodes that are under way; 0 gave those of the start.
        seed = env_seeds(state.key, "env", number + 1, self.envs)
        after = before._replace(journal=before.journal._replace(next_seed=seed.reshape(-1)))
        self.now = after if self.now is before else self.now
        return state._replace(worlds=after)

    def score_best(self, state: TrainState, episodes: int, limit_steps: int) -> Score:
        return self.evaluator.episodes(state, episodes, limit_steps)

    def score_window(self, state: TrainState, steps: int) -> Score:
        return self.evaluator.window_of_best(state, steps)

    def like(self) -> TrainState:
        return state_like(self)

    def place(self, tree: Any) -> Any:
        if tree.worlds is None:  # of who only plays
            return self._spread(tree)
        waiting, fleet, journal = tree.worlds
        tree, obs = apart(self.host, tree._replace(worlds=waiting))
        state = whole(self.host, self._spread(tree), None if obs is None else np.array(obs))
        return state._replace(worlds=HostEnvState(state.worlds, fleet, journal))

    def locate(self, state: TrainState, start: Any, index: int) -> str:
        return locate(self, state, start, index)

    def close(self) -> None:
        super().close()
        self.evaluator.close()
        if self.thread is not None:
            self.thread.shutdown()
        if self.vector is not None:
            self.vector.close()
        self.vector = self.now = None

    @property
    def reseed_every(self) -> int:
        """Evaluations between new seeds of the environments."""
        return self.training.reseed_every or self.env.reseed_every

    # -- between the two ----------------------------------------------------------------------

    def _vector(self) -> Vector:
        if self.vector is None:
            how = self.training.env_timeout_s, self.training.env_processes
            self.vector = make_vector(self.env, self.seeds * self.envs, *how)
        return self.vector

    def _show(self, fleet: Fleet) -> Shown:
        over = fleet.terminated
        if self.env.timeout_terminates:
            over = over | fleet.ended
        facts = np.stack([fleet.first, fleet.reward, over, fleet.valid], -1).astype(np.float32)
        parts = (fleet.obs, facts, fleet.allowed)
        return Shown(*(by_seed(part, self.seeds) for part in parts))

    def _packed(self, fleet: Fleet, t: int) -> np.ndarray:
        """What the environments show, for vector step `t`."""
        return self.parcel.pack(t, *self._show(fleet))

    def _split(self, state: TrainState, iteration: int) -> tuple[TrainState, HostRollout]:
        """The device's part of a state, and the environments."""
        (waiting, fleet, journal), self.now = state.worlds, None
        t = self.cadence.vector_steps_at(iteration)
        state, obs = apart(self.host, state._replace(worlds=waiting, judged=None))
        if self.host is not None:
            self.host.take(state, obs)
        return state, HostRollout(self._vector(), fleet, journal, t)

    def _join(self, state: TrainState, rollout: HostRollout, judged: Any = None) -> TrainState:
        if self.host is not None:
            state = whole(self.host, state, self.host.give_back())
        self.now = HostEnvState(state.worlds, rollout.fleet, rollout.close())
        return state._replace(worlds=self.now, judged=judged)

    def _zeros(self, state: TrainState, fleet: Fleet) -> Any:
        """Sums of nothing: of what the acting rule saw, and of the metrics of updates."""
        like = sums_like(self, state, self._show(fleet))
        return self._spread(jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), like))
