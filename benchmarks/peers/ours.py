"""Our side of the comparisons: a program for the work of a task, and a stretch of it."""

from __future__ import annotations

import jax
import numpy as np

from benchmarks.peers import work, worlds
from idrl.agents import declared
from idrl.config import resolve
from idrl.envs import make_env, register_env
from idrl.runs.session import make_program, prepare_memory
from idrl.schema import merge
from idrl.system.devices import prepare
from idrl.training.evaluation import play_episodes
from idrl.training.learner import key_of
from idrl.training.spec import due

register_env("screens", lambda: worlds.Screens(channels_first=False))
ENVS = {
    "cartpole": "cartpole",
    "breakout": "minatar/breakout?sticky=0&limit=1000",
    "screens": "screens",
}
NETWORKS = {
    "cartpole": ({"kind": "mlp", "hidden": [64]}, [64]),
    "breakout": ({"kind": "minatar_cnn", "channels": 16}, [128]),
    "screens": ({"kind": "nature_cnn"}, [512]),
}
HEADS = {
    "c51": {"atoms": work.ATOMS, "v_min": work.V_MIN, "v_max": work.V_MAX},
    "qr-dqn": {"quantiles": work.ATOMS},
    "iqn": {"samples": work.FRACTIONS, "act_samples": work.ACT_FRACTIONS, "embedding": 64},
}
_LONG = 1_000_000_000


def settings(task: work.Task, agent: str) -> dict:
    """The work of a task; everything else is as the agent is declared."""
    trunk, hidden = NETWORKS[task.name]
    heads = {name: {"hidden": hidden} | HEADS.get(agent, {}) for name in declared(agent).heads}
    explore = {"start": 1.0, "end": task.eps_end, "decay_steps": task.eps_steps}
    return {
        "trunk": trunk,
        "heads": heads,
        "explore": explore if declared(agent).explore.kind == "epsilon_greedy" else {},
        "optimiser": {"kind": "adam", "lr": task.lr, "b2": 0.999, "eps": 1e-8},
        "learning": {
            "gamma": task.gamma, "batch_size": task.batch, "update_every_steps": task.update_every,
            "target_every_steps": task.target_every, "learning_starts_steps": task.starts,
            "replay_capacity": task.replay,
        },
        # Speed is measured without evaluations, theirs as well.
        "training": {"envs": task.envs, "steps": _LONG, "distributions_every_steps": 0},
        "evaluation": {"every_steps": _LONG},
    }  # fmt: skip


def program_of(task: work.Task, agent: str, seeds: int, change: dict | None = None):
    prepare()
    changes = merge(settings(task, agent), {"seeds": seeds} | (change or {}))
    config = resolve(agent, ENVS[task.name], changes=[changes])
    prepare_memory(config)
    return make_program(config, make_env(config.env))


def runner(program, steps: int):
    """Past the random steps and the first block, which is compiled; then `steps` more a call."""
    c = program.cadence
    program.ahead(fresh=True)
    state, _ = program.start(program.seed_keys(0))
    box = [state, 0]

    def block() -> None:
        box[0], out = program.block(box[0], np.int32(box[1]))
        jax.device_get(out)  # as the training loop does
        box[1] = c.end(box[1])

    def stretch() -> int:
        first = box[1]
        while (box[1] - first) * c.steps < steps:
            block()
        jax.block_until_ready(box[0])
        return (box[1] - first) * c.steps

    block()
    return stretch


# What the other library does and does not let one change, said in our settings.
LIKE = {
    "sb3": {
        "heads": {"q": {"error": "huber", "init": "torch"}}, "trunk": {"init": "torch"},
        "optimiser": {"max_grad_norm": 10.0},
    },
    "rejax": {
        "heads": {"q": {"error": "squared", "init": "lecun_normal"}},
        "trunk": {"init": "lecun_normal"},
    },
}  # fmt: skip


def learn(clock, name: str, like: str, seeds: list[int]) -> None:
    """Curves of greedy episodes, all seeds at once, told point by point."""
    task, every = work.LEARNING[name], work.EVAL_EVERY[name]
    change = {"training": {"steps": work.STEPS[name]}, "evaluation": {"every_steps": every}}
    program = program_of(task, "dqn", len(seeds), merge(LIKE[like], change))
    c = program.cadence

    def look(state, number):
        def one(state):
            key = key_of(state, "score", number)
            played = play_episodes(
                program.agent, program.env, state.agent.params, state.agent.prior, state.task, key,
                work.EVAL_EPISODES, work.EVAL_EPISODES * 1_000,
            )  # fmt: skip
            return played.return_mean

        return jax.vmap(one)(state)

    judge = jax.jit(look)
    state, _ = program.start(program.seed_keys(seeds[0]))
    iteration = 0
    while iteration < c.total:
        state, _ = program.block(state, np.int32(iteration))
        before, iteration = c.steps_at(iteration), c.end(iteration)
        steps = c.steps_at(iteration)
        if due(before, steps, every):
            for seed, value in zip(seeds, judge(state, np.int32(iteration)).tolist(), strict=True):
                clock.tell(seed=seed, steps=steps, value=value, seconds=clock.seconds())
