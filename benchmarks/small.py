"""Small tasks on this machine: time per update, steps per second, and where the time goes.

    python -m benchmarks.small [--out results/speed/small.csv]

The peer is the loop most people write: the same agent, jitted act and jitted learn, called from
Python step by step. Both run in this process, alternating; medians of several stretches.
"""

from __future__ import annotations

import argparse
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tables import write
from idrl.config import resolve
from idrl.envs import make_env
from idrl.replay import ring as ring
from idrl.runs.session import make_program
from idrl.system.devices import prepare
from idrl.training.rollout import advance

CASES = (  # agent, environment, seeds
    ("c51-ids", "deep_sea/10", 1),
    ("c51-ids", "deep_sea/10", 8),
    ("dqn", "cartpole", 1),
    ("dqn", "cartpole", 8),
)


def seconds(call, repeats: int = 5) -> float:
    """Median over `repeats`, after one call to compile."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def compiled(program) -> float:
    """Seconds per iteration of the compiled block."""
    state, _ = program.start(program.seed_keys(0))
    box = [state]

    def call():
        box[0], out = program.block(box[0], np.int32(0))
        jax.block_until_ready((box[0], out))

    return seconds(call) / program.cadence.block


def plain_loop(program, iterations: int = 100) -> float:
    """Seconds per iteration of one seed driven from Python."""
    c = program.cadence
    state, _ = program.start(program.seed_keys(0))
    one = jax.tree.map(lambda x: x[0], state)
    act = jax.jit(
        lambda s, t: program._act(program.agent.spec.explore, s, t, t)[0], donate_argnums=0
    )
    learn = jax.jit(lambda s, t, u: program._learn(s, t, u)[0], donate_argnums=0)
    box = [one]

    def call():
        for i in range(iterations):
            t = c.warmup_vector_steps + i * c.vector_steps
            for k in range(c.vector_steps):
                box[0] = act(box[0], np.int32(t + k))
            for u in range(c.updates):
                box[0] = learn(box[0], np.int32(t), np.int32(u))
        jax.block_until_ready(box[0])

    return seconds(call, 3) / iterations


def profile(program, turns: int = 200) -> dict[str, float]:
    """Microseconds per turn of each part of an iteration of one seed, measured alone."""
    agent, learning = program.agent, program.learning
    state, _ = program.start(program.seed_keys(0))
    one = jax.tree.map(lambda x: x[0], state)
    written = jnp.int32(program.cadence.warmup_vector_steps)
    batch = ring.sample(one.replay, jax.random.key(0), written, learning.batch_size, learning.gamma)
    grads = jax.grad(agent.loss, has_aux=True)(one.agent.params, one.agent, batch)[0]

    def repeated(step, carry):
        loop = jax.jit(
            lambda c: jax.lax.scan(lambda c, t: (step(c, t), None), c, jnp.arange(turns))[0]
        )
        return 1e6 * seconds(lambda: jax.block_until_ready(loop(carry))) / turns

    def env_only(worlds, t):
        zero = jnp.zeros(program.envs, jnp.int32)
        return advance(program.env, one.task, worlds, zero, worlds.memory, jax.random.key(t))[0]

    def choose(worlds, t):
        decision, _ = agent.choose(
            agent.spec.explore, one.agent.params, one.agent.prior, worlds.obs, worlds.first,
            worlds.memory, jax.random.key(t), t,
        )  # fmt: skip
        return worlds._replace(memory=decision.action)

    def sample(total, t):
        drawn = ring.sample(one.replay, jax.random.key(t), written, learning.batch_size, 0.99)
        return total + drawn.r_t.sum() + drawn.s_t.sum() + drawn.s_tm1.sum()

    def turned(t):
        """The batch in another order each time, or XLA takes its targets out of the loop."""
        return jax.tree.map(lambda x: jnp.roll(x, t, 0), batch)

    def forward(params, t):
        loss, _ = agent.loss(params, one.agent, turned(t))
        return jax.tree.map(lambda x: x + 0 * loss, params)

    def gradient(params, t):
        grad = jax.grad(agent.loss, has_aux=True)(params, one.agent, turned(t))[0]
        return jax.tree.map(lambda x, g: x - 1e-9 * g, params, grad)

    def optimise(carry, t):
        params, opt = carry
        updates, opt = agent.optimiser.update(grads, opt, params)
        return jax.tree.map(jnp.add, params, updates), opt

    return {
        "environment step": repeated(env_only, one.worlds),
        "choose": repeated(choose, one.worlds),
        "sample a batch": repeated(sample, jnp.float32(0)),
        "loss": repeated(forward, one.agent.params),
        "loss and gradient": repeated(gradient, one.agent.params),
        "optimiser": repeated(optimise, (one.agent.params, one.agent.opt_state)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out")
    options = parser.parse_args()
    prepare()
    rows = []
    for agent, env, seeds in CASES:
        config = resolve(agent, env, changes=[{"seeds": seeds}])
        program = make_program(config, make_env(env))
        c = program.cadence
        alone = make_program(resolve(agent, env), make_env(env))
        ours, theirs = [], []
        for _ in range(3):  # alternate, so that whatever else the machine does hits both
            ours.append(compiled(program))
            theirs.append(plain_loop(alone))
        fast, slow = statistics.median(ours), statistics.median(theirs)
        row = {
            "agent": agent, "env": env, "seeds": seeds,
            "steps_per_s": round(seeds * c.steps / fast),
            "us_per_update": round(1e6 * fast / (seeds * c.updates), 1),
            "python_loop_steps_per_s": round(c.steps / slow),
            "ratio": round(seeds * slow / fast, 2),
            "spread": round((max(ours) - min(ours)) / fast, 3),
        }  # fmt: skip
        rows.append(row)
        print(row)
        if seeds == 1:
            for name, us in profile(program).items():
                print(f"    {name:20s} {us:8.1f} µs")
    if options.out:
        write(options.out, rows)


if __name__ == "__main__":
    main()
