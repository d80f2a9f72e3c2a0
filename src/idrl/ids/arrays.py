"""NumPy or JAX, whichever the arguments are of."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = Any  # a NumPy or a JAX array


def floating(xp, x):
    """Whole numbers become floats: what is computed from them is none."""
    x = xp.asarray(x)
    return x if xp.issubdtype(x.dtype, np.floating) else x.astype(float)


def namespace(*arrays):
    """jax.numpy if any argument is a JAX array (or tracer), NumPy otherwise."""
    return jnp if any(isinstance(a, jax.Array) for a in arrays) else np
