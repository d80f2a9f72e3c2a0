"""Four seeds on as many devices as this process was given: `python devices.py FOLDER`."""

import sys
from pathlib import Path

import jax
import numpy as np
import small

import idrl
from idrl.config import resolve
from idrl.envs import make_env
from idrl.runs.session import make_program

HOSTED = {
    "trunk": {"hidden": [8]},
    "heads": {"q": {"hidden": [8]}},
    "learning": {"learning_starts_steps": 40, "replay_capacity": 400},
    "training": {"envs": 2, "log_every_steps": 100, "distributions_every_steps": 0},
    "evaluation": {"every_steps": 200, "steps": 100, "envs": 2},
}


def first_transitions(where):
    """The state before the first update, and what that is made from."""
    config = resolve("dqn-ids", "deep_sea/4", changes=[small.SETTINGS, {"seeds": 4, "seed": 5}])
    program = make_program(config, make_env(config.env))
    assert (1 if program.mesh is None else program.mesh.size) == jax.device_count()
    state, _ = program.start(program.seed_keys(config.seed))
    written = program.cadence.warmup_vector_steps
    batch = jax.jit(jax.vmap(program._draw, (0, None, None)))(state, written, 0)
    leaves, _ = jax.tree.flatten_with_path(jax.device_get((state, batch)))
    np.savez(where, **{jax.tree_util.keystr(path): leaf for path, leaf in leaves})
    program.close()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    first_transitions(folder / "first.npz")
    for name in ("compiled", "again"):
        small.train(folder / name, seeds=4)
    idrl.train("dqn", "gym/CartPole-v1", steps=400, seeds=4, settings=HOSTED, out=folder / "hosted")
