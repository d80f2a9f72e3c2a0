"""What random play scores in MinAtar's games: 0 of the normalised scores.

    python -m benchmarks.claim.random_play > benchmarks/claim/random.csv

Every game of a batch is played until its first episode ends, so that long ones count as often as
short ones.
"""

from __future__ import annotations

import csv
import sys

import jax
import jax.numpy as jnp
import numpy as np

from idrl.envs import Env, make_env
from idrl.envs.families.minatar.by_gymnax import GAMES

EPISODES = 2_048
MOST = 10_000  # steps; random play ends long before, freeway after 2,500


def returns(env: Env, episodes: int, seed: int = 0) -> np.ndarray:
    """Of so many first episodes."""
    task_key, reset_key, key = jax.random.split(jax.random.key(seed), 3)
    task = env.task(task_key)
    states, _ = jax.vmap(lambda k: env.reset(task, k))(jax.random.split(reset_key, episodes))

    def going_on(carry):
        t, _, _, going = carry
        return going.any() & (t < MOST)

    def play(carry):
        t, states, total, going = carry
        choose, advance = jax.random.split(jax.random.fold_in(key, t))
        actions = jax.random.randint(choose, (episodes,), 0, env.num_actions)
        keys = jax.random.split(advance, episodes)
        states, step = jax.vmap(lambda s, a, k: env.step(task, s, a, k))(states, actions, keys)
        total = total + jnp.where(going, step.reward, 0.0)
        return t + 1, states, total, going & ~step.terminated & ~step.truncated

    begin = (jnp.int32(0), states, jnp.zeros(episodes), jnp.ones(episodes, bool))
    _, _, total, going = jax.jit(lambda c: jax.lax.while_loop(going_on, play, c))(begin)
    if going.any():
        raise SystemExit(f"{env.name}: {int(going.sum())} episodes did not end in {MOST:,} steps.")
    return np.asarray(total)


def main() -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["env", "random", "standard_error", "episodes"])
    for game in GAMES:
        found = returns(make_env(f"minatar/{game}"), EPISODES)
        error = found.std(ddof=1) / np.sqrt(len(found))
        writer.writerow([f"minatar/{game}", f"{found.mean():.4g}", f"{error:.2g}", len(found)])


if __name__ == "__main__":
    main()
