"""Whether a GPU computes the same updates as the CPU, from the same state, at Atari size.

    python -m benchmarks.gpu_agrees [--updates 16] [--agent c51-ids] [--precision full]

Both start from one state whose replay holds frames that differ and rewards that depend on them,
draw the same batches and make the same updates. Prints, for every array of weights, how far it
moved on each and how far apart they end; that distance should be a small share of the movement.
Floating-point sums differ, so nothing here is equal bit for bit. Then a longer stretch on the GPU
alone: the mean size of every array of weights, which must not fall towards zero. Last the training
loop itself: every frame in the device's replay against what the emulators showed, in the random
steps and while updates run beside the transfers.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("JAX_PLATFORMS", "cuda,cpu")

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import atari
from idrl.training.hosted import _student


def filled(program, rng):
    """On the host: frames of moving squares; a step pays 1 where the square is on the right."""
    state = jax.device_get(atari.blank_state(program))
    rows, envs = state.replay.facts.shape[1:3]
    frames = np.full((1, rows, envs, 84, 84), 87, np.uint8)
    x = rng.integers(0, 76, (rows, envs))
    y = rng.integers(0, 76, (rows, envs))
    for t in range(rows):
        for e in range(envs):
            frames[0, t, e, y[t, e] : y[t, e] + 8, x[t, e] : x[t, e] + 8] = 236
    facts = np.array(state.replay.facts)
    facts[0, ..., 0] = rng.integers(0, program.agent.num_actions, (rows, envs))
    facts[0, ..., 1] = x > 38
    facts[0, ..., 2] = rng.random((rows, envs)) < 0.1
    return state._replace(replay=state.replay._replace(obs=frames, facts=facts))


def after(program, state, device, count: int, unroll: int, calls: int = 1):
    """Weights and metrics after `calls` times `count` updates on `device`."""
    program.unroll = unroll
    with jax.default_device(device):
        update = jax.jit(lambda s, first: program._updates(s, program.replay_rows, first, count))
        here = jax.device_put(_student(state), device)
        for call in range(calls):
            here, metrics = update(here, jnp.int32(call * count))
        return jax.device_get((here.agent.params, metrics))


class Floats:
    """A trunk that is given numbers, not bytes, so that no product has to turn one into the other
    on its way: whether that is where a GPU goes wrong."""

    def __init__(self, trunk):
        self.trunk = trunk

    def init(self, key, obs):
        return self.trunk.init(key, obs)

    def apply(self, params, obs):
        return self.trunk.apply(params, jax.lax.optimization_barrier(obs.astype(jnp.float32)))


def loop(args) -> None:
    """Frames that the device kept against copies of those that the host handed over."""
    program = atari.program_of(args.agent, "pong", args.envs, args.precision, args.envs * 2_000)
    shown: list[np.ndarray] = []
    program.tape = lambda t, frames: shown.append(frames.copy())
    state, _ = program.start(program.seed_keys(0))
    i = 0
    while len(shown) < 600:
        state, (_, metrics) = program.block(state, np.int32(i))
        i = program.cadence.end(i)
    kept = np.asarray(state.replay.obs[0, : len(shown) - 1])
    same = np.array([np.array_equal(a, b) for a, b in zip(kept, shown, strict=False)])
    random = program.cadence.warmup_vector_steps
    sizes = {name: np.abs(x).mean() for name, x in named(jax.device_get(state.agent.params))}
    print(f"loop: {same[:random].sum()} of {random} rows of random steps are what was shown, "
          f"{same[random:].sum()} of {len(same) - random} of the others; "
          f"losses {[round(float(metrics[n][0]), 4) for n in ('loss_q', 'loss_z')]}; mean |weight| "
          + ", ".join(f"{n.rsplit('/', 2)[-2]} {x:.5f}" for n, x in sizes.items()
                      if n.endswith("kernel")))  # fmt: skip
    program.close()


def named(tree):
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), x) for path, x in leaves]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--updates", type=int, default=16)
    parser.add_argument("--agent", default="c51-ids")
    parser.add_argument("--precision", default="full")
    parser.add_argument("--unroll", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--calls", type=int, default=200, help="of the longer stretch")
    parser.add_argument("--envs", type=int, default=64, help="of the training loop")
    args = parser.parse_args()
    loop(args)
    gpu, cpu = jax.devices()[0], jax.devices("cpu")[0]
    program = atari.program_of(args.agent, "pong", 16, args.precision, 16 * 200)
    state = filled(program, np.random.default_rng(0))
    start = state.agent.params
    reference, metrics = after(program, state, cpu, args.updates, 1)
    print("cpu", {name: np.round(x[:, 0], 5).tolist()[:4] for name, x in metrics.items()})
    trunk = program.agent.trunk
    for unroll, given in [(u, g) for u in args.unroll for g in ("bytes", "numbers")]:
        program.agent.trunk = trunk if given == "bytes" else Floats(trunk)
        found, metrics = after(program, state, gpu, args.updates, unroll)
        print(gpu.device_kind, "unroll", unroll, "given", given,
              {name: np.round(x[:, 0], 5).tolist()[:4] for name, x in metrics.items()})  # fmt: skip
        rows = zip(named(start), named(reference), named(found), strict=True)
        for (name, a), (_, b), (_, c) in rows:
            moved, apart = np.linalg.norm(b - a), np.linalg.norm(c - b)
            print(f"  {name:45} moved {moved:9.3g}, here {np.linalg.norm(c - a):9.3g}, "
                  f"apart {apart / max(moved, 1e-30):8.2%}")  # fmt: skip
        later, metrics = after(program, state, gpu, args.updates, unroll, args.calls)
        print(f"  after {args.calls * args.updates} updates: loss_q "
              f"{float(metrics['loss_q'][-1, 0]):.4f}; mean |weight| now over at the start: "
              + ", ".join(f"{name.rsplit('/', 2)[-2]} {np.abs(x).mean() / np.abs(y).mean():.3f}"
                          for (name, x), (_, y) in zip(named(later), named(start), strict=True)
                          if name.endswith("kernel")))  # fmt: skip


if __name__ == "__main__":
    main()
