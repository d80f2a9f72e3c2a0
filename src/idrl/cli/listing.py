"""What there is, by kind, with a line on each."""

from __future__ import annotations

from idrl.agents import agent_names, agent_summary
from idrl.agents.rule_base import Rule
from idrl.envs import families
from idrl.envs.registry import atari_games


def everything(what: str | None = None) -> dict[str, dict[str, str]]:
    rules = {kind: rule.summary() for kind, rule in Rule.options().items()}
    envs = families()
    envs["atari/GAME"] += f": {', '.join(atari_games())}"
    found = {
        "agents": {name: agent_summary(name) for name in agent_names()},
        "envs": envs,
        "rules": rules,
    }
    return {what: found[what]} if what else found
