"""Statistics over seeds and tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special  # not `stats`, whose import takes as long as that of JAX


def interval(values, confidence: float = 0.95) -> float:
    """Half the width of Student's interval of the mean; NaN for fewer than two values."""
    values = np.asarray(values, float)
    n = values.size
    if n < 2:
        return float("nan")
    quantile = special.stdtrit(n - 1, 0.5 + confidence / 2)  # of Student's t
    return float(quantile * values.std(ddof=1) / np.sqrt(n))


def share_interval(count: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share: sane at 0 and at all of a few."""
    z = float(special.ndtri(0.5 + confidence / 2))
    whole = 2 * (of + z**2)
    middle = (2 * count + z**2) / whole
    half = z / whole * (4 * count * (of - count) / of + z**2) ** 0.5
    return 0.0 if count == 0 else middle - half, 1.0 if count == of else middle + half


def mean_over_seeds(values) -> Estimate:
    """The mean of what is finite, with its 95% bootstrap interval: one that never leaves the values
    themselves, which a score may be bounded by. Of two or three values it is their range."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if values.size == 0:
        return Estimate(*[float("nan")] * 3)
    return estimate([values], average)


def mean_bounds(columns) -> tuple[np.ndarray, np.ndarray]:
    """The same interval of each column of `[seeds, N]`; of one seed it is the seed itself."""
    columns = np.asarray(columns, float)
    low, high = np.full((2, columns.shape[1]), np.nan)
    finite = np.isfinite(columns)
    # Columns that the same seeds have, together.
    for there in np.unique(finite, axis=1).T if columns.size else ():
        if there.any():
            alike = (finite == there[:, None]).all(0)
            (drawn,) = draw([int(there.sum())], _CURVE_REPS)
            counts = np.zeros(drawn.shape)  # of each seed in each resample
            np.add.at(counts, (np.arange(len(drawn))[:, None], drawn), 1)
            low[alike], high[alike] = bounds(counts @ columns[there][:, alike] / len(counts[0]))
    return low, high


# What follows is after Agarwal et al. 2021, "Deep RL at the edge of the statistical precipice".
# Scores are one array of runs per task. Where the numbers of runs differ, which the paper does not
# consider, runs have weights, so that tasks still count alike.

INTERVAL = "95% bootstrap interval over seeds (of two or three seeds, their range)"
REPS = 10_000
_CURVE_REPS = 2_000  # at each of many points
_MOST_DRAWN = 2**24  # runs in all resamples: a thousand runs are resampled ten thousand times
SEED = 0  # of the bootstrap: the same runs give the same interval


class Estimate(NamedTuple):
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """`375 (120 to 500)`; the value alone where there is no interval, a dash where none."""
        if np.isnan(self.value):
            return "–"
        if np.isnan(self.low):
            return short(self.value)
        value, low, high = _alike(self)
        return f"{value} ({low} to {high})"


def short(value: float) -> str:
    """Three significant digits, and all of those before the point: 0.0123, 37.5, 1,234."""
    if not np.isfinite(value):
        return str(value)
    if value != 0 and not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    text = f"{value:,.{_decimals(value, 3)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimals(value: float, digits: int) -> int:
    """After the point, for so many significant digits."""
    return max(0, digits - 1 - int(np.floor(np.log10(abs(value))))) if value else 0


def _alike(values: Sequence[float]) -> list[str]:
    """With the same decimals, as many as tell the ends of an interval apart."""
    largest, apart = max(map(abs, values)), max(values) - min(values)
    if largest != 0 and not 1e-4 <= largest < 1e9:
        return [f"{value:.3g}" for value in values]
    decimals = max(_decimals(largest, 3), min(_decimals(apart, 1), _decimals(largest, 6)))
    texts = [f"{value + 0.0:,.{decimals}f}" for value in values]
    while decimals and all(text.endswith("0") for text in texts):
        texts, decimals = [text[:-1] for text in texts], decimals - 1
    return [text.rstrip(".") for text in texts]


def balanced(counts: Sequence[int]) -> np.ndarray | None:
    """The weight of every run, given how many each task has; None where all have as many."""
    most = max(counts)
    return None if min(counts) == most else np.repeat(most / np.array(counts), counts)


def average(scores, weights=None) -> np.ndarray:
    """The mean, over the last axis."""
    return np.average(scores, -1, weights)


def iqm(scores, weights=None) -> np.ndarray:
    """The mean of the middle half, over the last axis: steadier than the median, and deaf to a few
    odd seeds. A weight of 2 is two runs with that score."""
    if weights is None:
        scores = np.sort(scores, -1)
        cut = scores.shape[-1] // 4
        return scores[..., cut : scores.shape[-1] - cut].mean(-1)
    scores = np.asarray(scores)
    order = np.argsort(scores, -1)
    ends = np.cumsum(weights[order], -1)
    runs = round(float(weights.sum()))
    cut = runs // 4
    kept = np.minimum(ends, runs - cut) - np.maximum(ends - weights[order], cut)
    return average(np.take_along_axis(scores, order, -1), np.maximum(kept, 0))


def optimality_gap(scores, weights=None, goal: float = 1.0) -> np.ndarray:
    """How far scores fall short of `goal`, what lies above it not counted."""
    return goal - average(np.minimum(scores, goal), weights)


def draw(counts: Sequence[int], reps: int = REPS, seed: int = SEED) -> list[np.ndarray]:
    """For each task, which of its runs a resample holds: `[reps, runs]`. Of very many runs fewer
    resamples, which then differ little, so that they fit into memory."""
    reps = max(min(reps, _MOST_DRAWN // max(sum(counts), 1)), 100)
    rng = np.random.default_rng(seed)
    return [rng.integers(n, size=(reps, n)) for n in counts]


def resample(scores: Sequence[np.ndarray], drawn: Sequence[np.ndarray]) -> np.ndarray:
    """`[reps, all runs]`: each task from its own runs alone (stratified)."""
    return np.concatenate([task[i] for task, i in zip(scores, drawn, strict=True)], axis=-1)


def bounds(values, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """The percentile interval of resampled values, over the first axis."""
    tail = 50 * (1 - confidence)
    low, high = np.percentile(values, [tail, 100 - tail], axis=0)
    return low, high


def estimate(scores: Sequence[np.ndarray], statistic: Callable = iqm) -> Estimate:
    """`statistic` of all runs, given with their weights, and its stratified bootstrap interval. One
    run a task has no spread to resample: its interval is NaN."""
    counts = [len(task) for task in scores]
    weights = balanced(counts)
    value = float(statistic(np.concatenate(scores), weights))
    if max(counts) < 2:
        return Estimate(value, float("nan"), float("nan"))
    low, high = bounds(statistic(resample(scores, draw(counts)), weights))
    return Estimate(value, float(low), float(high))


def profile(scores: Sequence[np.ndarray], taus: np.ndarray, reps: int = 2_000):
    """The share of runs above each of `taus`, with pointwise bounds: three `[taus]`."""
    counts = [len(task) for task in scores]
    weights = balanced(counts)
    share = average(np.concatenate(scores) > taus[:, None], weights)
    if max(counts) < 2:
        return share, share, share
    again = resample(scores, draw(counts, reps))
    low, high = bounds(np.stack([average(again > tau, weights) for tau in taus], axis=-1))
    return share, low, high


def chance_better(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> Estimate:
    """The probability that a run of ours scores above one of theirs on the same task (a tie counts
    half), averaged over the tasks."""
    value = float(np.mean([_better(x, y) for x, y in zip(ours, theirs, strict=True)]))
    if min(max(map(len, ours)), max(map(len, theirs))) < 2:
        return Estimate(value, float("nan"), float("nan"))
    x = draw([len(task) for task in ours], 2_000)
    y = draw([len(task) for task in theirs], 2_000, SEED + 1)
    tasks = [_each(a[i], b[j]) for a, b, i, j in zip(ours, theirs, x, y, strict=True)]
    low, high = bounds(np.mean(tasks, axis=0))
    return Estimate(value, float(low), float(high))


def _each(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`_better` of every row; one row at a time where all of them together are too many."""
    reps = min(len(x), len(y))
    x, y = x[:reps], y[:reps]
    if reps * x.shape[1] * y.shape[1] <= _MOST_DRAWN:
        return _better(x, y)
    return np.array([_ranked(a, np.sort(b)) for a, b in zip(x, y, strict=True)])


def _ranked(x: np.ndarray, y: np.ndarray) -> float:
    """`_better` for a sorted `y`, without comparing all pairs."""
    below = np.searchsorted(y, x, "left") + np.searchsorted(y, x, "right")
    return float(below.mean() / 2 / len(y))


def _better(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    difference = np.sign(x[..., :, None] - y[..., None, :])
    return (difference + 1).mean((-2, -1)) / 2


def solved_episode(bad: list[float], share: float = 0.9) -> int | None:
    """bsuite's rule: the first episode (from 1) at which under 90% of those so far were bad."""
    total = 0.0
    for episode, was_bad in enumerate(bad, start=1):
        total += was_bad
        if total < share * episode:
            return episode
    return None
