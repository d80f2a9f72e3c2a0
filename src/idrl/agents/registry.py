"""Agents by name. A declaration is a function that returns an `AgentSpec`."""

from __future__ import annotations

from collections.abc import Callable

from idrl.agents.spec import AgentSpec
from idrl.errors import IdrlError, unknown

_AGENTS: dict[str, Callable[[], AgentSpec]] = {}


def agent(name: str):
    """Decorator: make `name` stand for the declaration below."""

    def register(declare: Callable[[], AgentSpec]) -> Callable[[], AgentSpec]:
        register_agent(name, declare)
        return declare

    return register


def register_agent(name: str, declare: Callable[[], AgentSpec]) -> None:
    """Make `name` stand for `declare()` wherever an agent's name is asked for."""
    if name in _AGENTS:
        raise IdrlError(f"an agent named {name!r} is registered already; choose another name.")
    _AGENTS[name] = declare


def declared(name: str) -> AgentSpec:
    if name not in _AGENTS:
        raise unknown("agent", name, _AGENTS)
    return _AGENTS[name]()


def agent_names(continuous: bool | None = None) -> list[str]:
    """All, or those for continuous actions, or those for discrete ones."""
    if continuous is None:
        return list(_AGENTS)
    return [name for name in _AGENTS if (declared(name).actor is not None) == continuous]


def agent_summary(name: str) -> str:
    return (_AGENTS[name].__doc__ or "").strip().split("\n")[0]
