"""What a few measurements can say: 95 % intervals of rates and medians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Z_95 = 1.959964
"""Two-sided 95 % point of the normal distribution."""

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` of `n`, and the interval that holds the true share with 95 % probability."""

    count: int
    n: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """`count` / `n`; NaN for none."""
        return self.count / self.n if self.n else float("nan")


@dataclass(frozen=True, slots=True)
class Median:
    """The median of `n` values, in their unit, and its 95 % interval."""

    n: int
    median: float
    low: float
    high: float


def rate(outcomes: Sequence[bool | None]) -> Rate:
    """How many of those that are not None are true. Wilson's interval, JASA 22 (1927): it stays within 0 and 1."""
    known = [outcome for outcome in outcomes if outcome is not None]
    count, n = sum(known), len(known)
    if n == 0:
        return Rate(0, 0, 0.0, 1.0)
    share, square = count / n, Z_95**2
    middle = (share + square / (2 * n)) / (1 + square / n)
    reach = Z_95 / (1 + square / n) * float(np.sqrt(share * (1 - share) / n + square / (4 * n**2)))
    return Rate(count, n, max(0.0, middle - reach), min(1.0, middle + reach))


def median(values: Sequence[float | None], seed: int = 0) -> Median | None:
    """The median of those that are not None and its bootstrap interval (percentiles); None for none."""
    known = np.array([value for value in values if value is not None], np.float64)
    if not len(known):
        return None
    drawn = np.random.default_rng(seed).choice(known, (RESAMPLES, len(known)))
    low, high = np.percentile(np.median(drawn, axis=1), (2.5, 97.5))
    return Median(len(known), float(np.median(known)), float(low), float(high))
