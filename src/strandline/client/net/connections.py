"""Connections to brokers: one per node and purpose, opened when it is needed and again when it was lost.

A `NodeConnection` opens a channel, negotiates versions (ApiVersions, with KIP-511's fallback for brokers that do not
know the newest), and sends requests in order. Rules:

1. A request gets its response or an error: ConnectionFailedError if the connection is lost (the broker may have
   carried out the request), KafkaTimeoutError if the response does not come in time. A connection with an overdue
   response is closed, because responses come in order and no later one would arrive either.
2. After a failure to connect, attempts pause exponentially (reconnect.backoff.ms). A request during the pause fails
   at once with the last error, so that its caller can choose another node.
3. `purpose` separates requests that must not wait for one another: a heartbeat that waits for a long fetch would come
   too late.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from strandline import __version__
from strandline.base.errors import ErrorCode
from strandline.base.waiting import all_ended, within
from strandline.client.config.config import ClientConfig
from strandline.client.errors import (
    AuthenticationError,
    ClosedError,
    ConnectionFailedError,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
    error_for,
)
from strandline.client.log_limits import RareLines
from strandline.client.net.backoff import Backoff
from strandline.client.net.security import ClientSecurity
from strandline.client.world import ClientWorld
from strandline.ports.network import UnresolvedHostError
from strandline.ports.tls import TlsError
from strandline.rpc.channel import Channel, ChannelClosed
from strandline.wire.api.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.wire.schema import Request, Response

API_VERSIONS_REQUEST: Final = ApiVersionsRequest(
    client_software_name="strandline", client_software_version=__version__
)

R = TypeVar("R", bound=Response)

if TYPE_CHECKING:
    from strandline.security.login import Login

logger = logging.getLogger("strandline.client.connections")


class Node(NamedTuple):
    """A broker as metadata names it. Bootstrap addresses have negative ids."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        name = f"broker {self.node_id}" if self.node_id >= 0 else "bootstrap server"
        return f"{name} at {self.host}:{self.port}"


class NodeConnection:
    """The connection to one node for one purpose."""

    def __init__(
        self,
        world: ClientWorld,
        config: ClientConfig,
        security: ClientSecurity,
        node: Node,
        lines: RareLines,
    ) -> None:
        self.node = node
        self._lines = lines
        self._world = world
        self._config = config
        self._security = security
        self._channel: Channel | None = None
        self._opening: asyncio.Task[None] | None = None
        self._versions: dict[int, tuple[int, int]] = {}
        self.finalized_features: dict[str, int] = {}
        self._backoff = Backoff(
            config.int("reconnect.backoff.ms"), config.int("reconnect.backoff.max.ms"), world.random.below
        )
        self._retry_at = 0.0
        self.attempted_at = float("-inf")  # when it last began to connect
        self._failure = ""
        self.is_unresolved = False  # whether the last attempt failed because the host's name has no address
        self._in_flight: deque[_InFlightRequest] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._request_seconds = config.seconds("request.timeout.ms")
        self._is_closed = False
        self.last_used = world.clock.monotonic()
        self.on_lost: Callable[[Node], None] | None = None
        self.on_overdue: Callable[[Node], None] | None = None

    # State

    @property
    def is_open(self) -> bool:
        return self._channel is not None and self._channel.is_open and bool(self._versions)

    @property
    def in_flight_count(self) -> int:
        """The number of requests without a response."""
        return 0 if self._channel is None else self._channel.waiting_count

    @property
    def unsent_bytes(self) -> int:
        return 0 if self._channel is None else self._channel.unsent_bytes

    @property
    def retry_seconds(self) -> float:
        """The seconds until an attempt to connect is allowed; 0 if one is allowed now, or the connection is open."""
        if self.is_open or self._opening is not None:
            return 0.0
        return max(0.0, self._retry_at - self._world.clock.monotonic())

    def version(self, request: type[Request], *, at_most: int | None = None) -> int:
        """Returns the highest version of a request that both sides speak; the connection must have been open once."""
        low, high = request.VERSIONS
        if at_most is not None:
            high = min(high, at_most)
        theirs = self._versions.get(request.API_KEY)
        chosen = -1 if theirs is None else min(high, theirs[1])
        if theirs is None or chosen < max(low, theirs[0]):
            spoken = "does not know it" if theirs is None else f"speaks versions {theirs[0]} to {theirs[1]}"
            raise UnsupportedVersionError(
                None, f"{request.__name__} in versions {low} to {high}: {self.node} {spoken}"
            )
        return chosen

    def supports(self, request: type[Request], version: int = 0) -> bool:
        """Returns True if the node speaks at least this version of a request."""
        theirs = self._versions.get(request.API_KEY)
        return theirs is not None and theirs[1] >= max(version, request.VERSIONS.low)

    # Sending

    async def open(self) -> None:
        """Connects and negotiates versions, unless that is done. Concurrent callers share one attempt."""
        while not self.is_open:
            if self._is_closed:
                raise ConnectionFailedError(None, f"{self.node}: the connection was closed")
            if self._opening is None:
                if self.retry_seconds > 0:
                    raise ConnectionFailedError(None, f"{self.node}: {self._failure}")
                self._opening = asyncio.get_running_loop().create_task(self._open())
                # Its error reaches those who wait; it is not logged if they are all gone.
                self._opening.add_done_callback(lambda done: done.cancelled() or done.exception())
            opening = self._opening
            # Not `await opening`: `close` cancels it, and that must not look as if the caller were cancelled.
            await all_ended(opening)
            if not opening.cancelled():
                opening.result()

    async def call(
        self, request: Request, cls: type[R], *, version: int | None = None, seconds: float | None = None
    ) -> R:
        """Returns the response to a request; connects first if necessary."""
        await self.open()
        return cast(R, await self.send(request, version=version, seconds=seconds))

    def send(
        self, request: Request, *, version: int | None = None, seconds: float | None = None
    ) -> asyncio.Future[Any]:
        """Sends a request on the open connection and returns the future of its response. Requests are sent in the order
        of the calls. Errors are KafkaErrors. The future may be dropped: nothing is logged for an error that nobody
        waits for."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def completed(response: Any, error: KafkaError | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(response)
            else:
                future.set_exception(error)
                future.exception()  # so that nothing is logged if nobody waits

        self.send_with_callback(request, completed, version=version, seconds=seconds)
        return future

    def send_with_callback(
        self,
        request: Request,
        on_done: Callable[[Any, KafkaError | None], None],
        *,
        version: int | None = None,
        seconds: float | None = None,
    ) -> None:
        """Sends without a future: `on_done` is called exactly once, with the response, or with None and an error."""
        channel = self._channel
        if channel is None or not channel.is_open:
            raise ConnectionFailedError(None, f"{self.node}: not connected")
        if version is None:
            version = self.version(type(request))
        now = self.last_used = self._world.clock.monotonic()
        deadline = now + (self._request_seconds if seconds is None else seconds)
        in_flight = _InFlightRequest(self.node, on_done, deadline)
        channel.request_into(request, version, in_flight)
        queue = self._in_flight
        while queue and queue[0].is_done:
            queue.popleft()
        queue.append(in_flight)
        if self._timer is None or deadline < self._timer_at:
            self._arm_timeout(deadline)

    def send_without_response(self, request: Request, version: int) -> None:
        """Sends a request that gets no response: Produce with acks=0."""
        if self._channel is None:
            raise ConnectionFailedError(None, f"{self.node}: not connected")
        self.last_used = self._world.clock.monotonic()
        try:
            self._channel.send_without_response(request, version)
        except ChannelClosed as error:
            raise ConnectionFailedError(None, f"{self.node}: {error}") from error

    def close(self) -> None:
        self._is_closed = True
        if self._opening is not None:
            self._opening.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.drop()

    def drop(self) -> None:
        """Closes the present connection; its requests in flight fail with ConnectionFailedError."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    # Inside

    async def _open(self) -> None:
        began_at = self.attempted_at = self._world.clock.monotonic()
        try:
            channel = await self._connect()
            response = await self._negotiate_versions(channel)
            if self._security.login is not None:
                await self._log_in(channel, self._security.login, response)
            self._take_versions(response)
        except asyncio.CancelledError:
            self.drop()
            raise
        except Exception as error:
            self.drop()
            why = error.message if isinstance(error, KafkaError) else str(error) or type(error).__name__
            if isinstance(error, TimeoutError):
                why = f"no connection within {self._world.clock.monotonic() - began_at:.1f} s"
            self._failure = why
            self.is_unresolved = isinstance(error, UnresolvedHostError)
            self._retry_at = self._world.clock.monotonic() + self._backoff.failed()
            if self._lines.is_due(self.node):
                logger.warning("%s cannot be reached: %s; trying again", self.node, why)
            if isinstance(error, KafkaError) and not isinstance(error, ConnectionFailedError):
                raise
            if isinstance(error, TlsError) and not error.is_transient:
                raise AuthenticationError(None, f"{self.node}: {why}") from error
            raise ConnectionFailedError(None, f"{self.node}: {why}") from error
        else:
            self._backoff.succeeded()
            self.is_unresolved = False
            self._lines.forget(self.node)
            logger.debug("connected to %s", self.node)
        finally:
            self._opening = None

    def _setup_seconds(self) -> float:
        longest = self._config.seconds("socket.connection.setup.timeout.max.ms")
        return min(
            self._config.seconds("socket.connection.setup.timeout.ms")
            * 2.0 ** min(self._backoff.failures, 16),
            longest,
        )

    async def _connect(self) -> Channel:
        channel = Channel(self._config.text("client.id"))
        try:
            await within(
                self._setup_seconds(),
                channel.open(self._world.network, self.node.host, self.node.port, self._security.tls),
            )
        except BaseException:
            channel.close()  # it may have been connected just before the wait ended
            raise
        if self._is_closed:
            channel.close()
            raise asyncio.CancelledError
        self._versions = {}
        self._channel = channel
        channel.on_lost(lambda: self._lost(channel))
        return channel

    async def _negotiate_versions(self, channel: Channel) -> ApiVersionsResponse:
        newest = ApiVersionsRequest.VERSIONS.high
        response = await self._request_versions(channel, newest)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            # The broker responds in version 0, which lists the versions that it speaks (KIP-511).
            key = ApiVersionsRequest.API_KEY
            theirs = [each.max_version for each in response.api_keys if each.api_key == key]
            response = await self._request_versions(channel, min(theirs[0], newest) if theirs else 0)
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, f"{self.node} refuses to say which versions it speaks")
        return response

    async def _log_in(self, channel: Channel, login: Login, response: ApiVersionsResponse) -> None:
        # A client that does not log in is spared the time that these take to load.
        from strandline.rpc.login import LoginRefused, LoginVersions, log_in
        from strandline.wire.api.k17_sasl_handshake import SaslHandshakeRequest
        from strandline.wire.api.k36_sasl_authenticate import SaslAuthenticateRequest

        highest = {each.api_key: each.max_version for each in response.api_keys}
        requests = (SaslHandshakeRequest, SaslAuthenticateRequest)
        if any(request.API_KEY not in highest for request in requests):
            raise UnsupportedVersionError(
                None, f"{self.node} is too old to log in: it must be Kafka 1.0 or newer"
            )
        versions = LoginVersions(*(min(cls.VERSIONS.high, highest[cls.API_KEY]) for cls in requests))
        try:
            await within(self._request_seconds, log_in(channel, login, self._world.random, versions))
        except LoginRefused as error:
            raise error_for(error.code, f"{self.node}: {error.message}") from error

    def _take_versions(self, response: ApiVersionsResponse) -> None:
        """Notes the versions and features that the node has. From now on the connection is open."""
        self._versions = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        self.finalized_features = {each.name: each.max_version_level for each in response.finalized_features}

    async def _request_versions(self, channel: Channel, version: int) -> ApiVersionsResponse:
        try:
            response = await within(self._request_seconds, channel.request(API_VERSIONS_REQUEST, version))
        except ChannelClosed as error:
            why = str(error)
            if self._security.tls is None:
                why += ": is the port one that speaks TLS? Then set security.protocol to SSL or SASL_SSL"
            raise ConnectionFailedError(None, why) from error
        return cast(ApiVersionsResponse, response)

    def _lost(self, channel: Channel) -> None:
        if self._channel is channel:
            self._channel = None
            if not self._is_closed and self._lines.is_due((self.node, "lost")):
                logger.info("the connection to %s was lost", self.node)
        if self.on_lost is not None and not self._is_closed:
            self.on_lost(self.node)

    # Overdue responses

    def _arm_timeout(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        seconds = max(0.0, deadline - self._world.clock.monotonic())
        self._timer = asyncio.get_running_loop().call_later(seconds, self._expire_overdue)

    def _expire_overdue(self) -> None:
        self._timer = None
        now = self._world.clock.monotonic()
        left = [request for request in self._in_flight if not request.is_done]
        overdue = [request for request in left if request.deadline <= now]
        for request in overdue:
            request.fail(
                KafkaTimeoutError(None, f"{self.node} did not respond in time; see request.timeout.ms")
            )
        if overdue:
            self._in_flight.clear()
            self.drop()
            if self.on_overdue is not None:
                self.on_overdue(self.node)
            return
        self._in_flight = deque(left)
        if left:
            self._arm_timeout(min(request.deadline for request in left))


class _InFlightRequest:
    """A request without a response yet: the channel's `ResponseReceiver`. Errors become this client's."""

    __slots__ = ("_node", "_on_done", "deadline", "is_done")

    def __init__(
        self, node: Node, on_done: Callable[[Any, KafkaError | None], None], deadline: float
    ) -> None:
        self._node = node
        self._on_done = on_done
        self.deadline = deadline
        self.is_done = False

    def done(self) -> bool:
        return self.is_done

    def set_result(self, result: Any, /) -> None:
        self.is_done = True
        self._on_done(result, None)

    def set_exception(self, exception: Exception, /) -> None:
        self.fail(ConnectionFailedError(None, f"{self._node}: {exception}"))

    def fail(self, error: KafkaError) -> None:
        if not self.is_done:
            self.is_done = True
            self._on_done(None, error)


class ConnectionPool:
    """Every connection of one client, by node and purpose."""

    def __init__(self, world: ClientWorld, config: ClientConfig) -> None:
        self._world = world
        self._config = config
        self._security = ClientSecurity(world, config)
        self._connections: dict[tuple[int, str], NodeConnection] = {}
        self._lines = RareLines(world.clock.monotonic)
        self._is_closed = False
        self.on_lost: Callable[[Node], None] | None = None

    def to(self, node: Node, purpose: str = "data") -> NodeConnection:
        """Returns the connection to a node; a new one if its address has changed."""
        if self._is_closed:
            raise ClosedError(None, "the client is closed")
        key = (node.node_id, purpose)
        known = self._connections.get(key)
        if known is not None and (known.node.host, known.node.port) == (node.host, node.port):
            return known
        if known is not None:
            known.close()
        created = self._connections[key] = NodeConnection(
            self._world, self._config, self._security, node, self._lines
        )
        created.on_lost = self._lost
        created.on_overdue = self._overdue
        return created

    def _overdue(self, node: Node) -> None:
        """Drops the connection for requests that any node could get, because a request to the node has timed out on
        another one. The next of those requests would wait for the same silent host."""
        data = self._connections.get((node.node_id, "data"))
        if data is not None:
            data.drop()

    def close_idle(self) -> None:
        """Closes connections that nothing was sent on for connections.max.idle.ms."""
        idle_ms = self._config.int("connections.max.idle.ms")
        if idle_ms < 0:
            return
        oldest = self._world.clock.monotonic() - idle_ms / 1000
        for connection in list(self._connections.values()):
            if connection.last_used < oldest and not connection.in_flight_count:
                connection.drop()

    def keep_only(self, node_ids: set[int]) -> None:
        """Closes connections to nodes that the cluster no longer has."""
        for key in [key for key in self._connections if key[0] >= 0 and key[0] not in node_ids]:
            self._connections.pop(key).close()

    def close(self) -> None:
        self._is_closed = True
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _lost(self, node: Node) -> None:
        if self.on_lost is not None:
            self.on_lost(node)
