"""The agent that a declaration makes for one environment."""

from __future__ import annotations

from idrl.actions import Actions, Box, in_words
from idrl.agents.agent import Agent
from idrl.agents.control import ControlAgent
from idrl.agents.rehearsing import rehearse
from idrl.agents.spec import AgentSpec
from idrl.errors import IdrlError


def make_agent(
    spec: AgentSpec, obs_shape: tuple[int, ...], actions: Actions, env: str = "the environment"
) -> Agent:
    """Refuses an agent that cannot choose among `actions`, and names one that can; and one with a
    part that does not work."""
    continuous = isinstance(actions, Box)
    if continuous != (spec.actor is not None):
        need = "discrete ones" if spec.actor is None else "continuous ones"
        fits = spec.explore.example_agents[continuous]
        raise IdrlError(
            f"{env} has {in_words(actions)}, and this agent is for {need}; try {fits!r}."
        )
    made = (
        ControlAgent(spec, obs_shape, actions)
        if isinstance(actions, Box)
        else Agent(spec, obs_shape, actions)
    )
    rehearse(made)
    return made
