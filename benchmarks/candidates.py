"""How good an action a set of candidates finds: its information ratio against a dense grid's best.

    python -m benchmarks.candidates RUN [RUN ...] [--states 200]

RUN is a finished run of an agent that explores by IDS among candidates, with one or two numbers in
an action. Of states that the agent comes to in play, the action it would take is laid into a grid
over the box (2,001 points, or 101 × 101) and its ratio there divided by the smallest of the grid:
regret and noise are then relative to the same set for all. 1.00 is as good as the grid.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

import idrl
from idrl.agents import make_agent
from idrl.agents.choosing import Ids
from idrl.agents.rule_base import RuleContext
from idrl.envs import make_env
from idrl.inspect.walking import walk
from idrl.networks.heads.actors import Candidates
from idrl.runs.policy import Policy
from idrl.training.seeding import seed_key

SETS = {
    "actor's alone": Candidates(perturbed=0, uniform=0),
    "6 near": Candidates(perturbed=6, uniform=0),
    "8: 4 near, 2 far": Candidates(perturbed=4, uniform=2),
    "16: 8 near, 6 far": Candidates(perturbed=8, uniform=6),
    "32: 16 near, 14 far": Candidates(perturbed=16, uniform=14),
    "64: 32 near, 30 far": Candidates(),
    "64: all far": Candidates(perturbed=0, uniform=62),
    "128: 64 near, 62 far": Candidates(perturbed=64, uniform=62),
    "256: 128 near, 126 far": Candidates(perturbed=128, uniform=126),
    "32 with 2 refinements": Candidates(perturbed=8, uniform=6, refine=2),
    "64 with 1 refinement": Candidates(perturbed=21, uniform=20, refine=1),
    "128 with 2 refinements": Candidates(perturbed=32, uniform=30, refine=2),
}


def states_of(policy: Policy, count: int) -> np.ndarray:
    """Observations on the way of the exploring agent, episode after episode."""
    seen, number = [], 0
    while len(seen) < count:
        steps = walk(make_env(policy.config.env), seed_key(1_000 + number))
        sight = next(steps)
        while not sight.over and len(seen) < count:
            seen.append(np.asarray(sight.obs))
            sight = steps.send(policy.explain(sight.obs, seed=len(seen)).taken)
        steps.close()
        number += 1
    return np.stack(seen)


def grid_of(dims: int) -> jax.Array:
    if dims == 1:
        return jnp.linspace(-1, 1, 2001)[:, None]
    if dims == 2:
        line = jnp.linspace(-1, 1, 101)
        return jnp.stack(jnp.meshgrid(line, line), -1).reshape(-1, 2)
    raise SystemExit(f"a grid over {dims} numbers is too large")


def quotients(policy: Policy, candidates: Candidates, states: np.ndarray) -> np.ndarray:
    """Of each state: the ratio of the action taken over the grid's smallest."""
    spec, box = policy.agent.spec, policy.agent.box
    rule = spec.explore
    assert isinstance(rule, Ids)
    heads = {**spec.heads, "actor": replace(spec.heads["actor"], candidates=candidates)}
    agent = make_agent(replace(spec, heads=heads), policy.agent.obs_shape, box)
    grid = grid_of(box.dims)

    def one(obs, key):
        obs, first = obs[None], jnp.ones(1, bool)
        decision, _ = agent.choose(
            rule, policy.params, policy.prior, obs, first, agent.blank_memory(1), key, 0
        )
        both = jnp.concatenate([box.to_unit(decision.taken), grid])[None]
        beliefs = agent.believed(policy.params, policy.prior, obs, both)
        ratio = rule(beliefs, RuleContext(jnp.int32(0), jnp.zeros(1, jnp.int32), key)).ratio[0]
        return ratio[0] / ratio[1:].min()

    keys = jax.random.split(jax.random.key(0), len(states))
    each = jax.jit(lambda obs, keys: jax.lax.map(lambda x: one(*x), (obs, keys)))
    return np.asarray(each(jnp.asarray(states, jnp.float32), keys))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--states", type=int, default=200)
    args = parser.parse_args()
    for path in args.runs:
        policy = idrl.load(path, weights="latest")
        states = states_of(policy, args.states)
        dims = policy.agent.box.dims
        task = f"{policy.config.agent} on {policy.config.env}"
        print(f"\n{task}: {dims} numbers an action, {len(states)} states")
        print("| candidates | median | mean | 90th percentile | within a tenth |")
        print("|---|---|---|---|---|")
        for name, candidates in SETS.items():
            q = quotients(policy, candidates, states)
            close = (q <= 1.1).mean()
            cells = [*(f"{x:.2f}" for x in (np.median(q), q.mean(), np.quantile(q, 0.9)))]
            print(f"| {name} | {' | '.join(cells)} | {close:.0%} |", flush=True)


if __name__ == "__main__":
    main()
