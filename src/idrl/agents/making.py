"""The agent that a declaration makes for one environment."""

from __future__ import annotations

from idrl.actions import Actions, Box, in_words
from idrl.agents.agent import Agent
from idrl.agents.control import ControlAgent
from idrl.agents.spec import AgentSpec
from idrl.errors import IdrlError


def make_agent(
    spec: AgentSpec, obs_shape: tuple[int, ...], actions: Actions, env: str = "the environment"
) -> Agent:
    """Refuses an agent that cannot choose among `actions`, and names one that can."""
    continuous = isinstance(actions, Box)
    if continuous != (spec.actor is not None):
        need = "discrete ones" if spec.actor is None else "continuous ones"
        fits = spec.explore.example_agents[continuous]
        raise IdrlError(
            f"{env} has {in_words(actions)}, and this agent is for {need}; try {fits!r}."
        )
    if isinstance(actions, Box):
        return ControlAgent(spec, obs_shape, actions)
    return Agent(spec, obs_shape, actions)
