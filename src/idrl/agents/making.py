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
    """The functions of an agent (`init`, `choose`, `learn`) for one kind of observation and action.

    Refuses an agent that cannot choose among the actions, and names one that can; and one with a
    part that does not work.

    Args:
        spec: its declaration.
        obs_shape: the shape of one observation.
        actions: how many discrete actions there are, or an `idrl.Box`.
        env: the name of the environment, for error messages.
    """
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
