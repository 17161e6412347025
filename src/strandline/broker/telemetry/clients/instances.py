"""The clients that push metrics to this broker: GetTelemetrySubscriptions and PushTelemetry (KIP-714).

1. A client requests its subscription, and gets an id, metrics and an interval. It pushes at most once in an interval,
   and once at any time after each such request; another push gets THROTTLING_QUOTA_EXCEEDED.
2. When subscriptions change, so does the id of a client's subscription: its next push gets UNKNOWN_SUBSCRIPTION_ID, and
   it requests its subscription again.
3. Counters are requested as totals since the client's start, where Kafka requests the growth since the last push: a
   push that is lost or goes to another broker then changes nothing (ADR 46).
4. A client is forgotten, with its series, when it was silent for three intervals, and a minute after its last push or
   the end of its connection, so that one or two scrapes see its last values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import RESERVED_UUIDS, ZERO_UUID, uuid_text
from strandline.broker.node_context import NodeContext
from strandline.broker.server.request_context import ClientChannel, RequestContext
from strandline.config.dynamic import CLIENT_METRICS
from strandline.wire.compression import GZIP, LZ4, NAMES, SNAPPY, ZSTD

if TYPE_CHECKING:  # imported with the first subscription: most clusters have none
    from strandline.broker.telemetry.clients.otlp import Point, Pushed
    from strandline.broker.telemetry.clients.subscriptions import RequestedMetrics, Subscription

# The extra with the decoder of pushes, and its module.
EXTRA: Final = "telemetry"
_DECODER: Final = "opentelemetry.proto.metrics.v1.metrics_pb2"
# The codecs in the order of preference, which is Kafka's.
COMPRESSION_TYPES: Final = (ZSTD, LZ4, GZIP, SNAPPY)
# The most clients of one broker, as in Kafka; the one that was silent for the longest time is forgotten first.
INSTANCES_MAX: Final = 16_384
# The shortest time for which a client is remembered after its last request, as in Kafka.
SILENT_S: Final = 60.0
_SILENT_INTERVALS: Final = 3
# Intervals are in milliseconds.
_TOLERANCE_S: Final = 0.001
# The interval of the search for clients that are to be forgotten.
_LOOK_S: Final = 5.0

SeriesKey = tuple[str, str, str]  # name, suffix, labels


class ClientInstance:
    """One client, by the id that it sends."""

    __slots__ = (
        "asked_at",
        "client",
        "connection",
        "ends_at",
        "facts",
        "instance_id",
        "is_terminating",
        "last_error",
        "pushed_at",
        "requested",
        "seen_at",
        "series",
        "version",
    )

    def __init__(self, instance_id: bytes, facts: Mapping[str, str]) -> None:
        self.instance_id = instance_id
        self.facts = facts
        self.requested: RequestedMetrics
        self.version = -1  # the version of the subscriptions when it was asked
        self.asked_at = -math.inf
        self.pushed_at = -math.inf
        self.seen_at = -math.inf
        self.ends_at = math.inf
        self.is_terminating = False
        self.last_error = ErrorCode.NONE
        self.connection: ClientChannel | None = None
        self.client: tuple[tuple[str, str], ...] = ()
        self.series: dict[SeriesKey, Point] = {}

    @property
    def interval_s(self) -> float:
        return self.requested.interval_ms / 1000

    def forgotten_at(self) -> float:
        return min(self.ends_at, self.seen_at + max(SILENT_S, _SILENT_INTERVALS * self.interval_s))

    def may_ask(self, now: float) -> bool:
        """Returns True after an interval, or if the client has to request its subscription again."""
        if self.last_error in (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
            return True
        return now - max(self.asked_at, self.pushed_at) >= self.interval_s - _TOLERANCE_S

    def may_push(self, now: float) -> bool:
        """Returns True once after the request of the subscription, since the time of the first push is random, and then
        after each interval."""
        return self.asked_at > self.pushed_at or now - self.pushed_at >= self.interval_s - _TOLERANCE_S


class ClientTelemetry:
    """The clients of this broker with a subscription, and the series that they pushed."""

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._subscriptions: tuple[Subscription, ...] = ()
        self._version = -1
        self._can_read: bool | None = None
        self._has_warned = False
        self._looked_at = -math.inf
        self.instances: dict[bytes, ClientInstance] = {}  # the one with the latest request comes last
        self.series_count = 0
        self.pushes = 0
        self.throttled = 0
        self.unknown_subscriptions = 0
        self.refused_pushes = 0
        self.left_out = 0

    def configs_changed(self) -> None:
        """Warns once if there are subscriptions and no decoder for pushes."""
        if not self._has_warned and self._current_subscriptions() and not self._has_decoder():
            self._has_warned = True
            self._node.events.warn(
                "metrics of clients are not collected: the decoder is missing",
                install=f"pip install 'strandline[{EXTRA}]'",
            )

    @property
    def is_announced(self) -> bool:
        """True if the APIs are announced: there is a subscription, and pushes can be read."""
        return bool(self._current_subscriptions()) and self._has_decoder()

    def _current_subscriptions(self) -> tuple[Subscription, ...]:
        version = self._node.configs.subscriptions_version
        if version != self._version:
            self._version = version
            self._subscriptions = ()
            if self._node.configs.names_of(CLIENT_METRICS):
                from strandline.broker.telemetry.clients.subscriptions import subscriptions_of

                self._subscriptions = subscriptions_of(self._node.configs)
        return self._subscriptions

    def _has_decoder(self) -> bool:
        if self._can_read is None:
            try:
                self._can_read = find_spec(_DECODER) is not None
            except ModuleNotFoundError:
                self._can_read = False
        return self._can_read

    # Requests

    def ask(self, context: RequestContext, instance_id: bytes) -> ClientInstance:
        """Returns the client with its subscription; raises KafkaError with THROTTLING_QUOTA_EXCEEDED."""
        now = self._node.clock.monotonic()
        if instance_id == ZERO_UUID:
            instance_id = self._node.random.uuid()
        instance = self._heard(context, instance_id, now)
        if not instance.may_ask(now):
            self.throttled += 1
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                "The client requested its subscription again before its push interval was over.",
            )
        instance.asked_at = now
        instance.last_error = ErrorCode.NONE
        return instance

    async def push(
        self,
        context: RequestContext,
        instance_id: bytes,
        *,
        subscription_id: int,
        is_terminating: bool,
        codec: int,
        data: bytes,
    ) -> None:
        """Takes over the series of a push; raises KafkaError."""
        from strandline.broker.telemetry.clients.otlp import read_push

        if instance_id in RESERVED_UUIDS:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "The client has no instance id; it has to request one."
            )
        instance = self._heard(context, instance_id, self._node.clock.monotonic())
        try:
            self._check_push(instance, subscription_id, is_terminating, codec, data)
            instance.is_terminating = is_terminating
            if data:
                bytes_max = self._node.config.int("telemetry.max.bytes")
                pushed = await self._node.workers.run(read_push, codec, data, bytes_max)
                self._take(instance, pushed)
        except KafkaError as error:
            instance.last_error = ErrorCode(error.code)
            self.refused_pushes += 1
            raise
        finally:
            if is_terminating:
                instance.ends_at = self._node.clock.monotonic() + SILENT_S
        instance.last_error = ErrorCode.NONE

    def _check_push(
        self, instance: ClientInstance, subscription_id: int, is_terminating: bool, codec: int, data: bytes
    ) -> None:
        """Makes Kafka's checks, in Kafka's order."""
        if instance.is_terminating:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "The client has marked its last push as the final one."
            )
        now = self._node.clock.monotonic()
        if instance.may_push(now):
            instance.pushed_at = now
        elif not is_terminating:
            self.throttled += 1
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The client pushed again before its interval was over."
            )
        if subscription_id != instance.requested.subscription_id:
            self.unknown_subscriptions += 1
            raise KafkaError(
                ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
                "Subscriptions have changed; the client has to request its subscription again.",
            )
        if not 0 <= codec < len(NAMES):
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"There is no compression type {codec}.")
        bytes_max = self._node.config.int("telemetry.max.bytes")
        if len(data) > bytes_max:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, f"A push has at most {bytes_max} bytes.")
        if not self._has_decoder():
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"This broker needs `pip install 'strandline[{EXTRA}]'` to read metrics.",
            )

    # Clients

    def _heard(self, context: RequestContext, instance_id: bytes, now: float) -> ClientInstance:
        """Returns the client that sent a request, with a new subscription if subscriptions have changed."""
        from strandline.broker.telemetry.clients.subscriptions import requested_metrics

        self.forget_stale(now)
        subscriptions = self._current_subscriptions()
        instance = self.instances.pop(instance_id, None)
        if instance is None:
            instance = ClientInstance(instance_id, _facts(context, instance_id))
            while len(self.instances) >= INSTANCES_MAX:
                self._forget(next(iter(self.instances)))
        self.instances[instance_id] = instance
        if instance.version != self._version:
            instance.version = self._version
            instance.requested = requested_metrics(subscriptions, instance.facts, instance_id)
            # It may request the new subscription at once.
            instance.asked_at = instance.pushed_at = -math.inf
        instance.seen_at, instance.ends_at = now, math.inf
        if instance.connection is not context.connection:
            instance.connection = context.connection
            self._watch(context.connection, instance)
        return instance

    def _watch(self, connection: ClientChannel, instance: ClientInstance) -> None:
        """Watches the connection of the client's last request, to notice its end."""
        before: Callable[[], None] | None = connection.on_lost

        def lost() -> None:
            if before is not None:
                before()
            if instance.connection is connection:
                instance.connection = None
                instance.ends_at = min(instance.ends_at, self._node.clock.monotonic() + SILENT_S)

        connection.on_lost = lost

    def forget_stale(self, now: float) -> None:
        """Forgets clients whose connection has ended or that were silent for too long."""
        if now - self._looked_at < _LOOK_S:
            return
        self._looked_at = now
        for instance_id in [key for key, each in self.instances.items() if each.forgotten_at() <= now]:
            self._forget(instance_id)

    def _forget(self, instance_id: bytes) -> None:
        self.series_count -= len(self.instances.pop(instance_id).series)

    def _take(self, instance: ClientInstance, pushed: Pushed) -> None:
        """Replaces the client's series by those of its push. Series beyond the limit are left out, and counted."""
        if self.instances.get(instance.instance_id) is not instance:
            return  # it was forgotten while the push was being read
        room = self._node.config.int("strandline.client.metrics.series.max") - self.series_count
        room += len(instance.series)
        series: dict[SeriesKey, Point] = {}
        left_out = pushed.left_out
        for point in pushed.points:
            key = (point.name, point.suffix, point.labels)
            if key not in series and len(series) >= room:
                left_out += 1
                continue
            before = instance.series.get(key)
            if point.is_delta and before is not None:
                point = point._replace(value=point.value + before.value)
            series[key] = point
        # Series that are pushed only when they change stay.
        for key, point in instance.series.items():
            if point.is_delta and key not in series and len(series) < room:
                series[key] = point
        self.series_count += len(series) - len(instance.series)
        instance.series, instance.client = series, pushed.client
        self.pushes += 1
        self.left_out += left_out


def _facts(context: RequestContext, instance_id: bytes) -> dict[str, str]:
    """Returns the facts by which subscriptions select a client. No pattern matches a fact that the client did not
    send."""
    software, version = context.connection.software
    found = {
        "client_instance_id": uuid_text(instance_id),
        "client_id": context.client_id,
        "client_software_name": software,
        "client_software_version": version,
        "client_source_address": context.client_host,
        "client_source_port": context.connection.peer_address.rpartition(":")[2],
    }
    return {name: value for name, value in found.items() if value is not None}
