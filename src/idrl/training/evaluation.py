"""Evaluation: the frozen agent plays its own environments from fresh episodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.agents import Agent, AgentSpec
from idrl.agents.rule_base import Rule
from idrl.envs.base import Env
from idrl.training.rollout import Happened, Worlds, advance, allowed, begin


class ActingRule(NamedTuple):
    """How an agent acts while it is scored."""

    rule: Rule
    noisy: bool = False  # whether noisy weights move
    step: int | None = None  # that schedules are at; None: of the evaluation itself

    def at(self, t: jax.Array) -> int | jax.Array:
        """Where schedules are in vector step `t` of an evaluation."""
        return t if self.step is None else self.step


def acting_of(spec: AgentSpec, how: str, steps: int) -> ActingRule:
    """By the rule it is evaluated with, or as it explores after `steps` steps of training."""
    return ActingRule(spec.explore, True, steps) if how == "explore" else ActingRule(spec.evaluate)


class Score(NamedTuple):
    """Over completed episodes; the unfinished tail is dropped. NaN where none was completed."""

    return_mean: jax.Array  # mean return
    return_std: jax.Array  # its standard deviation over episodes
    episodes: jax.Array  # how many episodes were completed
    length_mean: jax.Array  # mean length in steps
    truncated: jax.Array  # how many of the episodes a time limit cut off
    info: dict[str, jax.Array]  # means of what the environment reports at the end of episodes

    def __repr__(self) -> str:
        """Means and counts; of traced values their kind."""
        said = ("return_mean", "return_std", "episodes", "length_mean", "truncated")
        return f"Score({', '.join(f'{name}={_brief(getattr(self, name))}' for name in said)})"


def _brief(value: Any) -> str:
    if isinstance(value, jax.core.Tracer) or not hasattr(value, "ndim"):
        return str(value)
    return np.array2string(np.asarray(value), precision=4, threshold=8, edgeitems=3)


def _act(agent: Agent, acting: ActingRule, env: Env, params, prior, task, key):
    """One vector step, as a function of worlds and time."""

    def act(worlds: Worlds, t):
        act_key, env_key = jax.random.split(jax.random.fold_in(key, t))
        decision, memory = agent.choose(
            acting.rule, params, prior, worlds.obs, worlds.first, worlds.memory, act_key,
            acting.at(t), allowed(env, task, worlds),
            noisy=acting.noisy,
        )  # fmt: skip
        return advance(env, task, worlds, decision.taken, memory, env_key)

    return act


def play(
    agent: Agent, acting: ActingRule, env: Env, params: Any, prior: Any, task: Any, key: jax.Array,
    worlds: Worlds, times: jax.Array,
) -> tuple[Worlds, Happened]:  # fmt: skip
    """A stretch of the paper's window, which begins with `fresh` worlds: a vector step at each of
    `times`. Whatever ends inside the window counts."""
    act = _act(agent, acting, env, params, prior, task, jax.random.split(key)[1])
    return jax.lax.scan(act, worlds, times)


def fresh(env: Env, task: Any, key: jax.Array, memory: jax.Array) -> Worlds:
    return begin(env, task, jax.random.split(key)[0], memory)


def play_episodes(
    agent: Agent, acting: ActingRule, env: Env, params: Any, prior: Any, task: Any, key: jax.Array,
    episodes: int, limit_steps: int,
) -> Score:  # fmt: skip
    """The first episode of each of `episodes` environments: short ones weigh no more than long.

    An episode that goes on after `limit_steps` counts with what it has by then: to leave it out
    would favour the bad ones.
    """
    begin_key, loop_key = jax.random.split(key)
    act = _act(agent, acting, env, params, prior, task, loop_key)

    def unfinished(carry):
        t, _, done, _ = carry
        return (t < limit_steps) & ~done.all()

    def one(carry):
        t, worlds, done, kept = carry
        worlds, seen = act(worlds, t)
        new = (seen.ended | (t + 1 >= limit_steps)) & ~done
        kept = jax.tree.map(lambda now, old: jnp.where(new, now, old), _ends(seen), kept)
        return t + 1, worlds, done | new, kept

    worlds = begin(env, task, begin_key, agent.blank_memory(episodes))
    shapes = jax.eval_shape(lambda w: _ends(act(w, 0)[1]), worlds)
    kept = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    done = jnp.zeros(episodes, bool)
    _, _, done, kept = jax.lax.while_loop(unfinished, one, (jnp.int32(0), worlds, done, kept))
    return score_of(Played(done, *kept))


class Played(NamedTuple):
    """Episodes that were played, arrays of one shape."""

    ended: Any  # whether one ended here; nothing else counts where none did
    truncated: Any  # by a time limit
    returns: Any
    lengths: Any
    info: dict[str, Any]


def ends_of(seen: Happened) -> Played:
    """Those of a stretch of vector steps."""
    return Played(seen.ended, *_ends(seen))


def _ends(seen: Happened):
    return ~seen.terminated, seen.episode_return, seen.episode_length, seen.info


def score_of(ends: Played) -> Score:
    """Over all episodes that ended."""
    ended, truncated, returns, lengths, info = ends
    count = ended.sum()

    def mean(values):
        total = jnp.where(ended, values, 0.0).sum()
        return jnp.where(count > 0, total / jnp.maximum(count, 1), jnp.nan)

    average = mean(returns)
    return Score(
        average,
        jnp.sqrt(mean((returns - average) ** 2)),
        count.astype(jnp.int32),
        mean(lengths),
        (ended & truncated).sum().astype(jnp.int32),
        {name: mean(values) for name, values in info.items()},
    )
