"""All rules: those that compare actions, and those that follow an actor."""

from idrl.agents.actor_rules import Undirected
from idrl.agents.choosing import Comparing

Rule = Comparing | Undirected
