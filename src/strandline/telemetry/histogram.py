"""Histograms with fixed bounds: an observation is one search and two additions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

# The usual bounds of Prometheus, with finer steps below a millisecond, where most requests of a broker end; and 0, for
# parts of a request's time that did not occur.
SECONDS: Final = (
    *(0.0, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025),
    *(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
# The percentiles of Kafka's histograms over JMX, as jmx_exporter writes them.
QUANTILES: Final = (
    ("0.50", 0.5),
    ("0.75", 0.75),
    ("0.95", 0.95),
    ("0.98", 0.98),
    ("0.99", 0.99),
    ("0.999", 0.999),
)
# Quantiles cover the last one or two of these periods.
_WINDOW_S: Final = 60.0


class Histogram:
    """Counts of observations by bucket, and their sum. The last bucket has the values above every bound."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def observe_all(self, values: list[float]) -> None:
        """Adds many observations, each for a fraction of the time. Sorts the list, and empties it."""
        values.sort()
        seen, total, counts = 0, len(values), self.counts
        for number, bound in enumerate(self.bounds):
            if seen == total:
                break
            below = bisect_right(values, bound, seen)
            counts[number] += below - seen
            seen = below
        counts[-1] += total - seen
        self.sum += sum(values)
        values.clear()

    @property
    def count(self) -> int:
        return sum(self.counts)

    def plus(self, *others: Histogram) -> Histogram:
        """Returns a new histogram with the observations of all of these, which have the same bounds."""
        found = Histogram(self.bounds)
        found.counts = [
            sum(each) for each in zip(self.counts, *(other.counts for other in others), strict=True)
        ]
        found.sum = self.sum + sum(other.sum for other in others)
        return found


def quantile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float:
    """Returns the value below which `share` of the observations are, interpolated within its bucket; 0 if there are
    none."""
    total = sum(counts)
    if not total:
        return 0.0
    rank, seen, low = share * total, 0, 0.0
    for bound, count in zip(bounds, counts, strict=False):
        if count and seen + count >= rank:
            return low + (bound - low) * (rank - seen) / count
        seen += count
        low = bound
    return bounds[-1]


class RecentCounts:
    """The counts of a histogram over the last minute or two, so that quantiles follow the present load."""

    __slots__ = ("_before", "_latest", "_latest_at")

    def __init__(self) -> None:
        self._before: list[int] = []
        self._latest: list[int] = []
        self._latest_at: float | None = None

    def since(self, counts: list[int], now: float) -> list[int]:
        """Returns the counts since one or two windows ago. It is called whenever quantiles are read."""
        if self._latest_at is None:
            self._latest_at = now
        elif now - self._latest_at >= _WINDOW_S:
            self._before, self._latest, self._latest_at = self._latest, list(counts), now
        if not self._before:
            return list(counts)
        return [count - earlier for count, earlier in zip(counts, self._before, strict=True)]


class RecentRate:
    """The growth of a counter per second over the last minute or two."""

    __slots__ = ("_before", "_latest")

    def __init__(self) -> None:
        self._before: tuple[float, float] | None = None
        self._latest: tuple[float, float] | None = None

    def of(self, count: float, now: float) -> float:
        if self._latest is None or self._before is None:
            self._before = self._latest = self._latest or (now, count)
        elif now - self._latest[0] >= _WINDOW_S:
            self._before, self._latest = self._latest, (now, count)
        since, earlier = self._before
        return (count - earlier) / (now - since) if now > since else 0.0
