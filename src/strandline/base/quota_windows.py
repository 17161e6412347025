"""The recent use of something that has a quota, measured in Kafka's two ways.

A rate is measured over samples of a second, ten whole ones and the one that has begun: a client that has used nothing
may use ten seconds' worth at once. A token bucket fills at the rate, up to the same amount, and may be overdrawn once
(KIP-599).
"""

from __future__ import annotations

from collections import deque


class RateWindow:
    """A rate over the last samples, computed like `org.apache.kafka.common.metrics.stats.Rate`."""

    __slots__ = ("_samples", "_samples_max", "_total", "_width_s")

    def __init__(self, width_s: float, samples_max: int) -> None:
        self._width_s = width_s
        self._samples_max = samples_max
        self._samples: deque[list[float]] = deque()  # the begin of each sample, and the sum of its values
        self._total = 0.0

    def record(self, value: float, now: float) -> None:
        samples = self._samples
        if not samples or now - samples[-1][0] >= self._width_s:
            samples.append([now, 0.0])
            self._forget(now)
        samples[-1][1] += value
        self._total += value

    def throttle_s(self, limit: float, now: float) -> float:
        """Returns the seconds without use after which the rate is down to the limit; 0 if it is not above it."""
        self._forget(now)
        width_s = self._covered_s(now)
        rate = self._total / width_s
        return (rate - limit) / limit * width_s if rate > limit else 0.0

    def rate(self, now: float) -> float:
        """Returns the recorded sum for each second."""
        self._forget(now)
        return max(self._total, 0.0) / self._covered_s(now)

    def _forget(self, now: float) -> None:
        samples, oldest = self._samples, now - self._width_s * self._samples_max
        while samples and (samples[0][0] <= oldest or len(samples) > self._samples_max):
            self._total -= samples.popleft()[1]

    def _covered_s(self, now: float) -> float:
        """Returns the time that the samples cover: at least all samples but one, also at the beginning."""
        covered_s = now - self._samples[0][0] if self._samples else 0.0
        missing = self._samples_max - 1 - int(covered_s / self._width_s)
        return covered_s + missing * self._width_s if missing > 0 else covered_s


class MeanWindow:
    """A mean over the last samples, computed like `org.apache.kafka.common.metrics.stats.Avg`."""

    __slots__ = ("_samples", "_samples_max", "_width_s")

    def __init__(self, width_s: float, samples_max: int) -> None:
        self._width_s = width_s
        self._samples_max = samples_max
        self._samples: deque[list[float]] = deque()  # begin, sum of values and their number

    def record(self, value: float, now: float) -> None:
        samples = self._samples
        if not samples or now - samples[-1][0] >= self._width_s:
            samples.append([now, 0.0, 0.0])
            self._forget(now)
        samples[-1][1] += value
        samples[-1][2] += 1

    def mean(self, now: float) -> float:
        """Returns the mean; 0 if there are no recent values."""
        self._forget(now)
        count = sum(sample[2] for sample in self._samples)
        return sum(sample[1] for sample in self._samples) / count if count else 0.0

    def _forget(self, now: float) -> None:
        samples, oldest = self._samples, now - self._width_s * self._samples_max
        while samples and (samples[0][0] <= oldest or len(samples) > self._samples_max):
            samples.popleft()


class TokenBucket:
    """Tokens that come at a rate and are spent, like `org.apache.kafka.common.metrics.stats.TokenBucket`."""

    __slots__ = ("_burst_s", "_filled_at", "_tokens")

    def __init__(self, burst_s: float) -> None:
        """The bucket holds as many tokens as come in `burst_s` seconds, and is full at first."""
        self._burst_s = burst_s
        self._tokens = 0.0
        self._filled_at: float | None = None

    def throttle_s(self, rate: float, now: float) -> float:
        """Returns the seconds until there are tokens again; 0 if some may be spent now."""
        self._fill(rate, now)
        return -self._tokens / rate if self._tokens < 0 else 0.0

    def tokens(self, rate: float, now: float) -> float:
        """Returns the number of tokens; negative if more were spent."""
        self._fill(rate, now)
        return self._tokens

    def spend(self, count: float, rate: float, now: float) -> None:
        self._fill(rate, now)
        self._tokens -= count

    def _fill(self, rate: float, now: float) -> None:
        elapsed_s = self._burst_s if self._filled_at is None else now - self._filled_at
        self._tokens = min(self._burst_s * rate, self._tokens + elapsed_s * rate)
        self._filled_at = now
