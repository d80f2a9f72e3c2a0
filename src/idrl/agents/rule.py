"""All rules: those that compare actions, and those that follow an actor."""

from idrl.agents.choosing import Comparing
from idrl.agents.noise import Undirected

Rule = Comparing | Undirected
