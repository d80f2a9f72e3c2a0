"""The agent that a run trained."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from idrl.agents import make_agent
from idrl.errors import IdrlError
from idrl.runs.keeping import find_kept
from idrl.runs.policy import Policy, load_policy
from idrl.runs.run import Run, newest_checkpoint, open_run
from idrl.storage import checkpoint
from idrl.storage.folder import RunFolder

MODEL = ".safetensors"


def open_agent(path: str | Path | Run) -> Run | Policy:
    """A run, or the agent in a model file, whose ending may be omitted."""
    if isinstance(path, Run):
        return path
    file = model_file(path)
    if file is None and not os.path.exists(path):
        raise IdrlError(f"there is no run folder or model file {str(path)!r}.")
    return open_run(path) if file is None else load(file)


def model_file(path: str | Path) -> Path | None:
    """The file that `path` names; none where it names a folder, or nothing."""
    path = Path(path)
    whole = path.with_name(path.name + MODEL) if path.name and not os.path.exists(path) else path
    return whole if os.path.isfile(whole) else None


def check_weights(weights: str) -> None:
    if weights not in ("best", "latest"):
        raise IdrlError(f"weights is {weights!r}; it must be 'best' or 'latest'.")


def check_acting(acting: str) -> None:
    if acting not in ("explore", "evaluate"):
        raise IdrlError(f"acting is {acting!r}; it must be 'explore' or 'evaluate'.")


def load(
    path: str | Path | Run, seed: int | None = None, weights: str = "best", *, at: int | None = None
) -> Policy:
    """Load a trained agent: from a file that `Policy.save` wrote, or from a run.

    Args:
        path: a run, its folder, or a model file, whose ending may be omitted.
        seed: which seed of the run; by default the one that scored best.
        weights: `"best"`, the weights of its best evaluation, or `"latest"`.
        at: a step whose weights the run kept (`Run.kept_weights`), as if it had ended there.
    """
    check_weights(weights)
    file = None if isinstance(path, Run) else model_file(path)
    if file is not None:
        if seed is not None:
            raise IdrlError(f"{str(path)!r} holds one agent: omit seed={seed}.")
        if at is not None:
            raise IdrlError(f"{str(path)!r} holds one agent: omit at={at}.")
        if weights != "best":
            raise IdrlError(f"{str(path)!r} holds one agent: omit weights={weights!r}.")
        from idrl.runs.exporting import refusal

        told = refusal(file)
        if told is not None:
            raise IdrlError(told)
        return load_policy(file)
    run = open_run(path)
    if at is not None and weights != "best":
        raise IdrlError(f"at={at} and weights={weights!r} both say which weights: omit one.")
    kept = None if at is None else find_kept(RunFolder.open(run.path), at)
    place = newest_checkpoint(run)
    folder = RunFolder.open(run.path)
    agent = make_agent(run.config.spec, *folder.read_shapes())
    count = run.config.seeds
    scores = checkpoint.restore(place, jax.ShapeDtypeStruct((count,), np.float32), "best/score")
    if seed is None:
        index = int(np.argmax(scores))
    elif seed in run.seeds:
        index = seed - run.config.seed
    else:
        held = f"seeds {run.seeds[0]} to {run.seeds[-1]}" if count > 1 else f"seed {run.seeds[0]}"
        raise IdrlError(f"the run has {held}, not {seed}.")
    example = jax.ShapeDtypeStruct((count, 1, *agent.obs_shape), np.float32)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), count))
    like = jax.eval_shape(jax.vmap(agent.init), keys, example)
    evaluated = np.isfinite(scores[index])
    source = "best/params/" if weights == "best" and evaluated else "agent/params/"
    config, sources = run.config, (source, "agent/prior/")
    if kept is not None and at is not None:  # schedules end with the run, so here
        config = replace(config, training=replace(config.training, steps=at))
        place, sources = kept, ("params/", "prior/")
    params = checkpoint.restore(place, like.params, sources[0])
    prior = checkpoint.restore(place, like.prior, sources[1])
    params, prior = jax.tree.map(lambda x: x[index], (params, prior))
    env_object = bool(folder.read_about().get("env_object"))
    return Policy(config, agent, params, prior, config.seed + index, env_object)
