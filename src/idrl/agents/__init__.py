"""Agents: declarations over trunk, heads and rules, and the code that runs them."""

from idrl.agents import continuous, distributional, dqn, ensembles  # noqa: F401  (importing registers them)
from idrl.agents.agent import Agent, AgentState
from idrl.agents.making import make_agent
from idrl.agents.registry import agent_names, agent_summary, declared, register_agent
from idrl.agents.spec import AgentSpec

__all__ = [
    "Agent", "AgentSpec", "AgentState", "agent_names", "agent_summary", "declared", "make_agent",
    "register_agent",
]  # fmt: skip
