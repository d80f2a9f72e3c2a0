"""Evaluation on the host: the frozen agents of all seeds play environments of their own."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs.host import HostEnv, Vector
from idrl.envs.processes import how_many, make_vector
from idrl.training.ahead import Early, quick
from idrl.training.batching import over_seeds
from idrl.training.doing import Between
from idrl.training.evaluation import Played, Score, score_of
from idrl.training.hosted import fleet as fleets
from idrl.training.hosted.fleet import NO_SEED, Fleet, by_seed
from idrl.training.hosted.parcel import Parcel
from idrl.training.hosted.playing import Act, Episode, Playing, each
from idrl.training.layout import SAME, SEEDS
from idrl.training.learner import Learner
from idrl.training.program import TrainState
from idrl.training.seeding import env_seeds, stream


def whole_episodes(
    env: HostEnv, vector: Vector, seeds: np.ndarray, envs: int, act: Act, limit_steps: int
) -> Played:
    """The end of every episode of `seeds` `[S, episodes]`, played in `envs` environments of each;
    one that goes on after `limit_steps` is truncated there. Who plays which is settled before, or
    the quick ends of bad episodes would make room for more of them."""
    whose, number = np.divmod(np.arange(len(seeds) * envs), envs)  # the next episode of each
    fleet = fleets.begin(env, vector, seeds[whose, number])
    episodes = seeds.shape[1]
    ends = _blank(seeds.shape)
    playing, seed = np.ones(len(number), bool), np.full(len(number), NO_SEED)
    while playing.any():
        action = env.only(playing, each(env, act(fleet), len(number)))
        fleet = fleets.advance(vector, fleet, action, seed)
        over = playing & (fleet.ended | (fleet.episode_length >= limit_steps))
        place = whose[over], number[over]
        ends.ended[place] = True
        ends.truncated[place] = (fleet.truncated | ~fleet.ended)[over]
        ends.returns[place] = fleet.episode_return[over]
        ends.lengths[place] = fleet.episode_length[over]
        number = number + envs * over
        playing = number < episodes
        following = seeds[whose, np.minimum(number, episodes - 1)]
        seed = np.where(over & playing, following, NO_SEED)
    return ends


def _blank(shape: tuple[int, ...]) -> Played:
    """No episode ended yet."""
    no, zeros = np.zeros(shape, bool), np.zeros(shape)
    return Played(no, no.copy(), zeros, zeros.copy(), {})


class HostEvaluator:
    """Keeps its environments from one evaluation to the next; a seeded reset makes them new."""

    def __init__(self, learner: Learner, env: HostEnv):
        self.agent, self.seeds, self.evaluation = learner.agent, learner.seeds, learner.evaluation
        self.env, self.learner = env.for_evaluation(), learner
        self.vectors: dict[int, Vector] = {}  # by environments of each seed
        shown = self.env.shown_shape, self.env.obs_dtype
        self.parcel = Parcel(shown, ((), bool), self.env.allowed_like)
        specs = (*(SEEDS,) * 5, SAME)
        self._choose = Early(
            learner._over_devices(self._choose_all, specs, SEEDS), compiler_options=quick()
        )
        self._score = jax.jit(jax.vmap(score_of, 1), compiler_options=quick())

    def _choose_all(self, params, prior, keys, memory, parcel, number):
        """`number` is that of the evaluation, negative for a score. `memory` is what was seen
        before and what the rule remembers; `parcel` what is seen now, in which step."""
        acting = self.learner.acting
        t, (obs, first, allowed) = self.parcel.unpack(parcel)

        def one(params, prior, key_data, shown, first, memory, allowed):
            key = jax.random.wrap_key_data(key_data)
            key = jnp.where(number < 0, stream(key, "score"), stream(key, "evaluate", number))
            obs = self.learner.stack.push(memory[0], shown, first)
            decision, kept = self.agent.choose(
                acting.rule, params, prior, obs, first, memory[1], jax.random.fold_in(key, t),
                acting.at(t), allowed, noisy=acting.noisy,
            )  # fmt: skip
            return decision.taken, (obs, kept)

        return over_seeds(one)(params, prior, keys, obs, first, memory, allowed)

    def chosen_from(self, state: TrainState) -> tuple[Any, ...]:
        """What `_choose_all` is given in an evaluation, in shape; `state` may be shapes."""
        envs, agent = self.evaluation.envs, state.agent
        parcel = self.packed(fleets.blank(self.env, self.seeds * envs), 0)
        memory = self.learner._placed(jax.eval_shape(lambda: self.blank_memory(envs)))
        return agent.params, agent.prior, state.key, memory, parcel, jnp.int32(0)

    def packed(self, fleet: Fleet, t: int) -> np.ndarray:
        """What the environments show, for step `t`."""
        parts = (fleet.obs, fleet.first, fleet.allowed)
        return self.parcel.pack(t, *(by_seed(part, self.seeds) for part in parts))

    def blank_memory(self, envs: int) -> Any:
        """What an evaluation begins with, of each seed: what was seen, what the rule remembers."""
        nothing = np.zeros((self.seeds, envs, *self.env.obs_shape), self.env.obs_dtype)
        kept = jax.eval_shape(lambda: self.agent.blank_memory(envs))
        return nothing, np.zeros((self.seeds, *kept.shape), kept.dtype)

    def begin(self, processes: int) -> None:
        """Have environments made where others make them."""
        if how_many(self.env, self.seeds * self.evaluation.envs, processes) > 1:
            self._vector(self.evaluation.envs)

    def _vector(self, envs: int) -> Vector:
        if envs not in self.vectors:
            training = self.learner.training
            how = training.env_timeout_s, training.env_processes
            self.vectors[envs] = make_vector(self.env, self.seeds * envs, *how)
        return self.vectors[envs]

    def window(self, state: TrainState, number: Any, between: Between) -> Score:
        """As `evaluation.play`, but several environments count as if one had played (`Window`)."""
        playing, _ = self.playing(state, state.agent.params, number)
        return self.summed(playing.finish(between))

    def playing(self, state: TrainState, params: Any, number: Any) -> tuple[Playing, Player]:
        """The same before its first step, for whoever plays it on, with weights `params`."""
        seeds = env_seeds(state.key, "evaluate", number, self.evaluation.envs)
        player = Player(self, state, params, number, self.evaluation.envs)
        return self._playing(player, seeds, self.evaluation.steps), player

    def window_of_best(self, state: TrainState, steps: int) -> Score:
        """The best weights, scored as `window` does, over `steps` steps."""
        seeds = env_seeds(state.key, "score", 0, self.evaluation.envs)
        player = Player(self, state, state.best.params, -1, self.evaluation.envs)
        return self.summed(self._playing(player, seeds, steps).finish())

    def _playing(self, player: Player, seeds: np.ndarray, steps: int) -> Playing:
        vector = self._vector(self.evaluation.envs)
        return Playing(self.env, vector, seeds.reshape(-1), self.seeds, steps, player.act)

    def summed(self, found: list[list[Episode]]) -> Score:
        """Of each seed's episodes."""
        most = max(map(len, found))
        shape = (-(-max(most, 1) // 64) * 64, self.seeds, 1)  # few shapes: each is compiled for
        ends = _blank(shape)
        for s, episodes in enumerate(found):
            for i, seen in enumerate(episodes):
                ends.ended[i, s] = True
                ends.truncated[i, s], ends.returns[i, s], ends.lengths[i, s] = seen
        return self._score(ends)

    def episodes(self, state: TrainState, episodes: int, limit_steps: int) -> Score:
        """As `evaluation.play_episodes`: each counts once, however short."""
        envs = min(episodes, self.evaluation.envs)
        vector = self._vector(envs)
        seeds = env_seeds(state.key, "score", 0, episodes)
        player = Player(self, state, state.best.params, -1, envs)
        found = whole_episodes(self.env, vector, seeds, envs, player.act, limit_steps)
        return self._score(jax.tree.map(lambda x: x.T[:, :, None], found))

    def close(self) -> None:
        for vector in self.vectors.values():
            vector.close()
        self.vectors = {}


class Player:
    """Acts for all seeds through one evaluation."""

    def __init__(
        self, evaluator: HostEvaluator, state: TrainState, params: Any, number: Any, envs: int
    ):
        self.evaluator = evaluator
        self.params = params
        self.look(state)
        self.number, self.t = jnp.int32(number), 0
        self.memory = evaluator.learner._spread(evaluator.blank_memory(envs))

    def look(self, state: TrainState) -> None:
        """Where the rest of what it acts by is: training moves it, though it does not change."""
        self.rest = state.agent.prior, state.key

    def act(self, fleet: Fleet) -> jax.Array:
        parcel = self.evaluator.packed(fleet, self.t)
        given = (self.params, *self.rest, self.memory, parcel, self.number)
        action, self.memory = self.evaluator._choose(*given)
        action.copy_to_host_async()
        self.t += 1
        return action
