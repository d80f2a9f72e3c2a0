"""What there is, by kind, with a line on each."""

from __future__ import annotations

import typing

from idrl.agents import agent_names, agent_summary
from idrl.agents.rule import Rule
from idrl.envs import families


def everything(what: str | None = None) -> dict[str, dict[str, str]]:
    rules = {r.kind: (r.__doc__ or "").strip().split("\n")[0] for r in typing.get_args(Rule)}
    found = {
        "agents": {name: agent_summary(name) for name in agent_names()},
        "envs": families(),
        "rules": rules,
    }
    return {what: found[what]} if what else found
