"""Updates from a replay whose observations are in the host's memory (`learning.replay_place=host`).

The device draws from the small part of the replay that it has, the host looks the frames up and
hands them over, and the device learns. Where nothing that is drawn depends on what is learned, all
draws of a vector step are queued before its first update, and the frames of one part are looked up
while the device learns from the part before: it waits for the first alone.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from idrl.replay import ring
from idrl.replay.host import HostObservations
from idrl.training import distributions
from idrl.training.ahead import quick
from idrl.training.batching import over_seeds
from idrl.training.layout import SAME, SEEDS, STEPS_SEEDS
from idrl.training.program import TrainState, learning_view
from idrl.training.seeding import key_of

_PARTS = 4  # of the updates of a vector step: the device waits for the frames of the first


class HostReplay:
    """The host's half of one program's replay."""

    def __init__(self, program: Any):
        """`program`: a `Hosted`."""
        self.program = program
        self.rows: HostObservations | None = None  # while a block or the random steps are played
        self._draw = functools.cache(self._drawing)  # by how many updates
        over = program._over_devices
        specs = (SEEDS,), SEEDS
        self._draw_states = jax.jit(over(over_seeds(self._where), *specs), compiler_options=quick())
        stacked = over_seeds(functools.partial(ring.stacked, stack=program.stack))
        over_all = over(over_seeds(program._remeasure), *specs)
        self._remeasure = jax.jit(over_all, compiler_options=quick())
        self._stacked = jax.jit(over(stacked, (SEEDS, SEEDS), SEEDS), compiler_options=quick())

    @property
    def like(self) -> jax.ShapeDtypeStruct:
        """The shape of what the host keeps: `[S, T, E, ...]`."""
        program, env = self.program, self.program.env
        shape = (program.seeds, program.replay_rows, program.envs, *env.shown_shape)
        return jax.ShapeDtypeStruct(shape, env.obs_dtype)

    def empty(self) -> np.ndarray:
        """Before the first step; memory is taken as rows are written."""
        return np.zeros(self.like.shape, self.like.dtype)

    # -- what is where -----------------------------------------------------------------------

    def take(self, state: TrainState, obs: np.ndarray) -> None:
        """Begin a stretch of vector steps; `state` is the device's part, `obs` the host's."""
        before = np.asarray(self.program.stack.newest(state.worlds.obs))
        self.rows = HostObservations(obs.copy() if self.program.debug else obs, before)

    def give_back(self) -> np.ndarray:
        """End it: the rows as they are now."""
        assert self.rows is not None
        rows, self.rows = self.rows, None
        rows.close()
        return rows.obs

    # -- learning from it ----------------------------------------------------------------------

    def updates(self, state: TrainState, sums, count: int, written, first):
        """Queue `count` updates from number `first` on."""
        alone = self.program.learning.priority > 0  # each draw depends on the update before
        size = 1 if alone else -(-count // _PARTS)
        parts = [(first + n, min(size, count - n)) for n in range(0, count, size)]
        ahead = [] if alone else [self._drawn(state, written, *part) for part in parts]
        assert self.rows is not None
        for i, (number, size) in enumerate(parts):
            drawn = ahead[i] if ahead else self._drawn(state, written, number, size)
            given = (drawn, *self.rows.read(drawn))
            after, sums = self.program._update(size)(
                learning_view(state), sums, np.int32(written), np.int32(number), *given
            )
            state = after._replace(worlds=state.worlds, best=state.best, states=state.states)
        return state, sums

    def batches(self, drawn: ring.Transition, before: jax.Array, after: jax.Array):
        """What `updates` hands over as transitions, `[count, S, ...]`; on the device."""
        stacked = jax.vmap(jax.vmap(functools.partial(ring.stacked, stack=self.program.stack)))
        address: Any = drawn.s_tm1, drawn.s_t
        return drawn._replace(
            s_tm1=stacked(before, address[0].there), s_t=stacked(after, address[1].there)
        )

    def batches_like(self, state: TrainState) -> ring.Transition:
        """The shapes of one update's batch, `[1, S, ...]`."""
        drawn = jax.eval_shape(self.program._draws, state, 2, jnp.arange(1))
        size = self.program.learning.batch_size
        env = self.program.env
        obs: Any = jax.ShapeDtypeStruct(
            (1, self.program.seeds, size, *env.obs_shape), env.obs_dtype
        )
        return drawn._replace(s_tm1=obs, s_t=obs)

    def prepare(self, state: TrainState) -> TrainState:
        """See `Learner._prepared`."""
        if self.program.agent.measures:
            state = self._remeasure(state)
        if state.states is None:
            return state
        found = self._draw_states(_drawn_from(state))
        masked = isinstance(found, distributions.Masked)
        address: Any = found.obs if masked else found
        assert self.rows is not None
        obs = self._stacked(self.rows.at(address), address.there)
        return state._replace(states=found._replace(obs=obs) if masked else obs)

    def _where(self, state: TrainState):
        program = self.program
        return distributions.draw(
            state.replay, key_of(state, "states", 0), program.cadence.warmup_vector_steps,
            program.stack, program.masked,
        )  # fmt: skip

    def _drawn(self, state: TrainState, written, number: int, size: int) -> ring.Transition:
        drawn = self._draw(size)(_drawn_from(state), np.int32(written), np.int32(number))
        jax.tree.map(lambda x: x.copy_to_host_async(), (drawn.s_tm1, drawn.s_t))
        return drawn

    def _drawing(self, count: int):
        def draw(state, written, first):
            return self.program._draws(state, written, first + jnp.arange(count))

        specs = (SEEDS, SAME, SAME), STEPS_SEEDS
        return jax.jit(self.program._over_devices(draw, *specs))


def _drawn_from(state: TrainState) -> TrainState:
    """What drawing reads."""
    nothing: Any = None
    return state._replace(agent=nothing, worlds=None, best=nothing, failed=nothing, states=None)


def apart(host: HostReplay | None, state: TrainState) -> tuple[TrainState, Any]:
    """The device's part of a state, and the observations that the host keeps, if it does."""
    return (state, None) if host is None else (whole(host, state, None), state.replay.obs)


def whole(host: HostReplay | None, state: TrainState, obs: Any) -> TrainState:
    """Both together."""
    return state if host is None else state._replace(replay=state.replay._replace(obs=obs))
