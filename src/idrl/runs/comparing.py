"""Runs against each other, or against anything with a `predict`."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

import numpy as np

from idrl.envs.checking import own_env
from idrl.errors import IdrlError
from idrl.report import comparing
from idrl.report.comparing import AgentComparison, Side
from idrl.runs.evaluating import evaluate
from idrl.runs.policy import Policy
from idrl.runs.run import Run, open_run
from idrl.system import words
from idrl.training.predictors import is_predictor

EPISODES = 100


def compare(
    one: Any, other: Any, *, env: Any = None, episodes: int | None = None
) -> AgentComparison:
    """Estimate which of two agents is better, with what probability.

    Returns the `chance` that the first is better, a `verdict` in words, and the numbers as a
    `sheet`. Two runs, or two folders of runs of one agent each, are compared by the best evaluation
    of each seed, task by task. Where a side is an agent or an object with a `predict`, or where
    `env` or `episodes` is given, both play whole episodes anew, runs with the best weights of each
    seed.

    Args:
        one: a run, a folder of runs, a loaded agent, an object with a `predict`, or a list of such
            objects, one per seed.
        other: the same.
        env: what both play; by default the run's own task.
        episodes: how many episodes each seed plays (100).
    """
    sides = (one, other)
    if env is None and episodes is None and all(isinstance(x, str | PathLike) for x in sides):
        return comparing.compare(one, other)
    opened = [_opened(side) for side in sides]
    known = next((x for x in opened if isinstance(x, Run | Policy)), None)
    if env is None and known is None:
        raise IdrlError("neither side says what it plays: pass env=….")
    task = known.config.env if env is None and known is not None else env
    first = known.seed if isinstance(known, Policy) else known.config.seed if known else 0
    count = EPISODES if episodes is None else episodes
    world = task if isinstance(task, str) else own_env(task)
    name = world if isinstance(world, str) else world.name
    found = []
    for side in opened:
        scores = _scores(side, None if env is None else world, world, count, first)
        found.append(Side(_name(side), {(name, f"{count} episodes"): scores}))
    places = tuple(words.name(x.path) if isinstance(x, Run) else _name(x) for x in opened)
    a, b = found
    what = f"The best weights of each seed over {count} whole episodes"
    return comparing.compare_sides(a, b, (places[0], f"{places[1]} (second)"), what)


def _opened(side: Any) -> Any:
    if isinstance(side, Policy):
        return side
    if isinstance(side, str | PathLike):
        return side if isinstance(side, Run) else open_run(fspath(side))
    models = list(side) if isinstance(side, list | tuple) else [side]
    if not models or not all(map(is_predictor, models)):
        raise IdrlError(
            f"{type(side).__name__} cannot be compared: pass a run, a loaded agent, or objects "
            "with predict(observation, state, episode_start, deterministic)."
        )
    return models


def _scores(side: Any, asked: Any, env: Any, episodes: int, first: int) -> np.ndarray:
    """In `env`, which was `asked` for or is what one of the sides was trained on: that side plays
    its own."""
    if isinstance(side, list):  # each as the run's seed of the same number would play
        each = [
            evaluate(model, env, episodes=episodes, seed=first + i) for i, model in enumerate(side)
        ]
        return np.array([score.return_mean for score in each], np.float64)
    own = asked is None and env == side.config.env
    score = evaluate(side, None if own else env, episodes=episodes)
    return np.atleast_1d(np.asarray(score.return_mean, np.float64))


def _name(side: Any) -> str:
    return words.name(type(side[0]).__name__ if isinstance(side, list) else side.config.agent)
