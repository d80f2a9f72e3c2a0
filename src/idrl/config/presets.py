"""Settings per family of environments, each number with its reason.

A declaration in `agents/` carries the numbers of its paper, which are for Atari. A preset lays the
numbers of a smaller task over it, by the kind of part: whatever agent has an `ensemble` gets the
preset's ensemble, so agents are compared with everything else equal.
"""

from __future__ import annotations

from typing import Any

from idrl.config import atari_presets as atari
from idrl.config import control_presets
from idrl.envs import family_of, make_env
from idrl.envs.families.bsuite import game_of
from idrl.envs.registry import is_registered, option_of, size_of
from idrl.training.spec import Training

Settings = dict[str, Any]

# The same tasks elsewhere.
_LIKE = {
    "gym/CartPole-v1": "cartpole",
    "gym/Acrobot-v1": "acrobot",
    "gym/MountainCar-v0": "mountain_car",
}


SMALLEST_IMAGE = 3  # a side that the smallest convolution fits into

# Each fraction costs a pass through the head; small tasks do with fewer than Atari's 64.
FEW_FRACTIONS = {"samples": 16, "act_samples": 32, "embedding": 16}
# Targets are renewed often here, and with them the regression; layers are an eighth of Atari's.
SMALL_FIT = {"fit_batch": 2_048}


def preset(
    agent: Settings, env: str, obs_shape: tuple[int, ...] | None = None, name: str | None = None
) -> Settings:
    """What to change in the declaration `agent` (as a dictionary) for the environment `env`.

    `obs_shape` is what an environment object shows; that of a name is looked up. Atari has several
    presets, of which `name` is one.
    """
    if atari.is_atari(env) and not is_registered(env):
        return atari.settings(agent, name)
    if obs_shape is None and (family_of(env) == "gym" or is_registered(env)):
        obs_shape = make_env(env).obs_shape
    if any(head["kind"] in ("actor", "gaussian_actor") for head in agent["heads"].values()):
        return control_presets.settings(agent, env)
    family = family_of(_LIKE.get(env.partition("?")[0], env))
    if family == "deep_sea":
        return _by_kind(agent, **deep_sea(env))
    if family == "noisy_chain":
        return _by_kind(agent, **noisy_chain(env))
    if family == "maze":
        return _by_kind(agent, **maze(env))
    if family == "hetero":
        return _by_kind(agent, **hetero())
    if family == "minatar":
        return _by_kind(agent, **minatar(agent["optimiser"]["kind"]))
    if family == "bsuite":
        return _by_kind(agent, **bsuite(env))
    if obs_shape is not None and len(obs_shape) == 3 and min(obs_shape[:2]) >= SMALLEST_IMAGE:
        return _by_kind(agent, **images(obs_shape))
    if family == "cartpole":
        return _by_kind(agent, **cartpole())
    return _by_kind(agent, **small_control(family))


def _by_kind(agent: Settings, *, kinds: dict[str, Settings], **sections: Settings) -> Settings:
    """Spread `kinds` over the heads and rules that the agent has."""
    changes: Settings = dict(sections)
    # As often as a row of metrics: 64 states are one batch more in thousands.
    training = changes["training"]
    often = training.get("log_every_steps", Training.log_every_steps)
    changes["training"] = {"distributions_every_steps": often} | training
    heads = {name: kinds.get(_kind(head), {}) for name, head in agent["heads"].items()}
    changes["heads"] = {name: change for name, change in heads.items() if change}
    for rule in ("explore", "evaluate"):
        changes[rule] = kinds.get(agent[rule]["kind"], {})
    return changes


def _kind(head: Settings) -> str:
    """An ensemble of one is a plain Q-function: it has no spread, so no prior either."""
    return "q" if head["kind"] == "ensemble" and head["k"] == 1 else head["kind"]


def deep_sea(env: str) -> Settings:
    """Deep exploration in a sparse chain. The comparisons of settings below were made in a
    prototype (8 seeds, N = 10); here the chosen ones were checked on seeds 0 to 7.

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
            "implicit": {**mlp, **FEW_FRACTIONS},
            "bayesian": {**mlp, **SMALL_FIT},
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


def noisy_chain(env: str) -> Settings:
    """A chain with one reward, as in `deep_sea`, and a gamble in every state.

    Everything that is no matter of the noise is `deep_sea`'s, and all agents get the same.

    Unlike there, an episode can stay where it is. A gamble whose mean was m in the data so far is
    worth m/(1-γ) = 100·m to whoever bootstraps on it for long, so slow targets are what helps.
    Share of episodes that missed the goal, c51-ids and bootstrapped-dqn, N = 6, 8000 steps, seeds
    0 to 3: a copy every 100 steps 0.83 and 0.92, every 500 0.90 and 0.69, every 1000 0.84 and 0.60.
    `deep_sea`'s own (every 4, lr 3e-3) missed 99% at N = 10; masks of 0.5 or a prior of 1 did
    c51-ids no good (0.84 and, every 500, 0.96).
    """
    size, noise = size_of(env), option_of(env, "noise", 1.0)
    # An episode is at most 3N steps, and a cut one takes a row more for its last observation.
    longest = 3 * size + 1
    settings = deep_sea(env)
    # The best policy's return after one gamble is N(γ^n, noise²): three standard deviations fit.
    # A learner that still thinks gambling pays would need more (1/(1-γ²) = 50 times the variance);
    # for it the ends of the range saturate, which leaves its gambles the noisiest action by far.
    bound = 1.0 + 3.0 * noise
    settings["kinds"]["categorical"] |= {"v_min": -bound, "v_max": bound}
    settings["optimiser"] |= {"lr": 1e-3}
    settings["learning"] |= {
        "gamma": 0.99,  # part of the task's definition
        "target_every_steps": 1_000,  # 19 to 43 copies in a run; the reward needs N-1 to reach 0
        "replay_capacity": 50_000,  # all of N ≤ 16: forgotten gambles would count as new luck
    }
    # 1000 episodes even for a seed that never gets there; one that does plays some three times more
    settings["training"] |= {"steps": 1000 * longest, "log_every_steps": 50 * longest}
    settings["evaluation"] |= {"every_steps": 50 * longest, "steps": 4 * longest}
    return settings


def maze(env: str) -> Settings:
    """A short way to one reward, with costs on the way and actions that are not always allowed.

    Networks and priors are `deep_sea`'s. Its quick targets and steps are not: here one can walk in
    circles, and with them c51-ids lost the way again on 4 of 4 seeds, masks shown or hidden (seeds
    0 to 3 of N = 5, 7,500 steps).
    """
    size = size_of(env, 4)
    limit = 10 * size**2  # steps of an episode
    gamma = 1 - 1 / (2 * size)  # looks as far ahead as the way is long
    settings = deep_sea(env)
    # Opening pays 1; never to find the door costs 0.05 a step.
    kinds = settings["kinds"]
    kinds["categorical"] |= {"v_min": -0.05 / (1 - gamma), "v_max": 1.0}
    # Nothing here is noisy, and values are small: noise of 1 drowns them (bdqn, masks hidden, seeds
    # 0 to 7: 6 evaluations each, of which 30 of 48 found the best way, with 0.1 all).
    kinds["bayesian"] = kinds["bayesian"] | {"noise_std": 0.1}
    settings["optimiser"] |= {"lr": 1e-3}
    settings["learning"] |= {
        "gamma": gamma,
        "target_every_steps": 50,
        # Who explores is not the question here, so random play finds the door: by then on 99 of
        # 100 seeds of N = 4 with masks hidden (in a third of the time with masks shown).
        "learning_starts_steps": 8 * limit,
    }
    settings["training"] |= {"steps": 32 * limit, "log_every_steps": 4 * limit}
    settings["evaluation"] |= {"every_steps": 4 * limit, "steps": 2 * limit}
    return settings


def hetero() -> Settings:
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


def minatar(optimiser: str) -> Settings:
    """Young & Tian 2019 (their section on experiments and released `dqn.py`), per frame.

    Their DQN has RMSProp, which every agent declared with it keeps. The IDS agents keep Adam, as in
    their own paper: K heads and a return head send gradients of different scales into one
    optimiser, which Adam evens out per weight. Its step size is RMSProp's, its ε the paper's.
    """
    dense = {"hidden": [128]}
    adam = {"kind": "adam", "lr": 2.5e-4, "b2": 0.999, "eps": 0.01 / 32}
    return {
        "trunk": {"kind": "minatar_cnn", "channels": 16},
        "kinds": {
            "q": dense,
            "ensemble": dense,
            # No game has a negative reward; one every fourth frame for ever is worth 25 at γ = 0.99
            "categorical": {**dense, "v_min": 0.0, "v_max": 25.0},
            "quantile": {**dense, "quantiles": 51},  # as many numbers as C51 has atoms
            "implicit": dense,
            "bayesian": {
                **dense,
                "fit_batch": 20_000,
            },  # a fifth of the replay, every 1,000 updates
            "epsilon_greedy": {"start": 1.0, "end": 0.1, "decay_steps": 100_000},
        },
        # PyTorch's ε is outside the root, where theirs is 0.01: inside it is about 0.01².
        "optimiser": adam if optimiser == "adam" else {"lr": 2.5e-4, "eps": 1e-4},
        "learning": {
            "gamma": 0.99,
            "batch_size": 32,
            "update_every_steps": 1,
            "target_every_steps": 1_000,
            "learning_starts_steps": 5_000,
            "replay_capacity": 100_000,
        },
        "training": {"steps": 5_000_000, "envs": 1, "log_every_steps": 10_000},
        # One environment: each drops the episode that it is in at the end, the likelier the longer.
        # Of episodes of 300 frames on average (exponential) ten environments of 3000 frames score
        # 9% too little, of 1000 frames 30%; one of 30,000 less than 1%.
        "evaluation": {"every_steps": 250_000, "steps": 30_000, "envs": 1},
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


def images(obs_shape: tuple[int, ...]) -> Settings:
    """Images of Gymnasium or of one's own: the paper's numbers, for one machine and less than 200M
    frames."""
    large = min(obs_shape[:2]) >= 36  # what the convolutions of Mnih et al. need
    return {
        "trunk": {"kind": "nature_cnn" if large else "minatar_cnn"},
        "kinds": {},
        "learning": {
            "replay_capacity": 100_000,  # 2.8 GB of 96×96×3; 1M would be 28
            # λ, ρ², Huber's δ and C51's ±10 are the paper's, for rewards of at most 1: with larger
            # ones good actions saturate at the end of the range.
            "rewards": "clip",
        },
        "training": {"steps": 10_000_000, "envs": 8},
        "evaluation": {"steps": 25_000, "envs": 8},
    }


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
            "implicit": {**mlp, **FEW_FRACTIONS},
            "bayesian": {**mlp, **SMALL_FIT, "error": "squared"},
            "epsilon_greedy": {"decay_steps": 10_000, "end": 0.05},
        },
        "optimiser": {"kind": "adam", "lr": 1e-3, "b2": 0.999, "eps": 1e-8},
        "learning": {
            "update_every_steps": 2,  # with 4 dqn solved 2 of 4 seeds in 100,000 steps, with 2 all
            "batch_size": 64,
            "target_every_steps": 200,  # with 500 dqn-ids solved fewer seeds in the same steps
            "learning_starts_steps": 1_000,
            "replay_capacity": 50_000,
        },
        "training": {"steps": 200_000, "envs": 4, "log_every_steps": 2_000},
        # twenty episodes of 500 steps at once: fewer let luck pick the best weights
        "evaluation": {"every_steps": 10_000, "steps": 10_000, "envs": 20},
    }
