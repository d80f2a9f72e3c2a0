"""Whether a GPU computes what the CPU computes, at Atari size.

    python -m benchmarks.gpu_agrees [--what donation updates loop] [--agent c51-ids]

donation  Two runs of each kind of program, on the GPU, in the deterministic mode: one takes over
          its states' memory, the other copies them. All weights and moments must be equal bit for
          bit after blocks, copies of the target, and an evaluation.
updates   The CPU and the GPU make the same updates from one state. How far every array of weights
          moved on each, and how far apart they end: a small share of the movement, since
          floating-point sums differ. Then a longer stretch on the GPU: no array may fall to zero.
loop      Every frame in the device's replay against what the emulators showed, in the random steps
          and while updates run beside the transfers.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("JAX_PLATFORMS", "cuda,cpu")

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import atari
from idrl.config import resolve
from idrl.envs import make_env
from idrl.runs.session import make_program
from idrl.system.devices import prepare
from idrl.training.program import learning_view


def donation(args) -> None:
    small = {
        "learning": {"target_every_steps": 1024, "learning_starts_steps": 1024,
                     "replay_capacity": 16_384},
        "training": {"envs": 16, "steps": 16_384, "distributions_every_steps": 0,
                     "log_every_steps": 4096},
        "evaluation": {"every_steps": 8192, "steps": 512},
    }  # fmt: skip
    for name in ("minatar/breakout", "atari/pong"):
        config = resolve(args.agent, name, changes=[small])
        ends = []
        for debug in (False, True):
            program = make_program(config, make_env(name), debug=debug)
            state, _ = program.start(program.seed_keys(0))
            i, copies = 0, 0
            for _ in range(6):
                end = program.cadence.end(i)
                copies += sum(program.cadence.copies(n) for n in range(i + 1, end + 1))
                state, _ = program.block(state, np.int32(i))
                i = end
            state, _ = program.evaluate(state, np.int32(1))
            state, _ = program.block(state, np.int32(i))
            ends.append(named(jax.device_get(state.agent)))
            program.close()
        apart = [n for (n, a), (_, b) in zip(*ends, strict=True) if not np.array_equal(a, b)]
        print(f"donation: {name}: after {copies} copies of the target {len(ends[0]) - len(apart)} "
              f"of {len(ends[0])} arrays are equal", *apart[:8])  # fmt: skip


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


def after(program, state, device, count: int, calls: int = 1):
    """Weights and metrics after `calls` times `count` updates on `device`."""
    with jax.default_device(device):
        update = jax.jit(lambda s, first: program._updates(s, program.replay_rows, first, count))
        here = jax.device_put(learning_view(state), device)
        for call in range(calls):
            here, metrics = update(here, jnp.int32(call * count))
        return jax.device_get((here.agent.params, metrics))


def updates(args) -> None:
    gpu, cpu = jax.devices()[0], jax.devices("cpu")[0]
    program = atari.program_of(args.agent, "pong", 16, args.precision, 16 * 200)
    state = filled(program, np.random.default_rng(0))
    start = state.agent.params
    ends = {}
    for device in (cpu, gpu):
        ends[device], metrics = after(program, state, device, args.updates)
        print("updates:", device.device_kind,
              {name: np.round(x[:, 0], 5).tolist()[:4] for name, x in metrics.items()})  # fmt: skip
    for (name, a), (_, b), (_, c) in zip(*map(named, (start, ends[cpu], ends[gpu])), strict=True):
        moved, apart = np.linalg.norm(b - a), np.linalg.norm(c - b)
        print(f"  {name:45} moved {moved:9.3g}, on the GPU {np.linalg.norm(c - a):9.3g}, "
              f"apart {apart / max(moved, 1e-30):8.2%}")  # fmt: skip
    later, metrics = after(program, state, gpu, args.updates, args.calls)
    print(f"  after {args.calls * args.updates} updates: loss_q "
          f"{float(metrics['loss_q'][-1, 0]):.4f}; mean |weight| now over at the start: "
          + ", ".join(f"{name.rsplit('/', 2)[-2]} {np.abs(x).mean() / np.abs(y).mean():.3f}"
                      for (name, x), (_, y) in zip(named(later), named(start), strict=True)
                      if name.endswith("kernel")))  # fmt: skip


def loop(args) -> None:
    """Frames that the device kept against copies of those that the host handed over."""
    program = atari.program_of(args.agent, "pong", args.envs, args.precision, args.envs * 2_000)
    shown: list[np.ndarray] = []
    program.frames.tape = lambda t, frames: shown.append(frames.copy())
    state, _ = program.start(program.seed_keys(0))
    i = 0
    while len(shown) < 600:
        state, (_, metrics) = program.block(state, np.int32(i))
        i = program.cadence.end(i)
    kept = np.asarray(state.replay.obs[0, : len(shown) - 1])
    same = np.array([np.array_equal(a, b) for a, b in zip(kept, shown, strict=False)])
    random = program.cadence.warmup_vector_steps
    print(f"loop: {same[:random].sum()} of {random} rows of random steps are what was shown, "
          f"{same[random:].sum()} of {len(same) - random} of the others; "
          f"losses {[round(float(metrics[n][0]), 4) for n in ('loss_q', 'loss_z')]}")  # fmt: skip
    program.close()


def named(tree):
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), x) for path, x in leaves]


CHECKS = {"donation": donation, "updates": updates, "loop": loop}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--what", nargs="+", choices=CHECKS, default=list(CHECKS))
    parser.add_argument("--agent", default="c51-ids")
    parser.add_argument("--precision", default="full")
    parser.add_argument("--updates", type=int, default=16)
    parser.add_argument("--calls", type=int, default=200, help="of the longer stretch")
    parser.add_argument("--envs", type=int, default=64, help="of the training loop")
    args = parser.parse_args()
    prepare(deterministic=True)
    for what in args.what:
        CHECKS[what](args)


if __name__ == "__main__":
    main()
