"""Convolutions by patches, and seeds that are alone: the same numbers by another way."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl.networks.layers import WIDE, PatchConv
from idrl.training.batching import over_seeds


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(
    ("side", "channels", "size", "stride"),
    [(84, 4, 8, 4), (20, 32, 4, 2), (21, 3, 4, 2), (9, 64, 3, 1), (10, 3, 3, 1)],
)
def test_patches_equal_a_convolution(side, channels, size, stride, padding):
    """Values, also where no gradient is taken, and gradients; of bytes taken by their scale where
    they are pixels."""
    rng = np.random.default_rng(side)
    pixels = side == 84
    x = rng.integers(0, 256, (2, side, side, channels), np.uint8)
    scale = 1 / 255 if pixels else 1.0
    if not pixels:
        x = x.astype(np.float32) / 255
    ours = PatchConv(4, size, stride, padding, "torch", scale)
    theirs = nn.Conv(4, (size, size), (stride, stride), padding)
    shapes = [jax.eval_shape(layer.init, jax.random.key(0), x) for layer in (ours, theirs)]
    assert shapes[0] == shapes[1]
    params = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape).astype(np.float32), shapes[0])

    @functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def compared(params, x):
        def weighed(params, layer, x):
            out = layer.apply(params, x)
            return (out * jnp.cos(jnp.arange(out.size)).reshape(out.shape)).sum(), out

        def both(layer, x):
            return jax.grad(weighed, has_aux=True)(params, layer, x), layer.apply(params, x)

        return both(ours, x), both(theirs, x * jnp.float32(scale))

    wide = channels * stride**2 >= WIDE
    assert ("custom_vjp" in str(jax.make_jaxpr(ours.apply)(params, x))) == wide
    mine, reference = compared(params, x)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), mine, reference
    )


def several(tree, x, number):
    """A pytree and two arrays, from what one seed has and what all share."""
    y = tree["w"] @ x
    return {"y": y, "more": (y.sum(), x + number)}, jnp.outer(x, y)


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("out_axes", [0, (0, 1), (0, 2)], ids=str)
def test_over_seeds_is_vmap(seeds, out_axes):
    rng = np.random.default_rng(0)
    tree = {"w": rng.normal(size=(seeds, 4, 5)), "unused": rng.normal(size=(seeds,))}
    x = rng.normal(size=(seeds, 5))
    axes = (0, 0, None)
    ours = over_seeds(several, axes, out_axes)(tree, x, 2.0)
    reference = jax.vmap(several, axes, out_axes)(tree, x, 2.0)
    assert jax.tree.structure(ours) == jax.tree.structure(reference)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), ours, reference)


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize(("in_axes", "out_axes"), [(0, 1), ((0, 1), 1)], ids=str)
def test_seeds_may_be_on_another_axis(seeds, in_axes, out_axes):
    rng = np.random.default_rng(1)
    w, x = rng.normal(size=(seeds, 4, 5)), rng.normal(size=(seeds, 5))
    if isinstance(in_axes, tuple):
        x = x.T

    def product(w, x):
        return w @ x, {"none": None, "x": x}

    ours = over_seeds(product, in_axes, out_axes)(w, x)
    reference = jax.vmap(product, in_axes, out_axes)(w, x)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), ours, reference)


@pytest.mark.parametrize(("seeds", "batched"), [(1, False), (3, True)])
def test_a_seed_that_is_alone_is_not_batched(seeds, batched):
    w, x = np.zeros((seeds, 4, 5), np.float32), np.zeros((seeds, 6, 5), np.float32)
    jaxpr = jax.make_jaxpr(over_seeds(lambda w, x: x @ w.T))(w, x)
    (product,) = (e for e in jaxpr.eqns if e.primitive.name == "dot_general")
    assert (product.params["dimension_numbers"][1] != ((), ())) == batched
