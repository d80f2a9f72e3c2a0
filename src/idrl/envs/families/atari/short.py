"""The preset `short`: what a run of 3M to 20M frames needs, the same for every agent.

The papers' numbers are for 200M frames. Of 10M, ε alone takes 4M to fall, the IDS agents copy their
target 62 times, and their learning rate is a fifth of C51's: after a twentieth of the frames such
differences would hide those between the agents. Where nothing else is said the numbers are
Dopamine's (Castro et al. 2018), chosen there to compare DQN, C51 and Rainbow with everything else
equal.
"""

from __future__ import annotations

from typing import Any

from idrl.envs.presets import PresetContext, Settings

# One place to change them in. Counts are agent steps, of four frames.
SHORT: dict[str, Any] = {
    # DQN's of Mnih et al. The declarations with RMSProp have it already.
    "rmsprop": {"lr": 2.5e-4},
    # C51's (Bellemare et al. 2017). With it and the target below `c51-ids` learns Pong in 6M frames
    # (results/atari). QR-DQN and IQN have 5e-5 in their papers and in Dopamine; not here.
    "adam": {"lr": 2.5e-4},
    # Prioritised replay and dueling streams have a quarter in their papers, of either optimiser
    # (Schaul et al., Wang et al. 2016, Hessel et al. 2018): larger gradients.
    "quarter": 0.25,
    "learning": {
        "learning_starts_steps": 20_000,  # 80K frames; the papers' 200K would be 7% of 3M
        # 32K frames, as Rainbow's. 10M frames have 312 copies; the IDS agents' own period makes 62.
        "target_every_steps": 8_000,
    },
    # Over 1M frames, where the papers have 4M, to the 0.01 of all that came after DQN.
    "epsilon": {"start": 1.0, "end": 0.01, "decay_steps": 250_000},
    # Of all, on the mean of their heads. Greedy policies can come to a standstill, which no short
    # window sees the end of (Breakout in results/atari).
    "evaluate": {"kind": "epsilon_greedy", "start": 0.001, "end": 0.001, "decay_steps": 0},
    # As often as the paper, for a fifth of its frames: 100K. Ten of the paper's windows would take
    # 106 s of an H200, beside the 4 to 5 minutes in which it trains 10M frames (results/atari).
    "evaluation": {"every_steps": 250_000, "steps": 25_000},
}
SCORED = ("greedy", "vote", "epsilon_greedy")  # rules that a score by ε-greedy replaces


def short(task: PresetContext) -> Settings:
    """What to lay over the settings that all presets share."""
    kind, learning = task.agent["optimiser"]["kind"], task.agent["learning"]
    changes: Settings = {name: dict(SHORT[name]) for name in ("learning", "evaluation")}
    if kind in SHORT:
        dueling = any(head.get("dueling") for head in task.agent["heads"].values())
        share = SHORT["quarter"] if dueling or learning["priority"] else 1.0
        changes["optimiser"] = {"lr": SHORT[kind]["lr"] * share}
    if task.explores("epsilon_greedy"):
        changes["explore"] = dict(SHORT["epsilon"])
    if task.evaluates(*SCORED):
        changes["evaluate"] = dict(SHORT["evaluate"])
    return changes
