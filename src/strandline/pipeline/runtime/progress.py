"""The progress of a pipeline: Spark's progress of each query and the sink's counts, as events and totals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from strandline.spark.offsets import count_between, offsets_from_json


@dataclass(slots=True, kw_only=True)
class QueryTotals:
    """The totals of one query since this run began."""

    records: Counter[str] = field(default_factory=Counter)  # by source
    written: Counter[str] = field(default_factory=Counter)  # by topic
    retried: Counter[str] = field(default_factory=Counter)  # by topic
    dead_letters: Counter[str] = field(default_factory=Counter)  # by topic
    batches: int = 0
    last_batch: int = -1
    last_seconds: float = 0.0
    records_per_second: float = 0.0
    lag: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns the totals as values that JSON has."""
        return {
            "records": dict(self.records),
            "written": dict(self.written),
            "retried": dict(self.retried),
            "dead_letters": dict(self.dead_letters),
            "batches": self.batches,
            "last_batch": self.last_batch,
            "last_seconds": self.last_seconds,
            "records_per_second": self.records_per_second,
            "lag": self.lag,
        }


class QueryProgress:
    """Turns Spark's progress reports into events, one for each batch."""

    def __init__(
        self, query: str, dead_letter_topics: frozenset[str], retry_topics: frozenset[str] = frozenset()
    ) -> None:
        self.query = query
        self._dead_letter_topics = dead_letter_topics
        self._retry_topics = retry_topics
        self._committed: dict[int, Mapping[str, int]] = {}
        self.last_reported = -1  # the last batch that Spark has reported
        self.totals = QueryTotals()

    def on_commit(self, batch: int, rows: Mapping[str, int]) -> None:
        """Takes the row counts of a batch from the sink, before Spark reports the batch."""
        self._committed[batch] = rows

    def events(self, reported: list[Any]) -> list[dict[str, Any]]:
        """Returns the events of the batches that were not reported before."""
        events = []
        for each in reported:
            progress = json.loads(each.json)
            # Spark also reports that there was nothing to do, under the number of the next batch.
            if progress["batchId"] <= self.last_reported or "addBatch" not in progress["durationMs"]:
                continue
            self.last_reported = progress["batchId"]
            event = self._event(progress)
            if event is not None:
                events.append(event)
        return events

    def _event(self, progress: Mapping[str, Any]) -> dict[str, Any] | None:
        batch = int(progress["batchId"])
        rows = self._committed.pop(batch, {})
        records = {
            source: int(metrics["records"])
            for source, metrics in (progress.get("observedMetrics") or {}).items()
        }
        ours = self._dead_letter_topics | self._retry_topics
        written = {topic: count for topic, count in rows.items() if topic not in ours}
        retried = {topic: count for topic, count in rows.items() if topic in self._retry_topics}
        dead_letters = {topic: count for topic, count in rows.items() if topic in self._dead_letter_topics}
        if not any(records.values()) and not rows:
            return None
        seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
        totals = self.totals
        totals.records.update(records)
        totals.written.update(written)
        totals.retried.update(retried)
        totals.dead_letters.update(dead_letters)
        totals.batches += 1
        totals.last_batch, totals.last_seconds = batch, seconds
        totals.records_per_second = round(sum(records.values()) / seconds, 1) if seconds else 0.0
        totals.lag = _lag(progress["sources"])
        return {
            "event": "batch",
            "query": self.query,
            "batch": batch,
            "records": records,
            "written": written,
            "retried": retried,
            "dead_letters": dead_letters,
            "seconds": seconds,
            "records_per_second": totals.records_per_second,
            "lag": totals.lag,
        }


def _lag(sources: list[Mapping[str, Any]]) -> int | None:
    """Returns the number of records that were not read yet; None if no source is a topic."""
    lags = [
        count_between(offsets_from_json(each["endOffset"]), offsets_from_json(each["latestOffset"]))
        for each in sources
        if _are_offsets(each.get("endOffset")) and _are_offsets(each.get("latestOffset"))
    ]
    return sum(lags) if lags else None


def _are_offsets(value: Any) -> bool:
    """True for offsets of topics, which are numbers by topic and partition. Files have offsets of another form."""
    return isinstance(value, dict) and all(isinstance(each, dict) for each in value.values())
