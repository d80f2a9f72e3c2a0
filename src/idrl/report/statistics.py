"""Small statistics over seeds."""

from __future__ import annotations

import numpy as np
from scipy import stats


def interval(values, confidence: float = 0.95) -> float:
    """Half the width of Student's interval of the mean; NaN for fewer than two values."""
    values = np.asarray(values, float)
    n = values.size
    if n < 2:
        return float("nan")
    return float(stats.t.ppf(0.5 + confidence / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))


def iqm(values) -> float:
    """The mean of the middle half: steadier than the median, and deaf to a few odd seeds."""
    return float(stats.trim_mean(np.asarray(values, float), 0.25))


def share_interval(count: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share: sane at 0 and at all of a few."""
    found = stats.binomtest(count, of).proportion_ci(confidence, "wilson")
    return float(found.low), float(found.high)


def plus_minus(values) -> str:
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if values.size == 0:
        return "–"
    half = interval(values)
    return f"{values.mean():.3g}" + ("" if np.isnan(half) else f" ± {half:.2g}")
