"""What there is, by kind, with a line on each."""

from __future__ import annotations

from idrl.agents import agent_names, agent_summary
from idrl.agents.optimisers import Optimiser
from idrl.agents.rule_base import Rule
from idrl.envs import families
from idrl.networks.heads import Head
from idrl.networks.trunks import Trunk
from idrl.schema import Part

PARTS: dict[str, type[Part]] = {
    "rules": Rule, "heads": Head, "trunks": Trunk, "optimisers": Optimiser
}  # fmt: skip


def everything(what: str | None = None) -> dict[str, dict[str, str]]:
    found = {
        "agents": {name: agent_summary(name) for name in agent_names()},
        "envs": families(),
        **{category: _summaries(parts) for category, parts in PARTS.items()},
    }
    return {what: found[what]} if what else found


def _summaries(category: type[Part]) -> dict[str, str]:
    return {kind: part.summary() for kind, part in category.options().items()}
