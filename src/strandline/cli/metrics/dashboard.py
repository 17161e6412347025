"""The Grafana dashboard that `strandline metrics dashboard` prints."""

from __future__ import annotations

from typing import Any

_STATS = (
    ("Active controllers", "sum(kafka_controller_kafkacontroller_activecontrollercount)"),
    ("Brokers", "sum(kafka_brokers)"),
    ("Partitions", "sum(kafka_controller_kafkacontroller_globalpartitioncount)"),
    ("Under-replicated", "sum(kafka_server_replicamanager_underreplicatedpartitions)"),
    ("Below min ISR", "sum(kafka_server_replicamanager_underminisrpartitioncount)"),
    ("Offline", "sum(kafka_controller_kafkacontroller_offlinepartitionscount)"),
)
_GRAPHS = (
    (
        "Bytes in",
        "sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesin_total{topic!=''}[1m]))",
        "Bps",
        "{{topic}}",
    ),
    (
        "Bytes out",
        "sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesout_total{topic!=''}[1m]))",
        "Bps",
        "{{topic}}",
    ),
    (
        "Records in",
        "sum by (topic) (rate(kafka_server_brokertopicmetrics_messagesin_total{topic!=''}[1m]))",
        "short",
        "{{topic}}",
    ),
    (
        "Requests",
        "sum by (request) (rate(kafka_network_requestmetrics_requests_total[1m]))",
        "reqps",
        "{{request}}",
    ),
    (
        "Time of requests, 99th percentile",
        "histogram_quantile(0.99, sum by (le, request) (rate(strandline_request_seconds_bucket{part='total'}[5m])))",
        "s",
        "{{request}}",
    ),
    (
        "Errors",
        "sum by (request, error) (rate(kafka_network_requestmetrics_errors_total{error!='NONE'}[5m]))",
        "short",
        "{{request}} {{error}}",
    ),
    ("Lag of groups", "sum by (consumergroup) (kafka_consumergroup_lag)", "short", "{{consumergroup}}"),
    ("Lag in seconds", "max by (group) (kafka_consumergroup_group_max_lag_seconds)", "s", "{{group}}"),
    (
        "Status of groups (0 OK, 1 WARN, 2 ERR)",
        "max by (consumergroup) (strandline_consumergroup_status)",
        "short",
        "{{consumergroup}}",
    ),
    (
        "In-sync sets that shrank",
        "sum by (instance) (rate(kafka_server_replicamanager_isrshrinks_total[5m]))",
        "short",
        "{{instance}}",
    ),
    ("Size of logs", "sum by (topic) (kafka_log_log_size)", "bytes", "{{topic}}"),
    ("Memory", "process_resident_memory_bytes", "bytes", "{{instance}}"),
    ("Processor", "rate(process_cpu_seconds_total[1m])", "short", "{{instance}}"),
    (
        "Loop held up, 99th percentile",
        "histogram_quantile(0.99, sum by (le, instance) (rate(strandline_loop_lag_seconds_bucket[5m])))",
        "s",
        "{{instance}}",
    ),
    (
        "Connections",
        "sum by (instance, listener) (kafka_server_socket_server_metrics_connection_count)",
        "short",
        "{{instance}} {{listener}}",
    ),
)
_COLUMNS, _STAT_WIDTH, _GRAPH_WIDTH, _GRAPH_HEIGHT = 24, 4, 8, 8


def dashboard() -> dict[str, Any]:
    """Returns the dashboard, as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    for number, (title, expression) in enumerate(_STATS):
        place = {"x": number * _STAT_WIDTH, "y": 0, "w": _STAT_WIDTH, "h": 4}
        panels.append(_panel(len(panels), "stat", title, expression, "short", "", place))
    for number, (title, expression, unit, legend) in enumerate(_GRAPHS):
        row, column = divmod(number, _COLUMNS // _GRAPH_WIDTH)
        place = {
            "x": column * _GRAPH_WIDTH,
            "y": 4 + row * _GRAPH_HEIGHT,
            "w": _GRAPH_WIDTH,
            "h": _GRAPH_HEIGHT,
        }
        panels.append(_panel(len(panels), "timeseries", title, expression, unit, legend, place))
    return {
        "title": "Strandline",
        "uid": "strandline",
        "tags": ["strandline", "kafka"],
        "timezone": "browser",
        "schemaVersion": 38,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": panels,
    }


def expressions() -> list[str]:
    """Returns all queries of the dashboard to Prometheus."""
    return [expression for _, expression, *_ in (*_STATS, *_GRAPHS)]


def _panel(
    number: int, kind: str, title: str, expression: str, unit: str, legend: str, place: dict[str, int]
) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "id": number + 1,
        "type": kind,
        "title": title,
        "datasource": source,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [{"refId": "A", "datasource": source, "expr": expression, "legendFormat": legend}],
    }
