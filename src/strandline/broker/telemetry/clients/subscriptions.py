"""The metrics and the interval for a client: all subscriptions that match it, combined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import crc32c

from strandline.config import DynamicConfigs, InvalidConfig
from strandline.config.dynamic import CLIENT_METRICS
from strandline.config.keys.client_metrics import (
    ALL_METRICS,
    CLIENT_METRICS_KEYS,
    INTERVAL_MS,
    INTERVAL_MS_DEFAULT,
    MATCH,
    METRICS,
    match_patterns,
)
from strandline.config.values import parse

_INT32: Final = 2**32


class Subscription(NamedTuple):
    """One resource of type CLIENT_METRICS."""

    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Mapping[str, Any]  # compiled, by the fact about the client

    def matches(self, facts: Mapping[str, str]) -> bool:
        return all(
            name in facts and pattern.fullmatch(facts[name]) is not None
            for name, pattern in self.patterns.items()
        )


class RequestedMetrics(NamedTuple):
    """The metrics that one client shall push. The id is the same on every broker, because clients may go to another."""

    subscription_id: int
    metrics: tuple[str, ...]
    interval_ms: int


def subscriptions_of(configs: DynamicConfigs) -> tuple[Subscription, ...]:
    """Returns the existing subscriptions, without those of another version that are invalid here."""
    found = []
    for name in configs.names_of(CLIENT_METRICS):
        overrides = configs.overrides(CLIENT_METRICS, name)
        try:
            values = {
                key: parse(CLIENT_METRICS_KEYS[key], text)
                for key, text in overrides.items()
                if key in CLIENT_METRICS_KEYS
            }
            metrics, interval_ms, matched = (
                values.get(METRICS, ()),
                values.get(INTERVAL_MS, INTERVAL_MS_DEFAULT),
                values.get(MATCH, ()),
            )
            assert isinstance(metrics, tuple)
            assert isinstance(interval_ms, int)
            assert isinstance(matched, tuple)
            found.append(Subscription(metrics, interval_ms, match_patterns(matched)))
        except InvalidConfig:
            continue
    return tuple(found)


def requested_metrics(
    subscriptions: tuple[Subscription, ...], facts: Mapping[str, str], instance_id: bytes
) -> RequestedMetrics:
    """Returns the metrics of all subscriptions that match, with the shortest of their intervals."""
    matching = [each for each in subscriptions if each.matches(facts)]
    metrics = tuple(sorted({name for each in matching for name in each.metrics}))
    if ALL_METRICS in metrics:
        metrics = (ALL_METRICS,)
    interval_ms = min([INTERVAL_MS_DEFAULT, *(each.interval_ms for each in matching)])
    return RequestedMetrics(_subscription_id(metrics, interval_ms, instance_id), metrics, interval_ms)


def _subscription_id(metrics: tuple[str, ...], interval_ms: int, instance_id: bytes) -> int:
    """Returns a number that differs for other metrics or another interval, as in Kafka."""
    checksum: int = crc32c.crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    for start in range(0, 16, 4):
        checksum ^= int.from_bytes(instance_id[start : start + 4], "big")
    return checksum - _INT32 if checksum >= _INT32 // 2 else checksum
