"""Units that an agent finds itself (`Learning.unit`), so that what it does is the same at any scale
of its task's rewards.

Each head has a unit, kept with its weights as `params["units"]`, so that whoever has the weights
can say what they mean. Units are powers of two: to divide a reward by one, or to move weights from
one to another, rounds nothing. So rewards that are all multiplied by 1024 lead to the same actions
to the bit, and a change of the unit leaves what was learned as it was. (A prior is so many units:
it goes with them.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from idrl.networks.heads import Head
from idrl.replay.magnitudes import Magnitudes, above


def unit_of(params: Any, name: str) -> jax.Array:
    """What the values of a head are multiples of; before the first reward nobody knows: 1."""
    unit = params["units"][name]
    return jnp.where(unit > 0, unit, 1.0)


def no_units(heads: Mapping[str, Head]) -> dict[str, jax.Array]:
    """Before the first reward."""
    return {name: jnp.float32(0) for name in heads}


def fitting(unit: jax.Array, size: jax.Array) -> jax.Array:
    """A unit that `size` is between a quarter of and one of: the old one, or else the power of two
    above it. So it does not go to and fro with a size that is near one. 0 while the size is."""
    fits = (size <= unit) & (size >= unit / 4)
    return jnp.where(fits | (size == 0), unit, above(size))


def fitted(
    units: Mapping[str, jax.Array], heads: Mapping[str, Head], seen: Magnitudes
) -> dict[str, Any]:
    """Units that fit what was seen."""
    sizes = {"reward": seen.typical, "return": seen.largest}
    return {
        name: jnp.float32(1) if head.measured_by is None
        else fitting(units[name], sizes[head.measured_by])
        for name, head in heads.items()
    }  # fmt: skip


def converted(params: Any, heads: Mapping[str, Head], units: Mapping[str, jax.Array]) -> Any:
    """The same in other units. From no unit to the first no weights change: nothing was learned."""
    weights = dict(params["heads"])
    for name, head in heads.items():
        old = params["units"][name]
        weights[name] = head.rescaled(weights[name], jnp.where(old > 0, old / units[name], 1.0))
    return {**params, "heads": weights, "units": dict(units)}


def trained(params: Any) -> Any:
    """What is learned by gradients."""
    return {name: part for name, part in params.items() if name != "units"}
