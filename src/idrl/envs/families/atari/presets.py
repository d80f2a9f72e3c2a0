"""Settings of Atari runs, by the name of a preset.

`paper` is the text of Nikolov et al. 2019 and what it refers to, `release` the authors' published
code where that differs, `sticky` the paper's numbers in the games as Machado et al. 2018 advise to
play them. `short` is for runs of 3M to 20M frames, with the same numbers for all agents (short.py).
"""

from __future__ import annotations

from idrl.envs.families.atari.short import short
from idrl.envs.presets import PresetContext, Settings
from idrl.schema import merge

# Evaluations between new seeds. A resumed run replays what the games did since: 6 · 250,000 steps
# and the longest episode under way. Sixteen cores emulate 18,000 to 21,000 steps (72,000 to
# 83,000 frames) a second (results/atari): 83 s at most, and half of that on average. A seeded reset
# loads the game anew and takes as long as 100 to 200 steps, some 90 ms in which in training the
# other games wait: with 128 games 12 s of the 134 s that as many steps take in mixed precision.
RESEED_EVERY = 6
DECAY_STEPS = 1_000_000  # ε falls over "the first million frames" of Mnih et al., which are steps


def preset(task: PresetContext) -> Settings:
    """What to change in the declaration, which has the numbers of its own paper already."""
    release = task.named == "release"
    changes: Settings = {
        "trunk": {},  # declarations are made for it
        "learning": {"rewards": "sign" if release else "clip"},
        # The paper has one environment; 64 keep a GPU busy. See docs/atari.md on what differs.
        "training": {
            "envs": 64,
            "log_every_steps": 50_000,
            "distributions_every_steps": 250_000,
            "reseed_every": RESEED_EVERY,
        },
        # The paper has one; 32 side by side count the same episodes (training.window).
        "evaluation": {"envs": 32},
        "evaluate": _evaluate(task),
    }
    if not release and not task.continuous:  # no harm seen: results/atari/short
        changes["learning"]["precision"] = "auto"
    if task.named == "short" and not task.continuous:
        return merge(changes, short(task))
    released = release and task.agent["agent"] in RELEASED
    return merge(changes, _release(task)) if released else changes


def _evaluate(task: PresetContext) -> Settings:
    """How the papers score their agents."""
    if task.explores("epsilon_greedy"):
        # Mnih et al. keep ε = 0.05; Double DQN (tuned) and all that came after it 0.001.
        return _epsilon_greedy(0.05 if task.agent["agent"] == "dqn" else 0.001)
    if task.agent["agent"] == "bootstrapped-dqn":
        return {"kind": "greedy"}  # by the mean, as all agents of the paper
    return {}


def _epsilon_greedy(epsilon: float) -> Settings:
    return {"kind": "epsilon_greedy", "start": epsilon, "end": epsilon, "decay_steps": 0}


# What the authors' published code has an agent of.
RELEASED = (
    "dqn", "ddqn", "c51", "qr-dqn", "bootstrapped-dqn", "bootstrapped-ucb", "ensemble-vote", "bdqn",
    "dqn-ids", "c51-ids", "qrdqn-ids",
)  # fmt: skip


def _release(task: PresetContext) -> Settings:
    """The networks of the code, and its settings where they are not the declaration's."""
    heads: Settings = {name: {"init": "glorot_uniform"} for name in task.heads()}
    for name in task.heads("quantile"):
        heads[name]["init"] = "glorot_normal"
    changes: Settings = {"trunk": {"padding": "SAME", "init": "glorot_uniform"}, "heads": heads}
    if task.heads("categorical"):
        for name in task.heads("ensemble"):
            heads[name]["error"] = "squared"  # without the ½; the other agents have Huber's
    if task.explores("ids"):
        # β₂ is TensorFlow's, which the code never sets.
        return changes | {"optimiser": {"b2": 0.999}, "explore": {"eps1": 0.0}}
    # TensorFlow's: ε inside the root, on averaged gradients, not centred.
    changes["optimiser"] = task.by_optimiser(rmsprop={"eps": 1e-5, "centered": False})
    if task.agent["agent"] == "ddqn":
        changes["learning"] = {"target_every_steps": 10_000}
    for name in task.heads("bayesian"):
        # A prior precision of 0.01 is a standard deviation of 10.
        heads[name] |= {"fit_batch": 10_000, "prior_std": 10.0}
        changes["optimiser"] = {"kind": "adam", "lr": 5e-5, "b2": 0.999, "eps": 0.01 / 32}
    # ε falls to 0.01 and is 0.001 when evaluated: of the ensembles too, on top of their rule.
    fall = {"start": 1.0, "end": 0.01, "decay_steps": DECAY_STEPS}
    if not task.explores("epsilon_greedy"):
        fall = {f"epsilon_{name}": value for name, value in fall.items()}
    votes = {"kind": "vote", "epsilon_start": 0.001, "epsilon_end": 0.001}
    evaluate = votes if task.evaluates("vote") else _epsilon_greedy(0.001)
    return changes | {"explore": fall, "evaluate": evaluate}
