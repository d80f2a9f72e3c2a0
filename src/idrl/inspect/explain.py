"""A moment in an episode of a trained agent, to be looked at."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from idrl.envs import make_env
from idrl.errors import IdrlError
from idrl.ids import Decided, Decision
from idrl.inspect.walking import walk
from idrl.runs import api
from idrl.runs.policy import without
from idrl.system import words
from idrl.training.seeding import seed_key


class Explained(NamedTuple):
    obs: np.ndarray
    decision: Decided
    title: str


def moment(run_path: str | Path, *, seed: int | None = None, step: int = 0) -> Explained:
    """The decision at `step` of one episode that the run's agent plays by its evaluation rule."""
    run = api.open_run(run_path)
    if step < 0:
        raise IdrlError(f"step is {step}; an episode's first step is 0.")
    policy = api.load(run, seed)
    episode = walk(make_env(run.config.env), seed_key(policy.seed))
    seen = next(episode)
    for t in range(step):
        seen = episode.send(policy.predict(seen.obs, seen.allowed))
        if seen.over:
            raise IdrlError(f"the episode ended after {t + 1} steps; --step must be below that.")
    title = words.title(run.config.agent, run.config.env)
    title += f", seed {policy.seed}, step {step}"
    decision = policy.explain(seen.obs, seen.allowed)
    if isinstance(decision, Decision):
        decision = without(decision, seen.allowed)
    return Explained(np.asarray(seen.obs), decision, title)
