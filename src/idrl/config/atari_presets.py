"""Settings of Atari runs, by the name of a preset, and the frames that Atari is counted in.

`paper` is the text of Nikolov et al. 2019 and what it refers to, `release` the authors' published
code where that differs, `sticky` the paper's numbers in the games as Machado et al. 2018 advise to
play them. What concerns the game is in the environment's name, so that it says by itself what was
played; the rest are ordinary settings. `docs/atari.md` has all of it in one table.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from idrl.agents.choosing import DECAY_STEPS
from idrl.envs.adapters.atari import SKIP as FRAMES_PER_STEP
from idrl.envs.registry import family_of, options_of
from idrl.errors import IdrlError, unknown
from idrl.schema import merge

Settings = dict[str, Any]

# What a preset writes into the environment's name.
PRESETS: dict[str, dict[str, str]] = {
    "paper": {},
    "release": {"release": "1"},
    "sticky": {"sticky": "0.25", "life_loss": "0"},
}


def is_atari(env: str) -> bool:
    """By the name alone: nothing is built, and nothing needs to be installed."""
    return family_of(env) == "atari"


def protocol(env: str, preset: str | None) -> str:
    """The name of `env` under a preset: `atari/pong` → `atari/pong?sticky=0.25&life_loss=0`."""
    if preset is None:
        return env
    if not is_atari(env):
        raise IdrlError(f"presets with names are for atari/…; {env!r} has settings of its own.")
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    asked, written = options_of(env), PRESETS[preset]
    for option, value in asked.items():
        if option in written and float(written[option]) != _number(value):
            raise IdrlError(
                f"preset {preset!r} has {option}={written[option]}, not {env!r}; leave the preset "
                f"or the option away."
            )
    options = [f"{option}={value}" for option, value in {**written, **asked, **written}.items()]
    game = env.partition("?")[0]
    return "?".join([game, "&".join(options)] if options else [game])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def settings(agent: Settings, preset: str | None) -> Settings:
    """What to change in the declaration `agent`, which has the numbers of its own paper already."""
    release = preset == "release"
    changes: Settings = {
        "learning": {"rewards": "sign" if release else "clip"},
        # The paper has one environment; 64 keep a GPU busy. See docs/atari.md on what differs.
        "training": {"envs": 64, "log_every_steps": 50_000, "distributions_every_steps": 250_000},
        # The paper has one; 32 side by side count the same episodes (training.window).
        "evaluation": {"envs": 32},
        "evaluate": _evaluate(agent),
    }
    return merge(changes, _release(agent)) if release and agent["agent"] in RELEASED else changes


def _evaluate(agent: Settings) -> Settings:
    """How the papers score their agents."""
    if agent["explore"]["kind"] == "epsilon_greedy":
        # Mnih et al. keep ε = 0.05; Double DQN (tuned) and all that came after it 0.001.
        return _epsilon_greedy(0.05 if agent["agent"] == "dqn" else 0.001)
    if agent["agent"] == "bootstrapped-dqn":
        return {"kind": "greedy"}  # by the mean, as all agents of the paper
    return {}


def _epsilon_greedy(epsilon: float) -> Settings:
    return {"kind": "epsilon_greedy", "start": epsilon, "end": epsilon, "decay_steps": 0}


# What the authors' published code has an agent of.
RELEASED = (
    "dqn", "ddqn", "c51", "qr-dqn", "bootstrapped-dqn", "bootstrapped-ucb", "ensemble-vote", "bdqn",
    "dqn-ids", "c51-ids", "qrdqn-ids",
)  # fmt: skip


def _release(agent: Settings) -> Settings:
    """The networks of the code, and its settings where they are not the declaration's."""
    kinds = {head["kind"] for head in agent["heads"].values()}
    inits = {"quantile": "glorot_normal"}
    heads: Settings = {
        name: {"init": inits.get(head["kind"], "glorot_uniform")}
        for name, head in agent["heads"].items()
    }
    changes: Settings = {"trunk": {"padding": "SAME", "init": "glorot_uniform"}, "heads": heads}
    if kinds == {"ensemble", "categorical"}:
        heads["q"]["error"] = "squared"  # without the ½; the other agents have Huber's
    if agent["explore"]["kind"] == "ids":
        # β₂ is TensorFlow's, which the code never sets.
        return changes | {"optimiser": {"b2": 0.999}, "explore": {"eps1": 0.0}}
    if agent["optimiser"]["kind"] == "rmsprop":
        # TensorFlow's: ε inside the root, on averaged gradients, not centred.
        changes["optimiser"] = {"eps": 1e-5, "centered": False}
    if agent["agent"] == "ddqn":
        changes["learning"] = {"target_every_steps": 10_000}
    if "bayesian" in kinds:
        # A prior precision of 0.01 is a standard deviation of 10.
        heads["q"] |= {"fit_batch": 10_000, "prior_std": 10.0}
        changes["optimiser"] = {"kind": "adam", "lr": 5e-5, "b2": 0.999, "eps": 0.01 / 32}
    # ε falls to 0.01 and is 0.001 when evaluated: of the ensembles too, on top of their rule.
    fall = {"start": 1.0, "end": 0.01, "decay_steps": DECAY_STEPS}
    if agent["explore"]["kind"] != "epsilon_greedy":
        fall = {f"epsilon_{name}": value for name, value in fall.items()}
    votes = {"kind": "vote", "epsilon_start": 0.001, "epsilon_end": 0.001}
    evaluate = votes if agent["evaluate"]["kind"] == "vote" else _epsilon_greedy(0.001)
    return changes | {"explore": fall, "evaluate": evaluate}


def steps_of(frames: int, env: str) -> int:
    """Steps that take so many frames, whole ones."""
    if not is_atari(env):
        raise IdrlError(
            f"frames are for atari/…; {env!r} is counted in steps: use --steps, or for a score "
            "--episodes."
        )
    if not isinstance(frames, Real) or not math.isfinite(frames) or frames != int(frames):
        raise IdrlError(f"frames is {frames!r}; it must be a whole number.")
    if frames <= 0:
        raise IdrlError(f"frames is {frames}; it must be positive.")
    return -(-int(frames) // FRAMES_PER_STEP)
