"""Four reasons why the variance of a return differs between states and actions.

They are those of the paper's section 3.2: noisy rewards, noisy transitions, aliased observations,
and targets that come from a policy while it changes. Each is a task of a few states whose true
Q* and Var Z are exact, so that what a return head has learned can be checked.

All have five states and two actions, so that one compiled program can play them all; rows that
no episode reaches are padding. Values of actions are well apart where they decide what follows:
between near equals the greedy action, and with it the variance above it, would be a matter of luck.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from idrl.envs.declaring import family
from idrl.envs.presets import FEW_FRACTIONS, SMALL_FIT, PresetContext, Settings, discrete
from idrl.envs.tabular import Mdp, Tabular, exact
from idrl.errors import unknown

STATES, ACTIONS = 5, 2


def _mdp(start, moves, reward, noise=0.0, obs=None) -> Mdp:
    """`moves`: {state: one row of probabilities for both actions, or one row each}; a state that
    is not named ends the episode with either action."""
    move = np.zeros((STATES, ACTIONS, STATES))
    move[..., 0] = 1
    ends = np.ones((STATES, ACTIONS))
    for state, rows in moves.items():
        for action, row in enumerate(rows):
            if row is not None:
                move[state, action] = 0
                for following, probability in row.items():
                    move[state, action, following] = probability
                ends[state, action] = 0
    paid, spread = np.zeros((2, STATES, ACTIONS))
    paid[: len(reward)] = reward
    spread[: len(np.atleast_1d(noise))] = noise
    first = np.zeros(STATES)
    first[list(start)] = list(start.values())
    return Mdp(np.eye(STATES) if obs is None else obs, first, move, paid, spread, ends)


# Three states in a row; what differs is how noisy each action's reward is.
REWARDS = _mdp(
    start={0: 1.0},
    moves={0: ({1: 1}, {1: 1}), 1: ({2: 1}, {2: 1})},
    reward=((0, -0.5), (0, -0.5), (1, 0)),
    noise=((0, 1.0), (0.5, 0), (0.5, 1.0)),
)

# Every reward is certain; action 1 of states 0 and 1 is a matter of luck where it leads.
TRANSITIONS = _mdp(
    start={0: 1.0},
    moves={0: ({1: 1}, {2: 0.5, 3: 0.5}), 1: ({4: 1}, {2: 0.75, 3: 0.25})},
    reward=((0, 0), (0, 0), (1.5, 1.5), (-1.5, -1.5), (1, 1)),
)

# Two hidden worlds (states 0 and 2, or 1 and 3), one in four episodes the second. They look the
# same. Action 0 takes a sure 0.3; action 1 goes on, to where action 0 pays 1 or −1 by the world.
ALIASING = _mdp(
    start={0: 0.75, 1: 0.25},
    moves={0: (None, {2: 1}), 1: (None, {3: 1})},
    reward=((0.3, 0), (0.3, 0), (1, 0), (-1, 0)),
    obs=np.eye(STATES)[[0, 0, 2, 2, 4]],
)

# The choice in states 1 and 2 is not the agent's but that of a policy while it learns, seen over a
# window of its learning: it pays 1 where the policy takes the better way, −1 where it does not yet.
# In state 1 it found the better way early, in state 2 late. Nothing else is random.
STAGES = {1: (0, 1, 1, 1, 1, 1, 1, 1), 2: (0, 0, 0, 0, 0, 0, 1, 1)}  # 1: the better way
POLICY = _mdp(
    start={0: 1.0},
    moves={0: ({1: 1}, {2: 1})}
    | {s: ({3: np.mean(taken), 4: 1 - np.mean(taken)},) * 2 for s, taken in STAGES.items()},
    reward=((0, 0), (0, 0), (0, 0), (1, 1), (-1, -1)),
)

SOURCES: dict[str, tuple[Mdp, str]] = {
    "rewards": (REWARDS, "noisy rewards"),
    "transitions": (TRANSITIONS, "noisy transitions"),
    "aliasing": (ALIASING, "aliased observations"),
    "policy": (POLICY, "targets of an evolving policy"),
}


@discrete
def preset(task: PresetContext) -> Settings:
    """Tasks of a few states with known variance: settings under which a head can find it."""
    mlp = {"hidden": [32]}
    return {
        "trunk": {"kind": "mlp", "hidden": [32]},
        "kinds": {
            "q": mlp,
            "ensemble": mlp,
            "categorical": {**mlp, "v_min": -5.0, "v_max": 5.0},  # |mean| ≤ 1.5, three σ of ≤ 1.2
            # κ = 1 turns quantiles of a spread like ours into something between them and
            # expectiles, which lie closer together: a variance of 1 is learned as 0.65, one of
            # 0.75 from two outcomes as 0.35.
            "quantile": {**mlp, "quantiles": 51, "kappa": 0.05},
            "implicit": {**mlp, **FEW_FRACTIONS, "kappa": 0.05},
            "bayesian": {**mlp, **SMALL_FIT},
            "epsilon_greedy": {"start": 1.0, "end": 0.1, "decay_steps": 5_000},
        },
        "optimiser": {"kind": "adam", "lr": 1e-3, "b2": 0.999, "eps": 1e-8},
        "learning": {
            "update_every_steps": 1,
            "target_every_steps": 50,
            "learning_starts_steps": 500,
            "replay_capacity": 20_000,  # all of it: a short replay has a variance of its own
        },
        "training": {"steps": 10_000, "envs": 1, "log_every_steps": 1_000},
        "evaluation": {"every_steps": 1_000, "steps": 200, "envs": 2},
    }


@family(
    "hetero/SOURCE",
    arguments={name: f"exact Var Z: {text}" for name, (_, text) in SOURCES.items()},
    noun="source of heteroscedasticity",
    preset=preset,
    host=False,
)
def heteroscedastic(*sources: str) -> Tabular:
    """An environment that plays the named tasks (default: all), one a seed, drawn at random."""
    chosen = sources or tuple(SOURCES)
    for source in chosen:
        if source not in SOURCES:
            raise unknown("source of heteroscedasticity", source, SOURCES)
    return Tabular("hetero/" + ",".join(chosen), *(SOURCES[source][0] for source in chosen))


class Truth(NamedTuple):
    """What a learner that sees observations only should find, one row per observation."""

    obs: np.ndarray  # [O, D]
    q: np.ndarray  # [O, A]
    variance: np.ndarray  # [O, A]


def truth(mdp: Mdp, gamma: float) -> Truth:
    """Exact Q* and Var Z of every observation that random play meets.

    States that look the same become one, mixed as often as each is visited under that observation.
    """
    merged = merge_aliased(mdp, visits(mdp))
    met = visits(merged) > 0
    q, variance = exact(merged, gamma)
    return Truth(merged.obs[met], q[met], variance[met])


def visits(mdp: Mdp, policy: np.ndarray | None = None) -> np.ndarray:
    """`[S]` expected visits an episode under `policy` `[S, A]` (default: uniformly random)."""
    if policy is None:
        policy = np.full(mdp.reward.shape, 1 / mdp.reward.shape[1])
    going = np.einsum("sa,sa,sat->st", policy, 1 - mdp.ends, mdp.move)
    return np.linalg.solve(np.eye(len(going)) - going.T, mdp.start)


def merge_aliased(mdp: Mdp, weight: np.ndarray) -> Mdp:
    """The process of observations: states that share one are mixed in proportion to `weight`.

    It is what one-step targets converge to, since they treat an observation as a state. It equals
    the law of whole returns only where an episode draws on the hidden state once, as ours do.
    """
    _, first, group = np.unique(mdp.obs, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)  # observations by the first state that shows them
    obs = mdp.obs[first[order]]
    member = (group.reshape(-1) == order[:, None]).astype(float)  # [O, S]
    mix = member * np.maximum(weight, 1e-12)
    mix /= mix.sum(1, keepdims=True)
    reward = mix @ mdp.reward
    noise2 = mix @ (mdp.reward**2 + mdp.noise**2) - reward**2
    alive = mix @ (1 - mdp.ends)
    move = np.einsum("os,sa,sat->oat", mix, 1 - mdp.ends, mdp.move) @ member.T
    move = np.where(alive[..., None] > 0, move / np.maximum(alive, 1e-12)[..., None], 0)
    noise = np.sqrt(np.maximum(noise2, 0))
    return Mdp(obs, member @ mdp.start, move, reward, noise, 1 - alive, mdp.limit)
