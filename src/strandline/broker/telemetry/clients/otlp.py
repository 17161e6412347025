"""Reads metrics in OpenTelemetry's protocol as series of Prometheus. Plain values go in and come out, for use in
workers.

1. `org.apache.kafka.producer.request.latency.avg` is shown as `org_apache_kafka_producer_request_latency_avg`. A name
   with another beginning gets the prefix `client_`, so that no client can overwrite a metric of the node.
2. A sum that only grows is a counter, and its name ends with `_total`.
3. Gauges, sums and histograms are read. Other kinds, and series beyond SERIES_MAX, are counted as left out.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from strandline.base.errors import ErrorCode, KafkaError
from strandline.telemetry.exposition import COUNTER, GAUGE, HISTOGRAM, escaped, number
from strandline.wire.compression import CompressionError, TooManyBytes, decompress

# The most series of one push. A Java producer that writes to ten topics has some 250.
SERIES_MAX: Final = 2_000
# Labels have names of topics, with at most 249 characters, and of nodes.
_LABEL_CHARS_MAX: Final = 256
_NAME_CHARS_MAX: Final = 200

_KAFKA_PREFIX: Final = "org_apache_kafka_"
_OTHER_PREFIX: Final = "client_"
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]+")
_DELTA: Final = 1  # AGGREGATION_TEMPORALITY_DELTA


class Point(NamedTuple):
    """One series. `suffix` and `labels` are written in the format of the page, the labels without braces."""

    name: str
    kind: str
    help: str
    suffix: str
    labels: str
    value: float
    is_delta: bool


class Pushed(NamedTuple):
    """The contents of one push."""

    client: tuple[tuple[str, str], ...]  # facts about the client: its group, its rack
    points: tuple[Point, ...]
    left_out: int


def read_push(codec: int, data: bytes, bytes_max: int) -> Pushed:
    """Returns the contents of a push; raises KafkaError with TELEMETRY_TOO_LARGE, or INVALID_RECORD for bytes that are
    no metrics."""
    from google.protobuf.message import DecodeError  # from the extra, on first use
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    try:
        plain = decompress(codec, data, bytes_max)
        if len(plain) > bytes_max:
            raise TooManyBytes
    except TooManyBytes:
        raise KafkaError(
            ErrorCode.TELEMETRY_TOO_LARGE,
            f"The metrics have more than {bytes_max} bytes without compression.",
        ) from None
    except CompressionError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"The metrics do not decompress: {error}") from None
    message = MetricsData()
    try:
        message.ParseFromString(plain)
    except DecodeError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"The metrics are not OTLP's: {error}") from None
    return _pushed(message)


def _pushed(message: Any) -> Pushed:
    client: dict[str, str] = {}
    points: list[Point] = []
    left_out = 0
    for resource in message.resource_metrics:
        client |= dict(_attributes(resource.resource.attributes))
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                found = _points(metric)
                if found is None:
                    left_out += 1
                    continue
                room = SERIES_MAX - len(points)
                points += found[:room]
                left_out += max(len(found) - room, 0)
    return Pushed(tuple(client.items()), tuple(points), left_out)


def _points(metric: Any) -> list[Point] | None:
    """Returns the series of one metric; None for a kind that is not read."""
    kind = metric.WhichOneof("data")
    name = prometheus_name(metric.name)
    if kind == "gauge":
        # For Prometheus a name that ends with total is a counter.
        shown = COUNTER if name.endswith("_total") else GAUGE
        return [_point(name, shown, metric, each, is_delta=False) for each in metric.gauge.data_points]
    if kind == "sum":
        is_delta = metric.sum.aggregation_temporality == _DELTA
        shown = COUNTER if metric.sum.is_monotonic else GAUGE
        if shown == COUNTER and not name.endswith("_total"):
            name += "_total"
        return [_point(name, shown, metric, each, is_delta=is_delta) for each in metric.sum.data_points]
    if kind == "histogram":
        is_delta = metric.histogram.aggregation_temporality == _DELTA
        return [
            point
            for each in metric.histogram.data_points
            for point in _histogram_points(name.removesuffix("_total"), metric, each, is_delta)
        ]
    return None


def _point(name: str, kind: str, metric: Any, data: Any, *, is_delta: bool) -> Point:
    value = data.as_int if data.WhichOneof("value") == "as_int" else data.as_double
    return Point(name, kind, metric.description, "", _labels(data.attributes), value, is_delta)


def _histogram_points(name: str, metric: Any, data: Any, is_delta: bool) -> list[Point]:
    labels = _labels(data.attributes)
    before = f"{labels}," if labels else ""
    bounds = [number(bound) for bound in data.explicit_bounds] + ["+Inf"]
    found, seen = [], 0
    for bound, count in zip(bounds, data.bucket_counts, strict=False):
        seen += count
        found.append(("_bucket", f'{before}le="{bound}"', seen))
    if not data.bucket_counts:
        found.append(("_bucket", f'{before}le="+Inf"', data.count))
    found += [("_sum", labels, data.sum), ("_count", labels, data.count)]
    return [
        Point(name, HISTOGRAM, metric.description, suffix, key, value, is_delta)
        for suffix, key, value in found
    ]


def prometheus_name(name: str) -> str:
    shown = _NOT_IN_NAMES.sub("_", name[:_NAME_CHARS_MAX]).strip("_").lower()
    return shown if shown.startswith(_KAFKA_PREFIX) else _OTHER_PREFIX + shown


def _labels(attributes: Any) -> str:
    return ",".join(f'{name}="{escaped(value)}"' for name, value in _attributes(attributes))


def _attributes(attributes: Any) -> list[tuple[str, str]]:
    """Returns names in the form of Prometheus, and values; of names that are equal then, the last one stays."""
    found: dict[str, str] = {}
    for each in attributes:
        name = _NOT_IN_NAMES.sub("_", each.key[:_NAME_CHARS_MAX]).strip("_").lower() or "_"
        if name[0].isdigit() or name in RESERVED:
            name = f"client_{name}"
        found[name] = _text(each.value)[:_LABEL_CHARS_MAX]
    return sorted(found.items())


def _text(value: Any) -> str:
    kind = value.WhichOneof("value")
    if kind in ("string_value", "int_value", "double_value"):
        return str(getattr(value, kind))
    if kind == "bool_value":
        return "true" if value.bool_value else "false"
    return ""


# The labels that the node adds to every series of a client, and those of Prometheus itself.
RESERVED: Final = frozenset({"client_id", "client_instance_id", "le", "quantile", "instance", "job"})
