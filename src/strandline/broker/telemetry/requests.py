"""Metrics of requests and connections: kafka.network RequestMetrics and SocketServer, socket-server-metrics."""

from __future__ import annotations

from typing import Final

from strandline.base.errors import error_name
from strandline.broker.node_context import NodeContext
from strandline.broker.server.connection_limits import ConnectionLimits, RequestMemory
from strandline.broker.telemetry.times import histogram_family, summary
from strandline.telemetry.exposition import (
    COUNTER,
    GAUGE,
    MANY,
    Families,
    Family,
    Sample,
    counter,
    gauge,
    labels,
)
from strandline.telemetry.histogram import Histogram
from strandline.telemetry.request_metrics import PARTS, RequestTimes

_NAME: Final = "kafka_network_requestmetrics_"
# The parts of a request's time, by Kafka's names.
_KAFKA_NAMES: Final = {
    "total": "totaltimems",
    "queue": "requestqueuetimems",
    "local": "localtimems",
    "remote": "remotetimems",
    "response_queue": "responsequeuetimems",
    "send": "responsesendtimems",
    "throttle": "throttletimems",
}
_HELP: Final = {
    "total": "Time of requests from their arrival until their responses were handed to the operating system, in ms.",
    "queue": "Time of requests before they were handled, in ms.",
    "local": "Time of requests in their handlers, in ms.",
    "remote": "Time of requests in which they waited for other nodes or for records, in ms.",
    "response_queue": "Time of responses that waited for earlier ones of their connection, in ms.",
    "send": "Time until the operating system had taken responses that it did not take at once, in ms.",
    "throttle": "Time by which clients were slowed down, in ms.",
}
_FETCH: Final = 1


class RequestCollector:
    def __init__(self, node: NodeContext, limits: ConnectionLimits, memory: RequestMemory) -> None:
        self._node = node
        self._limits = limits
        self._memory = memory

    def node_families(self) -> Families:
        yield from self._connections()
        yield from self._counts()
        yield None
        yield from self._times()

    def _counts(self) -> Families:
        requests = self._node.requests
        names = {key: times.name for key, times in requests.times.items()}
        names[_FETCH] = "Fetch"
        counts = [
            (labels(request=names[key], version=version), found.count)
            for (key, version), found in sorted(requests.by_version.items())
        ]
        yield Family(f"{_NAME}requests_total", COUNTER, "Requests, by API and version.", counts)
        errors: list[Sample] = []
        for key, times in sorted(requests.times.items()):
            found: dict[int, int] = {}
            for each in _all(times):
                for code, count in each.errors.items():
                    found[code] = found.get(code, 0) + count
            total = sum(each.count for each in _all(times))
            errors.append((labels(request=names[key], error="NONE"), max(total - sum(found.values()), 0)))
            errors += [
                (labels(request=names[key], error=error_name(code)), count)
                for code, count in sorted(found.items())
            ]
        help_ = "Errors in responses, by API; NONE counts the requests beyond those."
        yield Family(f"{_NAME}errors_total", COUNTER, help_, errors)

    def _times(self) -> Families:
        rows: list[RequestTimes] = []
        for _, times in sorted(self._node.requests.times.items()):
            rows += _all(times)
        now = self._node.clock.monotonic()
        found: list[tuple[str, Histogram]] = []
        for part in PARTS:
            parts = [(times, times.part(part)) for times in rows]
            yield summary(
                f"{_NAME}{_KAFKA_NAMES[part]}",
                _HELP[part],
                [(labels(request=times.name), each, times.recent(part, each, now)) for times, each in parts],
            )
            yield None
            found += [(labels(request=times.name, part=part), each) for times, each in parts]
        help_ = (
            "Time of requests, by API and part: total, queue, local, remote, response_queue, send, throttle."
        )
        yield histogram_family("strandline_request_seconds", help_, found)

    def _connections(self) -> Families:
        name = "kafka_server_socket_server_metrics_"
        by_listener = self._limits.count_by_listener()
        counts = [(labels(listener=key, networkProcessor="0"), count) for key, count in by_listener.items()]
        yield Family(f"{name}connection_count", GAUGE, "Connections that are open.", counts)
        opened, ended = self._limits.opened_count, self._limits.ended_count
        yield counter(f"{name}connection_creation_total", "Connections that were opened.", opened)
        yield counter(f"{name}connection_close_total", "Connections that have ended.", ended)
        help_ = "Connections whose TLS handshake or login failed."
        failed = self._node.counters.get("failed_authentications")
        yield counter(f"{name}failed_authentication_total", help_, failed)
        yield gauge(
            "strandline_connections_held",
            "Connections that wait for max.connections.",
            self._limits.held_count,
        )
        software = self._limits.count_by_software()
        yield Family(
            f"{name}connections_software",
            GAUGE,
            "Connections that are open, by the name and version of the client.",
            [
                (labels(clientSoftwareName=name, clientSoftwareVersion=version, listener=listener), count)
                for (name, version, listener), count in software.items()
            ],
            MANY,
        )
        yield gauge(
            "kafka_network_socketserver_memorypoolused",
            "Bytes of requests that have not arrived completely.",
            self._memory.used,
        )
        yield gauge(
            "kafka_network_socketserver_memorypoolavailable",
            "Bytes that such requests may still take.",
            max(self._memory.limit - self._memory.used, 0),
        )


def _all(times: RequestTimes) -> list[RequestTimes]:
    return [times] if times.followers is None else [times, times.followers]
