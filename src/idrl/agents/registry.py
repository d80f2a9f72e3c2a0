"""Agents by name. A declaration is a function that returns an `AgentSpec`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

from idrl.agents.spec import AgentSpec
from idrl.errors import IdrlError, unknown
from idrl.schema import first_paragraph, same_place

Declaration = Callable[[], AgentSpec]
Presets = Literal["task", "all"]


class _Registered(NamedTuple):
    declare: Declaration
    presets: Presets


_AGENTS: dict[str, _Registered] = {}


def agent(name: str, *, presets: Presets = "task") -> Callable[[Declaration], Declaration]:
    """Decorator: `register_agent` for the declaration below.

    Args:
        name: the name of the agent.
        presets: see `register_agent`.
    """
    if not isinstance(name, str):
        raise IdrlError('write @idrl.agent("name") above the function, with a name of its own.')

    def register(declare: Declaration) -> Declaration:
        register_agent(name, declare, presets)
        return declare

    return register


def register_agent(name: str, declare: Declaration, presets: Presets = "task") -> None:
    """Make `name` stand for `declare()` wherever the name of an agent is expected.

    Args:
        name: the name of the agent.
        declare: a function without arguments that returns an `AgentSpec`.
        presets: what the preset of a task may change in the declaration. `"task"`: what the task
            decides (`training`, `evaluation`, the range of returns, a discount or a treatment of
            rewards that belongs to it). `"all"`: also networks, optimiser and schedule, as for the
            built-in agents, whose declarations hold the numbers of their papers.
    """
    if not isinstance(name, str) or not name or name != name.strip():
        raise IdrlError(f"an agent cannot be called {name!r}; a name is a word, as 'my-agent'.")
    if not callable(declare):
        raise IdrlError(
            f"the agent {name!r} is declared by a function that returns an AgentSpec, not by "
            f"{declare!r}."
        )
    if presets not in get_args(Presets):
        known = " or ".join(map(repr, get_args(Presets)))
        raise IdrlError(f"presets is {presets!r} for the agent {name!r}; it must be {known}.")
    old = _AGENTS.get(name)
    if old is not None and not same_place(old.declare, declare):
        raise IdrlError(f"an agent named {name!r} is registered already; choose another name.")
    _AGENTS[name] = _Registered(declare, presets)


def declared(name: str) -> AgentSpec:
    """The declaration of a registered agent.

    Args:
        name: its name.
    """
    try:
        found = _found(name).declare()
    except IdrlError:
        raise
    except Exception as error:
        raise IdrlError(
            f"the declaration of the agent {name!r} raised {type(error).__name__}: {error}."
        ) from error
    if not isinstance(found, AgentSpec):
        raise IdrlError(f"the declaration of the agent {name!r} returned {found!r}, no AgentSpec.")
    return found


def presets_of(name: str) -> Presets:
    return _found(name).presets


def is_built_in(name: str) -> bool:
    return getattr(_found(name).declare, "__module__", "").startswith(f"{__package__}.")


def agent_names(continuous: bool | None = None) -> list[str]:
    """The names of all registered agents.

    Args:
        continuous: true: only those for continuous actions; false: only those for discrete ones.
    """
    if continuous is None:
        return list(_AGENTS)
    return [name for name in _AGENTS if (declared(name).actor is not None) == continuous]


def agent_summary(name: str) -> str:
    """The first paragraph of the docstring of an agent's declaration.

    Args:
        name: its name.
    """
    return first_paragraph(_found(name).declare.__doc__)


def _found(name: str) -> _Registered:
    if name not in _AGENTS:
        raise unknown("agent", name, _AGENTS)
    return _AGENTS[name]
