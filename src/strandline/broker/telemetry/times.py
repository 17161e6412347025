"""Histograms as families of metrics: in Prometheus' format, and as summaries in jmx_exporter's."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.telemetry.exposition import HISTOGRAM, SUMMARY, Family, Sample, number, with_label
from strandline.telemetry.histogram import QUANTILES, Histogram, quantile

_MS = 1000


def summary(name: str, help_: str, rows: Sequence[tuple[str, Histogram, list[int]]]) -> Family:
    """Returns quantiles, sum and count of histograms of seconds, in milliseconds. A row has labels, histogram and
    recent counts."""
    samples: list[Sample] = []
    for key, histogram, recent in rows:
        for text, share in QUANTILES:
            value = quantile(histogram.bounds, recent, share) * _MS
            samples.append((with_label(key, "quantile", text), round(value, 4)))
        samples.append((f"_sum{key}", round(histogram.sum * _MS, 4)))
        samples.append((f"_count{key}", histogram.count))
    return Family(name, SUMMARY, help_, samples)


def histogram_family(name: str, help_: str, rows: Sequence[tuple[str, Histogram]]) -> Family:
    """Returns histograms of seconds, by their labels."""
    samples: list[Sample] = []
    for key, histogram in rows:
        seen = 0
        for bound, count in zip(histogram.bounds, histogram.counts, strict=False):
            seen += count
            samples.append((f"_bucket{with_label(key, 'le', number(bound))}", seen))
        samples.append((f"_bucket{with_label(key, 'le', '+Inf')}", histogram.count))
        samples.append((f"_sum{key}", histogram.sum))
        samples.append((f"_count{key}", histogram.count))
    return Family(name, HISTOGRAM, help_, samples)
