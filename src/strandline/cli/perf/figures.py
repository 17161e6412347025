"""The figures of a measurement: rates and percentiles, while it runs and at its end."""

from __future__ import annotations

import time
from typing import Any, Final

from strandline.cli.output.progress import Progress
from strandline.cli.output.text import size

SHAPE: Final = {"records": "number", "bytes": "number", "seconds": "number", "records_per_second": "number"}
LATENCY_SHAPE: Final = {
    "avg_ms": "number?",
    "p50_ms": "number?",
    "p95_ms": "number?",
    "p99_ms": "number?",
    "max_ms": "number?",
}
_SHOW_SECONDS: Final = 0.2


class Meter:
    """Counts records and bytes, and shows them beside a bar."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._total = total
        self._progress = progress
        self._began = self._shown_at = time.perf_counter()
        self._shown_records = 0
        self.records = 0
        self.bytes = 0

    def add(self, records: int, byte_count: int) -> None:
        self.records += records
        self.bytes += byte_count
        now = time.perf_counter()
        if now - self._shown_at >= _SHOW_SECONDS:
            rate = (self.records - self._shown_records) / (now - self._shown_at)
            self._shown_at, self._shown_records = now, self.records
            share = self.records / self._total if self._total else 0.0
            self._progress.bar(share, f"{self.records:,} records, {rate:,.0f} a second, {size(self.bytes)}")

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def document(self) -> dict[str, Any]:
        seconds = self.seconds
        return {
            "records": self.records,
            "bytes": self.bytes,
            "seconds": round(seconds, 3),
            "records_per_second": round(self.records / seconds, 1) if seconds else 0.0,
        }


def latency_document(times_s: list[float]) -> dict[str, Any]:
    """Returns the average and percentiles in milliseconds; None without any times."""
    if not times_s:
        return dict.fromkeys(LATENCY_SHAPE)
    ordered = sorted(times_s)

    def percentile(share: float) -> float:
        return round(ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000, 3)

    return {
        "avg_ms": round(sum(ordered) / len(ordered) * 1000, 3),
        "p50_ms": percentile(0.50),
        "p95_ms": percentile(0.95),
        "p99_ms": percentile(0.99),
        "max_ms": round(ordered[-1] * 1000, 3),
    }


def line_of(document: dict[str, Any]) -> str:
    """Returns the result in one line for people."""
    seconds = max(document["seconds"], 1e-9)
    text = (
        f"{document['records']:,} records in {document['seconds']:.2f} s: "
        f"{document['records_per_second']:,.0f} records/s, {size(document['bytes'] / seconds)}/s"
    )
    if document.get("avg_ms") is not None:
        text += (
            f"; latency {document['avg_ms']} ms on average, {document['p50_ms']} ms p50, {document['p95_ms']} ms p95, "
            f"{document['p99_ms']} ms p99, {document['max_ms']} ms at most"
        )
    return text
