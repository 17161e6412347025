"""The aims of Strandline, as ratios to a warmed-up Apache Kafka, and figures that others published about Kafka."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Names of figures, as the samples have them.
PRODUCE_RATE = "produce_mb_s"
CONSUME_RATE = "consume_mb_s"
PRODUCE_CPU = "produce_broker_cpu_s_gb"
CONSUME_CPU = "consume_broker_cpu_s_gb"
LATENCY_P99 = "p99_ms"
IDLE_MEMORY = "idle_pss_mb"
LOADED_MEMORY = "loaded_pss_mb"
FIRST_ACK = "first_ack_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """A ratio to reach: at least `ratio` if more is better, at most `ratio` if less is better."""

    ratio: float
    more_is_better: bool

    def __str__(self) -> str:
        return f"{'≥' if self.more_is_better else '≤'} {self.ratio:g}×"

    def is_met(self, ratio: float) -> bool:
        return ratio >= self.ratio if self.more_is_better else ratio <= self.ratio

    def verdict(self, ratio: float) -> str:
        if self.is_met(ratio):
            return "met"
        share = ratio / self.ratio
        if self.more_is_better:
            return f"missed by {1 - share:.0%}"
        return f"missed by {share - 1:.0%}" if share < 2 else f"missed, {share:.1f} times the aim"


_PRODUCE_BY_RECORD_BYTES = {
    1000: Aim(ratio=2.0, more_is_better=True),
    100: Aim(ratio=1.3, more_is_better=True),
}
_OTHERS = {
    CONSUME_RATE: Aim(ratio=1.0, more_is_better=True),
    PRODUCE_CPU: Aim(ratio=0.3, more_is_better=False),
    CONSUME_CPU: Aim(ratio=1.0, more_is_better=False),
    LATENCY_P99: Aim(ratio=0.5, more_is_better=False),
    IDLE_MEMORY: Aim(ratio=0.1, more_is_better=False),
    LOADED_MEMORY: Aim(ratio=0.1, more_is_better=False),
    FIRST_ACK: Aim(ratio=0.15, more_is_better=False),
}


def aim_for(figure: str, scenario: dict[str, Any]) -> Aim | None:
    """Returns the aim of a figure; None if there is none: 10 kB records, latencies other than p99, codecs'
    throughput."""
    if figure == PRODUCE_RATE:
        return _PRODUCE_BY_RECORD_BYTES.get(scenario.get("record_bytes", 0))
    return _OTHERS.get(figure)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFigure:
    """A published figure of a single broker in production (Kreps 2013; Wang et al. 2015)."""

    metric: str
    said: str
    figure: str
    scale: float
    unit: str


PUBLISHED_FIGURES = (
    PublishedFigure(
        metric="producer throughput", said="200–500 MB/s", figure=PRODUCE_RATE, scale=1.0, unit="MB/s"
    ),
    PublishedFigure(
        metric="messages a second",
        said="1–2 million",
        figure="produce_records_s",
        scale=1e-6,
        unit="million",
    ),
    PublishedFigure(
        metric="consumer throughput", said="300–600 MB/s", figure=CONSUME_RATE, scale=1.0, unit="MB/s"
    ),
    PublishedFigure(metric="latency, p99", said="5–10 ms", figure=LATENCY_P99, scale=1.0, unit="ms"),
)
