"""The series that clients pushed, and counts of pushes: kafka.server client-metrics, and names of Strandline's own."""

from __future__ import annotations

from strandline.broker.node_context import NodeContext
from strandline.broker.telemetry.clients.instances import ClientInstance, ClientTelemetry
from strandline.telemetry.exposition import (
    MANY,
    PER_CLIENT,
    Families,
    Family,
    Sample,
    counter,
    escaped,
    gauge,
    labels,
)

_INSTANCES_IN_A_SLICE = 20
_PUSHED = "Pushed by clients (KIP-714)."


class ClientMetricsCollector:
    def __init__(self, node: NodeContext, telemetry: ClientTelemetry) -> None:
        self._node = node
        self._telemetry = telemetry

    def node_families(self) -> Families:
        found = self._telemetry
        found.forget_stale(self._node.clock.monotonic())
        name = "kafka_server_client_metrics_"
        yield gauge(
            f"{name}instance_count", "Clients that push metrics to this broker.", len(found.instances)
        )
        help_ = "Pushes of a subscription that has changed since."
        yield counter(f"{name}unknown_subscription_request_total", help_, found.unknown_subscriptions)
        yield counter(f"{name}throttle_total", "Requests of clients that came too early.", found.throttled)
        yield counter(f"{name}plugin_export_total", "Pushes of metrics that were taken over.", found.pushes)
        yield counter(
            f"{name}plugin_error_total", "Pushes of metrics that were refused.", found.refused_pushes
        )
        help_ = (
            "Series of clients that were left out: above strandline.client.metrics.series.max, or of a kind that "
            "is not read."
        )
        yield counter("strandline_client_metrics_left_out_total", help_, found.left_out)

    def client_families(self) -> Families:
        help_ = "1 for each client that pushes metrics, with what is known of it."
        infos = [(_info(each), 1) for each in self._telemetry.instances.values()]
        yield Family("strandline_client_info", "gauge", help_, infos, MANY)
        heads: dict[str, tuple[str, str]] = {}
        samples: dict[str, list[Sample]] = {}
        for number, instance in enumerate(list(self._telemetry.instances.values())):
            if number % _INSTANCES_IN_A_SLICE == 0:
                yield None
            client = _client_labels(instance)
            for point in instance.series.values():
                # If clients differ about the type of a metric, that of the first client is used.
                kind, _ = heads.setdefault(point.name, (point.kind, point.help or _PUSHED))
                if point.kind != kind:
                    continue
                key = f"{point.suffix}{{{client}{',' if point.labels else ''}{point.labels}}}"
                samples.setdefault(point.name, []).append((key, point.value))
        for name, found in samples.items():
            kind, help_ = heads[name]
            yield Family(name, kind, help_, found, PER_CLIENT)


def _client_labels(instance: ClientInstance) -> str:
    facts = instance.facts
    client_id = escaped(facts.get("client_id", ""))
    return f'client_id="{client_id}",client_instance_id="{facts["client_instance_id"]}"'


def _info(instance: ClientInstance) -> str:
    facts = {name: value for name, value in instance.facts.items() if name != "client_source_port"}
    return labels(**(dict(instance.client) | facts))
