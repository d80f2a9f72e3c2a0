"""DQN-IDS on deep_sea/10 from idrl's parts, with a loop one can read.

    python examples/dqn_ids_from_parts.py --seed 100

The library composes the same parts (`idrl train dqn-ids deep_sea/10`) and adds what this leaves
out: many seeds at once, compiled loops, records, checkpoints. The numbers are its preset's.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import jax
import numpy as np
import optax

from idrl import envs, ids
from idrl.networks.heads import Ensemble, Transition
from idrl.networks.trunks import Mlp

EPISODES, RANDOM_STEPS, BATCH, GAMMA, TARGET_EVERY = 1000, 100, 32, 0.99, 4

env = envs.make_env("deep_sea/10")
head = Ensemble(k=10, hidden=(64,), prior_scale=0.3)  # ten Q-functions and their fixed priors
trunk_net = Mlp(hidden=(64,)).module(env.obs_shape)  # observation → features
head_net = head.module(env.num_actions)  # features → Q [B, K, A]
optimiser = optax.adam(3e-3, b2=0.999, eps=1e-8)
reset, step = jax.jit(env.reset), jax.jit(env.step)


class State(NamedTuple):
    """Everything that changes with an update, and the priors, which never do."""

    params: dict
    target: dict
    opt_state: optax.OptState
    prior: dict


def init(key: jax.Array, obs: jax.Array) -> State:
    keys = jax.random.split(key, 4)
    params, prior = network(*keys[:2], obs), network(*keys[2:], obs)
    spread = q_heads(prior, obs).std(axis=1).mean()  # over the heads: how much they disagree
    prior["scale"] = head.prior_scale / spread
    return State(params, params, optimiser.init(params), prior)


def network(trunk_key: jax.Array, head_key: jax.Array, obs: jax.Array) -> dict:
    trunk = trunk_net.init(trunk_key, obs)
    return {"trunk": trunk, "head": head_net.init(head_key, trunk_net.apply(trunk, obs))}


def q_heads(params: dict, obs: jax.Array) -> jax.Array:
    """`[B, K, A]`. The trunk gets 1/K of the sum of the heads' gradients."""
    features = trunk_net.apply(params["trunk"], obs)
    features = optax.scale_gradient(features, head.trunk_share)
    return head_net.apply(params["head"], features)


def believed(params: dict, prior: dict, obs: jax.Array) -> jax.Array:
    """What was learned plus the prior: far from data the heads disagree, and σ stays large."""
    return q_heads(params, obs) + prior["scale"] * jax.lax.stop_gradient(q_heads(prior, obs))


@jax.jit
def explore(state: State, obs: jax.Array) -> jax.Array:
    """The action with the smallest regret² per bit of information."""
    q = believed(state.params, state.prior, obs[None])
    return ids.decide(q, lam=2.0, rho2=1.0, noise="constant").action[0]


@jax.jit
def greedy(state: State, obs: jax.Array) -> jax.Array:
    return believed(state.params, state.prior, obs[None]).mean(axis=1).argmax(axis=-1)[0]


@jax.jit
def learn(state: State, batch: Transition) -> State:
    target_t = believed(state.target, state.prior, batch.s_t)

    def loss(params):
        q_tm1 = believed(params, state.prior, batch.s_tm1)
        online_t = believed(params, state.prior, batch.s_t)  # each head chooses its next action
        return head.loss(q_tm1, jax.lax.stop_gradient(online_t), target_t, batch).mean()

    updates, opt_state = optimiser.update(jax.grad(loss)(state.params), state.opt_state)
    return state._replace(params=optax.apply_updates(state.params, updates), opt_state=opt_state)


class Replay:
    """All transitions so far."""

    def __init__(self, capacity: int, obs_shape: tuple[int, ...]):
        self.obs, self.next_obs = (np.zeros((capacity, *obs_shape), np.uint8) for _ in range(2))
        self.action, self.reward = np.zeros(capacity, np.int32), np.zeros(capacity, np.float32)
        self.discount, self.size = np.zeros(capacity, np.float32), 0

    def add(self, obs, action, reward, discount, next_obs) -> None:
        i, self.size = self.size, self.size + 1
        self.obs[i], self.next_obs[i] = obs, next_obs
        self.action[i], self.reward[i], self.discount[i] = action, reward, discount

    def sample(self, rng: np.random.Generator) -> Transition:
        i = rng.integers(self.size, size=BATCH)
        return Transition(
            self.obs[i], self.action[i], self.reward[i], self.discount[i], self.next_obs[i]
        )


def score(state: State, task, key: jax.Array) -> float:
    """The return of one episode of greedy play."""
    world, obs = reset(task, key)
    total, done = 0.0, False
    while not done:
        world, seen = step(task, world, greedy(state, obs), key)
        total, done, obs = total + float(seen.reward), bool(seen.terminated), seen.obs
    return total


def train(seed: int) -> list[float]:
    """Scores, one every 100 episodes."""
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    task = env.task(jax.random.fold_in(key, 0))  # which action goes right in which cell
    replay, scores = Replay(EPISODES * 10, env.obs_shape), []
    state = init(jax.random.fold_in(key, 1), reset(task, key)[1][None])
    for number in range(1, EPISODES + 1):
        world, obs = reset(task, key)
        done = False
        while not done:
            action = explore(state, obs) if replay.size >= RANDOM_STEPS else rng.integers(2)
            world, seen = step(task, world, action, key)  # nothing here is left to chance
            done = bool(seen.terminated)
            replay.add(obs, action, seen.reward, 0.0 if done else GAMMA, seen.obs)
            obs = seen.obs
            if replay.size > RANDOM_STEPS:
                state = learn(state, replay.sample(rng))
            if replay.size % TARGET_EVERY == 0:
                state = state._replace(target=state.params)
        if number % 100 == 0:
            scores.append(score(state, task, key))
            print(f"seed {seed}, episode {number:4}: greedy return {scores[-1]:.2f}", flush=True)
    return scores


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    train(parser.parse_args().seed)
