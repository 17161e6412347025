"""Progress of a pipeline, for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from strandline.telemetry.exposition import COUNTER, GAUGE, Family, labels

_PREFIX: Final = "strandline_pipeline_"
# By key of a query's totals: the metric's name, the label of its counts, and its help text.
_COUNTERS: Final = {
    "records": ("records_total", "source", "Records read."),
    "written": ("written_total", "topic", "Records committed to topics."),
    "retried": ("retried_total", "topic", "Records committed to retry topics."),
    "dead_letters": ("dead_letters_total", "topic", "Records committed to dead-letter topics."),
}
_GAUGES: Final = {
    "last_seconds": ("batch_seconds", "How long the last batch took."),
    "records_per_second": ("records_per_second", "The rate of the last batch."),
    "lag": ("lag_records", "Records in the topics that were not read yet, at the last batch."),
    "last_batch": ("last_batch", "The number of the last batch."),
}


class Metrics:
    """The totals of a pipeline's queries. Any thread may ask for the families."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._queries: Mapping[str, Mapping[str, Any]] = {}

    def update(self, queries: Mapping[str, Mapping[str, Any]]) -> None:
        """Replaces the totals by newer ones."""
        self._queries = queries

    def families(self) -> list[Family]:
        """Returns the present metrics."""
        queries = self._queries
        found = []
        for key, (name, label, doc) in _COUNTERS.items():
            samples = [
                (self._labels(query, **{label: value}), count)
                for query, totals in queries.items()
                for value, count in sorted(totals[key].items())
            ]
            found.append(Family(_PREFIX + name, COUNTER, doc, samples))
        batches = [(self._labels(query), totals["batches"]) for query, totals in queries.items()]
        found.append(Family(f"{_PREFIX}batches_total", COUNTER, "Batches done.", batches))
        for key, (name, doc) in _GAUGES.items():
            values = [
                (self._labels(query), totals[key])
                for query, totals in queries.items()
                if totals[key] is not None
            ]
            found.append(Family(_PREFIX + name, GAUGE, doc, values))
        return found

    def _labels(self, query: str, **others: str) -> str:
        return labels(pipeline=self._pipeline, query=query, **others)
