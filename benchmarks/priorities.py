"""What prioritised replay costs: draw and write back a batch, beside a uniform draw and an update.

    python -m benchmarks.priorities [--out FILE.csv]

For replays of 10⁴ to 10⁶ transitions and batches of 32 and 256: microseconds for a uniform draw, a
prioritised draw and the new priorities of its batch, each repeated inside one compiled loop, and
the same by a binary sum tree whose levels are walked one after the other, as most code has it.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time

import jax
import jax.numpy as jnp

from idrl.replay import ring as ring
from idrl.replay import sum_tree as trees

TURNS = 200


def seconds(function, *args) -> float:
    """Best of three, per turn."""
    jax.block_until_ready(function(*args))
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        jax.block_until_ready(function(*args))
        best = min(best, time.perf_counter() - start)
    return best / TURNS


def repeated(step):
    return jax.jit(lambda carry: jax.lax.scan(step, carry, jnp.arange(TURNS))[0])


def binary(leaves: int, batch: int):
    """A sum tree in one array, node n above 2n and 2n+1: draw and write back."""
    depth = (leaves - 1).bit_length()
    first = 1 << depth

    def step(tree, t):
        target = (jnp.arange(batch) + jax.random.uniform(jax.random.key(t), (batch,))) / batch
        target, node = target * tree[1], jnp.ones(batch, jnp.int32)
        for _ in range(depth):
            left = tree[2 * node]
            right = target >= left
            target, node = jnp.where(right, target - left, target), 2 * node + right
        tree = tree.at[node].set(1.0 + 0.1 * jax.random.uniform(jax.random.key(t), (batch,)))
        for _ in range(depth):
            node = node // 2
            tree = tree.at[node].set(tree[2 * node] + tree[2 * node + 1])
        return tree, None

    level, levels = jnp.zeros(first).at[:leaves].set(1.0), []
    while level.size > 1:
        levels.append(level)
        level = level.reshape(-1, 2).sum(-1)
    return step, jnp.concatenate([jnp.zeros(1), level, *reversed(levels)])


def wide(leaves: int, batch: int):
    def step(tree, t):
        where, prob = trees.draw(tree, jax.random.key(t), batch)
        values = 1.0 + 0.1 * jax.random.uniform(jax.random.key(t), (batch,)) + 0 * prob
        return trees.assign(tree, where, values), None

    return step, trees.assign(trees.empty(leaves), jnp.arange(leaves), jnp.ones(leaves))


def uniform(leaves: int, batch: int):
    row = ring.Row(
        jnp.zeros((1, 1), jnp.uint8), jnp.zeros(1, jnp.int32), jnp.zeros(1), jnp.zeros(1, bool),
        jnp.ones(1, bool),
    )  # fmt: skip
    replay = ring.empty(row, leaves)
    replay = replay._replace(facts=replay.facts.at[..., 3].set(1.0))

    def step(total, t):
        drawn, _ = ring.sample_indices(replay, jax.random.key(t), jnp.int32(leaves), batch)
        return total + drawn.sum(), None

    return step, jnp.int32(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    args = parser.parse_args()
    rows = []
    for batch in (32, 256):
        for leaves in (10_000, 100_000, 1_000_000):
            row: dict = {"batch": batch, "transitions": leaves}
            for name, make in (("uniform", uniform), ("wide_tree", wide), ("binary_tree", binary)):
                step, carry = make(leaves, batch)
                row[f"{name}_us"] = round(1e6 * seconds(repeated(step), carry), 1)
            row["binary_over_wide"] = round(row["binary_tree_us"] / row["wide_tree_us"], 2)
            rows.append(row)
            print(row, flush=True)
    with open(args.out, "w", newline="", encoding="utf-8") if args.out else sys.stdout as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
