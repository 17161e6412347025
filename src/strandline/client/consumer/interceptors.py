"""Objects of the application that see the records which a consumer gives, and the offsets that it has committed."""

from __future__ import annotations

from typing import Any

from strandline.client.consumer.committed_offsets import Offsets
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.log_limits import InterceptorFailures
from strandline.telemetry.counters import Counters


class ConsumerInterceptors:
    """The interceptors of one consumer.

    on_consume(records) returns the records that the application gets; on_commit(offsets) is called when they are
    committed. One that raises is left out: positions have moved by then and offsets are committed, so a flaw in
    monitoring would lose records, or make a commit look as if it had failed. `interceptor-failed-total` counts
    those.
    """

    def __init__(self, objects: tuple[Any, ...], counters: Counters) -> None:
        self._on_consume = [each.on_consume for each in objects if hasattr(each, "on_consume")]
        self._on_commit = [each.on_commit for each in objects if hasattr(each, "on_commit")]
        self._counters = counters
        self._failures = InterceptorFailures()

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        for intercept in self._on_consume:
            try:
                records = intercept(records)
            except Exception:
                self._failed(intercept)
        return records

    def on_commit(self, offsets: Offsets) -> None:
        for intercept in self._on_commit:
            try:
                intercept(dict(offsets))
            except Exception:
                self._failed(intercept)

    def _failed(self, intercept: object) -> None:
        self._failures.note(intercept)
        self._counters.add("interceptor-failed-total")
