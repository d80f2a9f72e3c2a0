"""`vmap` and `scan` where there may be one of a thing, and the devices that seeds share."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from idrl.system.devices import sharing


def over_seeds(function, in_axes: Any = 0, out_axes: Any = 0):
    """`jax.vmap`, but a seed that is alone on its device is not batched: a batch of one matrix is
    multiplied three times as slowly on a CPU."""
    batched = jax.vmap(function, in_axes, out_axes)

    def call(*args):
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        seeds = {
            x.shape[axis] for arg, axis in zip(args, axes, strict=True) if axis is not None
            for x in jax.tree.leaves(arg)
        }  # fmt: skip
        if seeds != {1}:
            return batched(*args)
        alone = [
            arg if axis is None else jax.tree.map(lambda x, a=axis: jnp.squeeze(x, a), arg)
            for arg, axis in zip(args, axes, strict=True)
        ]
        out = function(*alone)
        if not isinstance(out_axes, tuple):
            return jax.tree.map(lambda x: jnp.expand_dims(x, out_axes), out)
        return tuple(
            jax.tree.map(lambda x, a=axis: jnp.expand_dims(x, a), part)
            for part, axis in zip(out, out_axes, strict=True)
        )

    return call


def loop(body, carry, xs, unroll: int = 1):
    """`lax.scan`, but a single turn is written out: XLA fuses across it."""
    if jax.tree.leaves(xs)[0].shape[0] > 1:
        return jax.lax.scan(body, carry, xs, unroll=unroll)
    carry, out = body(carry, jax.tree.map(lambda x: x[0], xs))
    return carry, jax.tree.map(lambda x: x[None], out)


def mesh_of(seeds: int) -> Mesh | None:
    """As many devices as share the seeds evenly; on a CPU that is one per core."""
    devices = jax.devices()
    count = sharing(seeds, len(devices))
    return Mesh(np.array(devices[:count]), ("seeds",)) if count > 1 else None
