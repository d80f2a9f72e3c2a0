"""A moment in an episode of a trained agent, to be looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from idrl.agents.telling import told
from idrl.errors import IdrlError
from idrl.ids import Decided, Decision
from idrl.inspect.walking import walk
from idrl.report.decisions import COLUMNS, SYMBOLS, decision_rows
from idrl.runs import api
from idrl.runs.evaluating import world_of
from idrl.runs.loading import open_agent
from idrl.runs.policy import Policy, without
from idrl.runs.run import Run
from idrl.system import words
from idrl.system.arguments import whole
from idrl.system.tables import TextTable
from idrl.training.seeding import seed_key


class Explained(NamedTuple):
    """What an agent sees, and how it decides. Printed, and shown by a notebook, as a table."""

    obs: np.ndarray
    decision: Decided
    title: str
    names: tuple[str, ...] = COLUMNS  # of the numbers that mean something for this agent

    def __repr__(self) -> str:
        return f"Explained({self.title}: {self.decision!r})"

    def __str__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()

    def table(self) -> TextTable:
        """A row an action."""
        heads = ["", "action", *(SYMBOLS[name] for name in self.names)]
        return TextTable(heads, decision_rows(self.decision, self.names), self.title, keys=2)


def explain(
    run: Run | Policy | str | Path, env: Any = None, *, seed: int | None = None, step: int = 0
) -> Explained:
    """Explain one decision of a trained agent.

    The agent plays an episode by its evaluation rule up to `step`; what is returned is the
    observation there and the `decision` of the rule it explores with.

    Args:
        run: a run, its folder, a model file, or a loaded agent.
        env: what it plays; by default what it was trained on.
        seed: which seed of the run; by default the best.
        step: which step of the episode; the first is 0.
    """
    step = whole("step", step, 0)
    policy = run if isinstance(run, Policy) else open_agent(run)
    if isinstance(policy, Policy):
        if seed is not None:
            raise IdrlError(f"a loaded agent has its seed: omit seed={seed}.")
    else:
        policy = api.load(policy, seed)
    config, agent = policy.config, policy.agent
    world = world_of(config, env, policy.env_object, agent.obs_shape, agent.actions)
    episode = walk(world, seed_key(policy.seed))
    seen = next(episode)
    for t in range(step):
        seen = episode.send(policy.predict(seen.obs, seen.allowed))
        if seen.over:
            raise IdrlError(f"the episode ended after {t + 1} steps; --step must be below that.")
    title = words.title(config.agent, config.env if env is None else world.name)
    title += f", seed {policy.seed}, step {step}"
    decision = policy.explain(seen.obs, seen.allowed)
    if isinstance(decision, Decision):
        decision = without(decision, seen.allowed)
    return Explained(np.asarray(seen.obs), decision, title, told(config.spec))
