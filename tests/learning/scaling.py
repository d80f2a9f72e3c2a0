"""A declaration on a small task: one rule for all agents.

The preset for pictures is laid over it, as for anybody's own environment. What an agent is declared
with stays: trunk, heads and their widths, rules, optimiser, batch, double, priorities, n-step
returns, an update every four steps. The two things that change are counts.

- **Spans.** Whatever is counted in agent steps is divided by 100: targets, the first update, the
  fall of ε, the replay, the transitions of a regression.
- **Length.** Adam and RMSProp move a weight by about their learning rate an update, so an agent has
  as many updates as move it by `DISTANCE`. With one length for all, Bootstrapped DQN with an ε a
  thousand times too large is faster (17,000 steps) than `dueling` with its own (21,000).
"""

from __future__ import annotations

from typing import Any

from idrl.agents import declared
from idrl.config import resolve
from idrl.schema import to_dict

SCALE = 100
DISTANCE = 0.9  # 14,400 steps with DQN's 2.5e-4, 72,000 with the IDS agents' 5e-5
SMALLEST_LR = 5e-5  # that any agent is declared with: a smaller one gets no more updates
_SECTIONS = ("heads", "explore", "evaluate", "learning")


def _is_span(name: str) -> bool:
    """Whether it is a length of time; `update_every_steps` is a ratio."""
    counted = name.endswith("_steps") or name in ("replay_capacity", "fit_batch")
    return counted and name != "update_every_steps"


def divided(settings: dict[str, Any]) -> dict[str, Any]:
    """What changes when every span in `settings` is divided."""
    changes: dict[str, Any] = {}
    for name, value in settings.items():
        inner = divided(value) if isinstance(value, dict) else None
        if inner:
            changes[name] = inner
        elif _is_span(name) and value:
            changes[name] = max(1, round(value / SCALE))
    return changes


def settings(agent: str, env: str, episode: int) -> dict[str, Any]:
    """What to change in the preset's settings. `episode`: its steps."""
    preset, own = to_dict(resolve(agent, env)), to_dict(declared(agent))
    same = ("trunk", "optimiser", "explore", "evaluate", "heads")
    assert {name: preset[name] for name in same} == {name: own[name] for name in same}
    updates = DISTANCE / max(preset["optimiser"]["lr"], SMALLEST_LR)
    steps = round(updates * preset["learning"]["update_every_steps"])
    return divided({section: preset[section] for section in _SECTIONS}) | {
        "training": {"steps": steps, "log_every_steps": steps, "distributions_every_steps": 0},
        "evaluation": {"every_steps": 500, "steps": 80 * episode, "envs": 20},
    }
