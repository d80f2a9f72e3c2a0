"""What users hand in, made into arrays or into one clear sentence."""

from __future__ import annotations

import numpy as np

from idrl.errors import IdrlError


def as_points(points, what: str = "candidates") -> np.ndarray:
    """`[n, d]` finite numbers; a flat list is n points of one coordinate."""
    array = as_numbers(points, what)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise IdrlError(
            f"{what} must be a list of points, shape [n, d] or [n], and the shape is {array.shape}."
        )
    if len(array) == 0:
        raise IdrlError(f"{what} is empty; give at least one point.")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(1))[0])
        raise IdrlError(f"{what} must be finite numbers, and row {row} is not.")
    return array


def as_values(values, count: int) -> np.ndarray:
    """`[count]` finite measurements."""
    array = np.atleast_1d(as_numbers(values, "the observed values"))
    if array.shape != (count,):
        raise IdrlError(
            f"the number of values must be that of the points measured, {count}, and their shape "
            f"is {array.shape}."
        )
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        raise IdrlError(
            f"observation {row} is {array[row]}; an observation must be a finite number, so leave "
            "failed measurements out."
        )
    return array


def as_variance(values, count: int, what: str) -> np.ndarray:
    """`[count]` positive variances, from one number or one per point."""
    array = _one_or_each(values, count, what)
    bad = ~(np.isfinite(array) & (array > 0))
    if bad.any():
        raise IdrlError(
            f"{what} must be positive, and one is {array[bad][0]:g}; for a measurement without "
            "noise give a small variance, such as a millionth of the prior's."
        )
    return array


def as_positive(values, count: int, what: str) -> np.ndarray:
    """`[count]` positive numbers, from one or one each."""
    array = _one_or_each(values, count, what)
    bad = ~(np.isfinite(array) & (array > 0))
    if bad.any():
        raise IdrlError(f"{what} must be positive, and is {array[bad][0]:g}.")
    return array


def as_finite(values, count: int, what: str) -> np.ndarray:
    """`[count]` finite numbers, from one or one each."""
    array = _one_or_each(values, count, what)
    if not np.isfinite(array).all():
        raise IdrlError(f"{what} must be finite, and is {array[~np.isfinite(array)][0]}.")
    return array


def as_count(value, what: str) -> int:
    number = as_numbers(value, what)
    if number.ndim != 0 or number < 1 or number != np.floor(number):
        raise IdrlError(f"{what} must be a whole number, 1 or more, and is {value!r}.")
    return int(number)


def as_index(index, candidates: int) -> np.ndarray:
    """`[k]` indices of candidates."""
    array = np.atleast_1d(np.asarray(index))
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise IdrlError(
            f"index {index!r} is not a whole number; `observe` takes the number of a candidate, "
            "`observe_at` the coordinates of any point."
        )
    bad = (array < 0) | (array >= candidates)
    if bad.any():
        raise IdrlError(
            f"there is no candidate {array[bad][0]}; they are numbered 0 to {candidates - 1}."
        )
    return array


def as_numbers(values, what: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise IdrlError(f"{what} must be numbers, every row of the same length.") from None


def _one_or_each(values, count: int, what: str) -> np.ndarray:
    array = as_numbers(values, what)
    if array.shape not in ((), (count,)):
        raise IdrlError(
            f"{what} must be one number or {count} of them, and its shape is {array.shape}."
        )
    return np.broadcast_to(array, (count,)).copy()
