"""The agent that a run trained."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np

from idrl.agents import make_agent
from idrl.errors import IdrlError
from idrl.runs.policy import Policy, load_policy
from idrl.runs.run import Run, newest_checkpoint, open_run
from idrl.storage import checkpoint
from idrl.storage.folder import RunFolder


def load(path: str | Path | Run, seed: int | None = None, weights: str = "best") -> Policy:
    """Load a trained agent: from a file that `Policy.save` wrote, or from a run.

    Args:
        path: a run, its folder, or a model file.
        seed: which seed of the run; by default the one that scored best.
        weights: `"best"`, the weights of its best evaluation, or `"latest"`.
    """
    if weights not in ("best", "latest"):
        raise IdrlError(f"weights is {weights!r}; it must be 'best' or 'latest'.")
    if not isinstance(path, Run) and Path(path).is_file():
        if seed is not None:
            raise IdrlError(f"{str(path)!r} holds one agent: omit seed={seed}.")
        from idrl.runs.exporting import refusal

        told = refusal(Path(path))
        if told is not None:
            raise IdrlError(told)
        return load_policy(Path(path))
    run = open_run(path)
    place = newest_checkpoint(run)
    agent = make_agent(run.config.spec, *RunFolder.open(run.path).read_shapes())
    count = run.config.seeds
    scores = checkpoint.restore(place, jax.ShapeDtypeStruct((count,), np.float32), "best/score")
    if seed is None:
        index = int(np.argmax(scores))
    elif seed in run.seeds:
        index = seed - run.config.seed
    else:
        raise IdrlError(f"the run has seeds {run.seeds[0]} to {run.seeds[-1]}, not {seed}.")
    example = jax.ShapeDtypeStruct((count, 1, *agent.obs_shape), np.float32)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), count))
    like = jax.eval_shape(jax.vmap(agent.init), keys, example)
    evaluated = np.isfinite(scores[index])
    source = "best/params/" if weights == "best" and evaluated else "agent/params/"
    params = checkpoint.restore(place, like.params, source)
    prior = checkpoint.restore(place, like.prior, "agent/prior/")
    params, prior = jax.tree.map(lambda x: x[index], (params, prior))
    return Policy(run.config, agent, params, prior, run.config.seed + index)
