"""Enforces quotas of clients: the response of a client over its quota says so, and its connection is muted (KIP-124,
219).

1. `producer_byte_rate` counts the bytes of Produce requests, `consumer_byte_rate` those of responses to consumers.
2. `request_percentage` counts the time in which this broker's loop works for a client's requests; 100 is the whole
   loop. Requests of other nodes do not count.
3. The response is sent at once, with `throttle_time_ms`; then the connection is muted. A forwarded request is throttled
   for the controller's time, if that is longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from struct import Struct
from typing import Any, Final, Protocol

from strandline.base.acls import AclOperation
from strandline.base.buffers import Buffer
from strandline.base.quota_windows import RateWindow
from strandline.broker.authorization.requirement import Requirement
from strandline.broker.node_context import NodeContext
from strandline.broker.quotas.limits import QuotaLimit, QuotaLimits
from strandline.controller.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from strandline.storage.segment import Slice
from strandline.wire.api_index import API_INDEX

_PRODUCE: Final = 0
_FETCH: Final = 1
_INT32: Final = Struct(">i")
_UNTHROTTLED: Final = bytes(4)
_ALL_PERCENT: Final = 100.0
_THROTTLE_MS_MAX: Final = 2**31 - 1
_CLIENT_QUOTAS: Final = frozenset(
    (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
)

Body = Sequence[Buffer | Slice]


class ThrottledRequest(Protocol):
    """A request whose response is about to be sent: a `RequestContext`."""

    api_key: int
    api_version: int
    body: memoryview
    connection: Any
    times: Any
    started_at: float
    handled_at: float
    quota_client_id: str


class ClientQuotas:
    def __init__(self, node: NodeContext, requirements: dict[int, Requirement]) -> None:
        self._clock = node.clock
        self._image = node.image
        self._requirements = requirements
        self._width_s = float(node.config.int("quota.window.size.seconds"))
        self._samples = node.config.int("quota.window.num")
        new_window = partial(RateWindow, self._width_s, self._samples)
        self.producers = QuotaLimits(node.image, PRODUCER_BYTE_RATE, new_window)
        self.consumers = QuotaLimits(node.image, CONSUMER_BYTE_RATE, new_window)
        self.requests = QuotaLimits(node.image, REQUEST_PERCENTAGE, new_window)
        # Positions of `throttle_time_ms`, by API key and version.
        self._positions: dict[tuple[int, int], int | None] = {}
        # While this is False there are no quotas of clients, and connections do not call `throttled`.
        self.is_active = False

    def follow(self) -> None:
        """Takes over quotas that have changed."""
        self.is_active = any(
            not _CLIENT_QUOTAS.isdisjoint(quotas) for quotas in self._image.client_quotas.values()
        )

    def fetch_bytes_max(self, context: ThrottledRequest) -> int | None:
        """Returns the most bytes of one response to a consumer, which its quota allows in the window; None without a
        quota."""
        client_id = getattr(context, "quota_client_id", "")
        limit = self.consumers.of(context.connection.principal.name, client_id)
        return None if limit is None else max(int(limit.rate * self._width_s * (self._samples - 1)), 1)

    def throttled(self, context: ThrottledRequest, response: Body | None) -> Body | None:
        """Counts the use of a request. If its client is over a quota, mutes the connection, and returns the response
        with the throttle time; otherwise returns the response as it is."""
        if context.connection.is_controller_listener or not hasattr(context, "quota_client_id"):
            return response  # a request of another node, or from before there were quotas
        throttle_s = self._record(context, response)
        if response is None:
            if throttle_s > 0:
                context.connection.mute(throttle_s)
            return None
        position = self._position(context.api_key, context.api_version)
        head = response[0] if response else b""
        if position is None or isinstance(head, Slice):
            if throttle_s > 0:
                context.connection.mute(throttle_s)
            return response
        at = position if position >= 0 else len(head) + position
        # A forwarded response may have the controller's throttle time already.
        (present_ms,) = _INT32.unpack_from(head, at) if position >= 0 else (0,)
        throttle_ms = min(max(round(throttle_s * 1000), present_ms), _THROTTLE_MS_MAX)
        if throttle_ms <= 0:
            return response
        context.connection.mute(throttle_ms / 1000)
        if bytes(head[at : at + 4]) != _UNTHROTTLED and position < 0:
            return response  # tagged fields follow, so these four bytes are not the throttle time
        patched = bytearray(head)
        _INT32.pack_into(patched, at, throttle_ms)
        return (patched, *response[1:])

    def _record(self, context: ThrottledRequest, response: Body | None) -> float:
        """Counts the use of a request, and returns the seconds for which its client is to be throttled."""
        user, client_id, key = context.connection.principal.name, context.quota_client_id, context.api_key
        now = self._clock.monotonic()
        throttle_s = 0.0
        if key == _PRODUCE:
            throttle_s = _used(self.producers.of(user, client_id), len(context.body), now)
        elif key == _FETCH:
            is_from_follower = context.times.followers is None  # its times are those of FetchFollower
            if is_from_follower:
                return 0.0
            if response is not None:
                throttle_s = _used(self.consumers.of(user, client_id), _size_of(response), now)
        if response is None or self._is_exempt(key):
            return throttle_s
        percent = (context.handled_at - context.started_at) * _ALL_PERCENT
        by_time_s = _used(self.requests.of(user, client_id), percent, now)
        return max(throttle_s, min(by_time_s, self._width_s))

    def _is_exempt(self, api_key: int) -> bool:
        requirement = self._requirements.get(api_key)
        return requirement is not None and requirement.operation == AclOperation.CLUSTER_ACTION

    def _position(self, api_key: int, version: int) -> int | None:
        if (api_key, version) not in self._positions:
            self._positions[api_key, version] = throttle_time_position(api_key, version)
        return self._positions[api_key, version]


def _used(limit: QuotaLimit[RateWindow] | None, value: float, now: float) -> float:
    if limit is None:
        return 0.0
    limit.window.record(value, now)
    throttle_s = limit.window.throttle_s(limit.rate, now)
    if throttle_s > 0:
        limit.throttle_times.record(throttle_s, now)
    return throttle_s


def _size_of(response: Body) -> int:
    return sum(part.size if isinstance(part, Slice) else len(part) for part in response)


def throttle_time_position(api_key: int, version: int) -> int | None:
    """Returns the position of `throttle_time_ms` in the bytes of a response, from the end if negative; None if the
    response has none, or if the position depends on its contents."""
    known = API_INDEX[api_key]
    module = import_module(f"strandline.wire.api.{known.module}")
    cls = getattr(module, f"{known.name}Response")
    fields = [field for field in cls.FIELDS if version in field.versions and version not in field.tagged]
    names = [field.name for field in fields]
    if "throttle_time_ms" not in names:
        return None
    number = names.index("throttle_time_ms")
    if all(field.type.size for field in fields[:number]):
        position: int = sum(field.type.size for field in fields[:number])
        return position
    # Among the APIs with tagged fields after it, only Produce has such fields, with some errors.
    has_tagged = any(version in field.tagged for field in cls.FIELDS)
    if number == len(fields) - 1 and (not has_tagged or api_key == _PRODUCE):
        return -5 if version in cls.FLEXIBLE else -4
    return None
