"""Settings per family of environments, each number with its reason.

A declaration in `agents/` carries the numbers of its paper, which are for Atari. A preset lays the
numbers of a smaller task over it, by the kind of part: whatever agent has an `ensemble` gets the
preset's ensemble, so agents are compared with everything else equal.
"""

from __future__ import annotations

from typing import Any

from idrl.envs.bsuite import game_of
from idrl.envs.registry import family_of, option_of, size_of

Settings = dict[str, Any]


def preset(agent: Settings, env: str) -> Settings:
    """What to change in the declaration `agent` (as a dictionary) for the environment `env`."""
    family = family_of(env)
    if family == "deep_sea":
        return _by_kind(agent, **deep_sea(env))
    if family == "bsuite":
        return _by_kind(agent, **bsuite(env))
    if family == "cartpole":
        return _by_kind(agent, **cartpole())
    return _by_kind(agent, **small_control(family))


def _by_kind(agent: Settings, *, kinds: dict[str, Settings], **sections: Settings) -> Settings:
    """Spread `kinds` over the heads and rules that the agent has."""
    changes: Settings = dict(sections)
    heads = {name: kinds.get(_kind(head), {}) for name, head in agent["heads"].items()}
    changes["heads"] = {name: change for name, change in heads.items() if change}
    for rule in ("explore", "evaluate"):
        changes[rule] = kinds.get(agent[rule]["kind"], {})
    return changes


def _kind(head: Settings) -> str:
    """An ensemble of one is a plain Q-function: it has no spread, so no prior either."""
    return "q" if head["kind"] == "ensemble" and head["k"] == 1 else head["kind"]


def deep_sea(env: str) -> Settings:
    """Deep exploration in a sparse chain, after a search on seeds below 100.

    The paper's literal rule (λ = 0.1, no prior) does not explore such chains: with rewards this
    rare all heads agree on 0 after a few hundred updates and σ is gone before it led anywhere. A
    randomized prior keeps σ alive where there is no data, and λ = 2 makes the agent follow it.
    """
    size = size_of(env)
    episodes = 1000 if size <= 20 else 2500
    mlp = {"hidden": [64]}  # 32 units solve fewer seeds
    return {
        "trunk": {"kind": "mlp", "hidden": [64]},
        "kinds": {
            "q": mlp,
            "ensemble": {**mlp, "prior_scale": 0.3},  # 0.1 to 0.3 work best, 3 is slow
            "categorical": {**mlp, "v_min": 0.0, "v_max": 1.0},  # returns are in [-0.01, 1]
            "quantile": {**mlp, "quantiles": 51},  # as many numbers as C51 has atoms
            "ids": {"lam": 2.0},  # 0.1 → at most 1 of 8 seeds, 1 → 4, 2 → 8
            "epsilon_greedy": {"start": 0.1, "end": 0.1, "decay_steps": 0},  # bsuite's: 0.05–0.1
        },
        "optimiser": {"kind": "adam", "lr": 3e-3, "b2": 0.999, "eps": 1e-8},
        "learning": {
            "update_every_steps": 1,  # steps are few and every one counts
            "target_every_steps": 4,  # a period of 100 slows the way of the reward up the chain
            "learning_starts_steps": 10 * size,
            "replay_capacity": 30_000,  # all of N ≤ 30's first 1000 episodes
        },
        "training": {"steps": episodes * size, "envs": 1, "log_every_steps": 50 * size},
        "evaluation": {"every_steps": 50 * size, "steps": 10 * size, "envs": 1},
    }


def bsuite(env: str) -> Settings:
    """bsuite's other games with deep_sea's network, optimiser and rule: bsuite judges one agent on
    all of them, so nothing but the range of returns may depend on the game."""
    game, noise = game_of(env), option_of(env, "noise", 0.0)
    steps = game.episodes * game.longest_steps
    # Noise of every step adds up to a return's: at most 1/(1-γ²) ≈ 50 steps' worth of variance.
    spread = 3 * noise * min(game.longest_steps, 50) ** 0.5
    settings = deep_sea("deep_sea/10")
    kinds = settings["kinds"]
    kinds["categorical"] |= {"v_min": game.low - spread, "v_max": game.high + spread}
    # Huber's clipped gradient lets Q creep (see small_control); bsuite's agents square errors too.
    kinds["q"] = kinds["q"] | {"error": "squared"}
    kinds["ensemble"] |= {"error": "squared"}
    kinds["epsilon_greedy"] |= {"start": 0.05, "end": 0.05}  # bsuite's dqn
    settings["learning"] |= {"learning_starts_steps": 128, "replay_capacity": 10_000}  # bsuite's
    settings["training"] |= {"steps": steps, "log_every_steps": max(100, steps // 100)}
    settings["evaluation"] = {
        "every_steps": max(100, steps // 20), "steps": 10 * game.longest_steps, "envs": 1
    }  # fmt: skip
    return settings


def cartpole() -> Settings:
    """CartPole-v1, to 475 of 500."""
    settings = small_control("cartpole")
    settings["training"]["steps"] = 200_000  # 120,000 leaves one seed in four short of 475
    settings["kinds"]["categorical"] |= {"v_min": 0.0, "v_max": 100.0}  # 1/(1-γ) = 100
    return settings


def small_control(family: str) -> Settings:
    """Classic control and other small vector tasks; unknown families start from here."""
    mlp = {"hidden": [64]}
    low, high = {"acrobot": (-100.0, 0.0), "mountain_car": (-100.0, 0.0)}.get(
        family, (-100.0, 100.0)
    )  # returns of -1 a step are at least -1/(1-γ) = -100
    return {
        "trunk": {"kind": "mlp", "hidden": [64]},
        "kinds": {
            # Huber's clipped gradient lets Q creep up to 1/(1-γ) everywhere: the rare terminal
            # steps, where it is wrong by 50 and more, pull no harder than an error of 1.
            "q": {**mlp, "error": "squared"},
            "ensemble": {**mlp, "error": "squared"},
            "categorical": {**mlp, "v_min": low, "v_max": high},
            "quantile": {**mlp, "quantiles": 51},
            "epsilon_greedy": {"decay_steps": 10_000, "end": 0.05},
        },
        "optimiser": {"kind": "adam", "lr": 1e-3, "b2": 0.999, "eps": 1e-8},
        "learning": {
            "update_every_steps": 2,  # 4 solves cartpole on half of the seeds in the same steps
            "batch_size": 64,
            "target_every_steps": 200,  # 500 needs 1.5 times the steps
            "learning_starts_steps": 1_000,
            "replay_capacity": 50_000,
        },
        "training": {"steps": 200_000, "envs": 4, "log_every_steps": 2_000},
        # twenty episodes of 500 steps at once: fewer let luck pick the best weights
        "evaluation": {"every_steps": 10_000, "steps": 10_000, "envs": 20},
    }
