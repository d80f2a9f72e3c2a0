"""ρ², the variance of the noise of a return."""

from __future__ import annotations

import numpy as np

from idrl.ids.arrays import Array, namespace
from idrl.system.arguments import known, need

NOISES = ("constant", "return", "normalized", "smoothed", "tempered", "added")


def observation_noise(
    like: Array,
    return_variance: Array | None,
    *,
    noise: str = "normalized",
    rho2: float | Array = 1.0,
    rho2_floor: float = 0.25,
    eps1: float = 1e-5,
    mask: Array | None = None,
) -> Array:
    """ρ² `[..., A]` from the variance of the return.

    Args:
        like: an array whose shape and type the result has.
        return_variance: `[..., A]`.
        noise: `"normalized"`, the paper's, divides the variance by its mean over the allowed
            actions and floors it; `"return"` takes it as it is; `"constant"` is `rho2`;
            `"smoothed"` adds 1e-4 above and below, with no floor; `"tempered"` adds the normalised
            variance to `rho2`, so that an action without noise teaches no more than under
            `"constant"`; `"added"` adds the variance itself to `rho2`: it divides by nothing, so no
            action seems to teach much because the others are noisy.
        rho2: the constant of `"constant"`, `"tempered"` and `"added"`.
        rho2_floor: the least ρ² of `"normalized"`.
        eps1: added to the mean variance.
        mask: true where an action is allowed, `[..., A]`.
    """
    known("noise", noise, NOISES)
    xp = namespace(like, return_variance, rho2, mask)
    if noise == "constant":
        return xp.broadcast_to(xp.asarray(rho2, dtype=like.dtype), like.shape)
    variance = xp.asarray(need(return_variance, f"noise={noise!r}"), dtype=like.dtype)
    if noise == "return":
        return variance
    if noise == "added":
        return xp.asarray(rho2, dtype=like.dtype) + variance
    # A non-finite variance condemns its own action, not the others through their mean.
    counted = xp.isfinite(variance)
    if mask is not None:
        counted = counted & xp.asarray(mask, dtype=bool)
    total = xp.where(counted, variance, 0).sum(-1, keepdims=True)
    mean = total / xp.maximum(counted.sum(-1, keepdims=True), 1).astype(like.dtype)
    # With ε₁ = 0 and no variance anywhere this is 0 and the floor, not 0/0.
    scale = xp.maximum(eps1 + mean, xp.asarray(np.finfo(like.dtype).tiny, dtype=like.dtype))
    if noise == "smoothed":
        return (variance + 1e-4) / (1e-4 + mean)
    if noise == "tempered":
        return xp.asarray(rho2, dtype=like.dtype) + variance / scale
    return xp.maximum(variance / scale, xp.asarray(rho2_floor, dtype=like.dtype))
