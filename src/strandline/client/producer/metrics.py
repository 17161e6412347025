"""A producer's counters, by the names of Kafka's producer metrics where it has one."""

from __future__ import annotations

from strandline.telemetry.counters import Counters


def producer_metrics(counters: Counters, memory_free: int, memory_bytes: int) -> dict[str, float]:
    """Returns the counters and the averages that follow from them."""
    metrics: dict[str, float] = dict(counters.values)
    requests, batches = counters.get("request-total"), counters.get("batch-total")
    metrics["buffer-available-bytes"] = memory_free
    metrics["buffer-total-bytes"] = memory_bytes
    metrics["request-latency-avg"] = counters.get("request-latency-total-ms") / requests if requests else 0.0
    metrics["batch-size-avg"] = counters.get("byte-total") / batches if batches else 0.0
    metrics["records-per-request-avg"] = counters.get("record-send-total") / requests if requests else 0.0
    return metrics
