"""What there is, by kind, with a line on each."""

from __future__ import annotations

import textwrap

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


_BESIDE = 40  # columns that a line of text has to have to stand beside its name


def shown(title: str, entries: dict[str, str], width: int) -> str:
    """Names with their lines beside them, or below where a terminal is narrow. Words stay whole."""
    names = 5 + max(map(len, entries), default=0)
    beside = width - names >= _BESIDE
    indent = names if beside else 6
    lines = [title]
    for name, line in entries.items():
        told = textwrap.wrap(
            line, max(width - indent, 20), break_long_words=False, break_on_hyphens=False
        )
        if beside:
            first, *told = told or [""]
            lines.append(f"   {name}".ljust(names) + first)
        else:
            lines.append(f"   {name}")
        lines += [" " * indent + text for text in told]
    return "\n".join(line.rstrip() for line in lines)
