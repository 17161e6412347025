"""Counts of allowed and denied operations, in total and per minute."""

from __future__ import annotations

from typing import Final

from strandline.base.quota_windows import RateWindow
from strandline.ports.clock import Clock

# Kafka's `metrics.sample.window.ms` and `metrics.num.samples`.
_WINDOW_S: Final = 30.0
_SAMPLES: Final = 2
_MINUTE_S: Final = 60.0


class DecisionCounts:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.allowed = self.denied = 0
        self._allowed = RateWindow(_WINDOW_S, _SAMPLES)
        self._denied = RateWindow(_WINDOW_S, _SAMPLES)

    def add_allowed(self, count: int = 1) -> None:
        self.allowed += count
        self._allowed.record(count, self._clock.monotonic())

    def add_denied(self) -> None:
        self.denied += 1
        self._denied.record(1, self._clock.monotonic())

    def allowed_per_minute(self) -> float:
        return self._allowed.rate(self._clock.monotonic()) * _MINUTE_S

    def denied_per_minute(self) -> float:
        return self._denied.rate(self._clock.monotonic()) * _MINUTE_S
