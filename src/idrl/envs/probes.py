"""Probe tasks: so small that the right values are known by hand.

If an agent learns one and fails the next, the difference between the two names the broken part.
All have two states and two actions, so that one compiled program can play them all.
"""

from __future__ import annotations

import numpy as np

from idrl.envs.tabular import FOREVER, Mdp, Tabular


def _mdp(
    start=(1, 0), obs=(1.0, -1.0), reward=(0, 0), noise=(0, 0), go=0, ends=True, limit=FOREVER
):
    """Rewards and noise are given per action, or per state and action; `go` is where state 0
    leads to; `ends` says which states end the episode."""
    move = np.zeros((2, 2, 2))
    move[0, :, go] = 1
    move[1, :, 1] = 1
    shape = (2, 2)
    return Mdp(
        obs=np.array(obs, float)[:, None],
        start=np.array(start, float) / sum(start),
        move=move,
        reward=np.broadcast_to(np.array(reward, float), shape).copy(),
        noise=np.broadcast_to(np.array(noise, float), shape).copy(),
        ends=np.broadcast_to(np.array(ends, float)[..., None], shape).copy(),
        limit=limit,
    )


PROBES: dict[str, Mdp] = {
    # one state, one step, reward 1: tests the loss
    "one_reward": _mdp(reward=(1, 1)),
    # the observation is the reward: tests the trunk
    "sees_context": _mdp(start=(1, 1), reward=((1, 1), (-1, -1))),
    # two steps, reward at the end, Q = γ then 1: tests bootstrapping
    "two_steps": _mdp(reward=((0, 0), (1, 1)), go=1, ends=(0, 1)),
    # +1 for action 1, -1 for action 0: tests the policy
    "action_matters": _mdp(reward=(-1, 1)),
    # the right action depends on the observation: tests both at once
    "action_sees_context": _mdp(start=(1, 1), reward=((-1, 1), (1, -1))),
    # reward 1 a step for ever, cut by a time limit after one: Q = 1/(1-γ), not 1
    "truncates": _mdp(reward=(1, 1), ends=0, limit=1),
    # action 1 pays N(0, 1), action 0 pays 0: Var Z = (0, 1), tests the return head
    "noisy": _mdp(noise=(0, 1)),
}


def probes(*names: str) -> Tabular:
    """An environment that plays the named probes (default: all), one a seed, drawn at random."""
    chosen = names or tuple(PROBES)
    return Tabular("probes/" + ",".join(chosen), *(PROBES[name] for name in chosen))
