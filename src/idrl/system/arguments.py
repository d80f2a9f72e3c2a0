"""What functions are given, checked: arrays for `idrl.ids` and `idrl.rules`, with what these return
in a line, and counts."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import jax
import numpy as np

from idrl.errors import IdrlError
from idrl.system import words


def brief(decision: Any) -> str:
    """The action and the shapes: numbers of a batch would fill a screen."""
    name, action = type(decision).__name__, decision.action
    if isinstance(action, jax.core.Tracer) or not hasattr(action, "shape"):
        return f"{name}(action={action}, …)"
    shown = np.array2string(np.asarray(action), threshold=8, edgeitems=3)
    rest = ", ".join(decision._fields[1:8])
    several = "" if decision.candidates is None else f", candidates {decision.candidates.shape}"
    return f"{name}(action={shown}; {rest}: {decision.mu.shape}{several})"


def check_heads(
    q_heads: Any, mask: Any = None, return_variance: Any = None, **numbers: Any
) -> None:
    """Refuse heads that are not `[..., K, A]`, and what does not fit to them: a mask and a variance
    are of each action, `numbers` may be of all."""
    shape = np.shape(q_heads)
    if len(shape) < 2 or not all(shape[-2:]):
        raise IdrlError(
            f"q_heads has shape {shape}; it must be [..., K, A], K heads of A actions each."
        )
    wanted, beside = (*shape[:-2], shape[-1]), f"q_heads of shape {shape}"
    _fit("mask", mask, wanted, beside, each=True)
    _fit("return_variance", return_variance, wanted, beside, each=True)
    for name, value in numbers.items():
        _fit(name, value, wanted, beside)


def check_moments(mu: Any, sigma2: Any, cov: Any, samples: Any, mask: Any, **numbers: Any) -> None:
    """The same of the moments of a posterior, `[..., A]`."""
    shape = mu.shape
    if not shape or not shape[-1]:
        raise IdrlError(f"mu has shape {shape}; it must be [..., A], one number for each action.")
    draws = np.shape(samples)[-2:-1] or (1,)  # as many as there are
    wanted = {
        "sigma2": (sigma2, shape),
        "mask": (mask, shape),
        "cov": (cov, (*shape, shape[-1])),
        "samples": (samples, (*shape[:-1], *draws, shape[-1])),
    }
    for name, (value, its) in wanted.items():
        _fit(name, value, its, f"mu of shape {shape}", each=True)
    for name, value in numbers.items():
        _fit(name, value, shape, f"mu of shape {shape}")


def _fit(name: str, value: Any, shape: tuple[int, ...], beside: str, each: bool = False) -> None:
    """Refuse what NumPy would not stretch to `shape`, or, where there is to be one for `each`
    action, would stretch over the actions."""
    if value is None:
        return
    has = np.shape(value)
    fits = len(has) <= len(shape) and all(
        n in (1, m) for n, m in zip(has[::-1], shape[::-1], strict=False)
    )
    if not fits or (each and has[-1:] != shape[-1:]):
        or_one = "" if each else ", or one number"
        raise IdrlError(f"{name} has shape {has}; with {beside} it must be {shape}{or_one}.")


def whole(name: str, value: Any, least: int = 1, most: int = 2**31 - 1) -> int:
    """A whole number of Python or NumPy, or a float that is one."""
    number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value != int(value) or not least <= value <= most:
        raise IdrlError(
            f"{name} is {words.value(value)}; it must be a whole number from {least} to {most}."
        )
    return int(value)


def need(value: Any, by: str) -> Any:
    """What `by` cannot do without."""
    if value is None:
        what = "the variance of the return" if by.startswith("noise") else "posterior samples"
        raise IdrlError(f"{by} needs {what}, and none was given")
    return value


def known(name: str, value: str, names: tuple[str, ...]) -> None:
    """Refuse what is none of `names`."""
    if value not in names:
        raise IdrlError(f"{name}={value!r} is not one of {', '.join(names)}")
