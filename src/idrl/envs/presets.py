"""What settings for a task are made of, and those that several families share.

A declaration in `agents/` carries the numbers of its paper, which are for Atari. A preset lays the
numbers of a smaller task over it, by the kind of part: whatever agent has an `ensemble` gets the
preset's ensemble, so agents are compared with everything else equal. Each number has its reason.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Settings = dict[str, Any]

SMALLEST_IMAGE = 3  # a side that the smallest convolution fits into
LARGE_IMAGE = 36  # one that those of Mnih et al. fit into

# Each fraction costs a pass through the head; small tasks do with fewer than Atari's 64.
FEW_FRACTIONS = {"samples": 16, "act_samples": 32, "embedding": 16}
# Targets are renewed often here, and with them the regression; layers are an eighth of Atari's.
SMALL_FIT = {"fit_batch": 2_048}


@dataclass(frozen=True)
class PresetContext:
    """What the settings of a task may depend on."""

    env: str  # the whole name
    argument: int | str | None  # what stands behind the slash: N, or a word
    options: Mapping[str, Any]  # the options of the name, with their defaults
    agent: Settings  # its declaration, as a dictionary, and its name as "agent"
    continuous: bool  # the agent is for continuous actions
    named: str | None = None  # which of the family's named presets was asked for
    obs_shape: tuple[int, ...] | None = None  # where it is known

    @property
    def size(self) -> int:
        """N of `family/N`."""
        assert isinstance(self.argument, int)
        return max(self.argument, 1)  # less is refused where the environment is made

    @property
    def image(self) -> bool:
        """Whether what is seen is known to be an image."""
        shape = self.obs_shape
        return shape is not None and len(shape) == 3 and min(shape[:2]) >= SMALLEST_IMAGE

    def heads(self, *kinds: str) -> list[str]:
        """The names of the agent's heads of these kinds (default: all)."""
        heads = self.agent["heads"].items()
        return [name for name, head in heads if not kinds or head["kind"] in kinds]

    def explores(self, *kinds: str) -> bool:
        """Whether the agent explores by a rule of one of these kinds."""
        return self.agent["explore"]["kind"] in kinds

    def evaluates(self, *kinds: str) -> bool:
        return self.agent["evaluate"]["kind"] in kinds

    def by_optimiser(self, **settings: Settings) -> Settings:
        """Those for the kind of optimiser that the agent has; none for one of another kind."""
        return settings.get(self.agent["optimiser"]["kind"], {})


Preset = Callable[[PresetContext], Settings | None]


def discrete(preset: Preset) -> Preset:
    """A preset for agents with discrete actions; others get the settings for unknown tasks."""
    return functools.wraps(preset)(lambda task: None if task.continuous else preset(task))


def continuous(preset: Preset) -> Preset:
    """The same for agents with continuous actions."""
    return functools.wraps(preset)(lambda task: preset(task) if task.continuous else None)


def deep_exploration(size: int, episodes: int) -> Settings:
    """One reward at the end of a chain of `size` steps. The comparisons of settings below were made
    on deep_sea in a prototype (8 seeds, N = 10); here the chosen ones were checked on seeds 0 to 7.

    The paper's literal rule (λ = 0.1, no prior) does not explore such chains: with rewards this
    rare all heads agree on 0 after a few hundred updates and σ is gone before it led anywhere. A
    randomized prior keeps σ alive where there is no data, and λ = 2 makes the agent follow it.
    """
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


def images(obs_shape: tuple[int, ...]) -> Settings:
    """Images of Gymnasium or of one's own: the paper's numbers, for one machine and less than 200M
    frames."""
    large = min(obs_shape[:2]) >= LARGE_IMAGE
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


def small_control(task: PresetContext) -> Settings:
    """Classic control and other small vector tasks; tasks that are not known start from here.

    Nothing is known of their rewards, so values are in units that the agent measures, and what
    follows is in these. It was chosen on seeds 0 to 5 of the development suite
    (results/untuned/history.md).
    """
    mlp = {"hidden": [64]}
    # Random actions as ε-greedy has them, on top of every rule: one that decides by what it knows
    # may go in circles where an episode has no end, and never see that it is wrong.
    dither = {"epsilon_start": 1.0, "epsilon_end": 0.05, "epsilon_decay_steps": 10_000}
    # Huber's clipped gradient lets Q creep up to 1/(1-γ) everywhere: the rare terminal steps, where
    # it is wrong by 50 and more, pull no harder than an error of 1.
    ensemble: Settings = {**mlp, "error": "squared"}
    explore = dither if task.explores("ids", "thompson", "return_thompson", "ucb", "vote") else {}
    if task.explores("thompson", "return_thompson"):
        explore = explore | {"redraw_steps": 1_000}  # ten times as far as γ looks ahead
    # σ without what the heads say of a state as a whole: that is no reason to prefer an action.
    ids: Settings = {"relative": True}
    if task.explores("ids"):
        # With targets of their own, priors make the values run away (1,000 times the largest return
        # on grid/harvest); thompson does best without any.
        ensemble |= {"prior_scale": 1.0, "target": "mean"}
    if task.heads("categorical", "quantile", "implicit"):
        ids |= {"noise": "added"}
    return {
        "trunk": {"kind": "mlp", "hidden": [64]},
        "kinds": {
            "q": {**mlp, "error": "squared"},
            "ensemble": ensemble,
            "categorical": {**mlp, "v_min": -1.25, "v_max": 1.25},  # of the largest return
            "quantile": {**mlp, "quantiles": 51},
            "implicit": {**mlp, **FEW_FRACTIONS},
            "bayesian": {**mlp, **SMALL_FIT, "error": "squared"},
            "ids": ids,
            "ucb": {"relative": True},
            "epsilon_greedy": {"decay_steps": 10_000, "end": 0.05},
        },
        "explore": explore,  # not by kind: what evaluates is to do without
        "optimiser": {"kind": "adam", "lr": 1e-3, "b2": 0.999, "eps": 1e-8},
        "learning": {
            "update_every_steps": 2,  # with 4 dqn solved 2 of 4 seeds in 100,000 steps, with 2 all
            "batch_size": 64,
            "target_every_steps": 200,  # with 500 dqn-ids solved fewer seeds in the same steps
            "learning_starts_steps": 1_000,
            "replay_capacity": 50_000,
            "unit": "measured",
        },
        "training": {"steps": 200_000, "envs": 4, "log_every_steps": 2_000},
        # twenty episodes of 500 steps at once: fewer let luck pick the best weights
        "evaluation": {"every_steps": 10_000, "steps": 10_000, "envs": 20},
    }
