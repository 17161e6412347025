"""One request in the server: its header, its bytes, and the connection for its response."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Final, Protocol

from strandline.base.buffers import Buffer
from strandline.groups.members import Caller
from strandline.security.principal import Principal
from strandline.storage.segment import Slice
from strandline.telemetry.request_metrics import RequestMetrics, RequestTimes
from strandline.wire.codec import DecodeError, EncodeError
from strandline.wire.compiler import skip_tags

# The API key, API version, correlation id and size of the client id.
HEADER: Final = Struct(">hhih")
API_VERSIONS: Final = 18
_CLIENT_ID_SIZE: Final = Struct(">h")

# The body of a response: bytes and regions of files, in order.
Body = Sequence[Buffer | Slice]


class Cancellable(Protocol):
    """Work for a request that can be ended when its client is gone."""

    def cancel(self) -> None: ...


class ClientChannel(Protocol):
    """The interface of a client's connection for handlers and responses."""

    listener: str
    is_controller_listener: bool
    principal: Principal  # ANONYMOUS on listeners without logins
    software: tuple[str, str]
    # The state of handlers between requests of this connection, by API key.
    handler_state: dict[int, Any]
    # Ends the long poll that waits on this connection, if there is one.
    interrupt_long_poll: Callable[[], None] | None
    # Called once when the connection is lost.
    on_lost: Callable[[], None] | None

    @property
    def peer_address(self) -> str: ...

    def close(self) -> None: ...

    def mute(self, seconds: float) -> None:
        """Reads nothing from the client for a time."""
        ...

    def completed(self, request: RequestContext, body: Body) -> None:
        """Takes the body of a pending response."""
        ...

    def cannot_encode(self, request: RequestContext, error: EncodeError) -> None:
        """Ends the connection, because a response cannot be encoded."""
        ...


class RequestContext:
    """One request: the facts for its handler besides the message, and the state of its response."""

    __slots__ = (
        "api_key",
        "api_version",
        "arrived_at",
        "body",
        "completed_at",
        "connection",
        "correlation_id",
        "handled_at",
        "has_tagged_response_header",
        "is_complete",
        "pending",
        "position",
        "quota_client_id",
        "response",
        "started_at",
        "times",
    )

    def __init__(
        self,
        connection: ClientChannel,
        api_key: int,
        api_version: int,
        correlation_id: int,
        body: memoryview,
        position: int,
        has_tagged_response_header: bool,
        times: RequestTimes,
    ) -> None:
        self.connection = connection
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.body = body
        self.position = position  # the position of the message, after the header
        self.has_tagged_response_header = has_tagged_response_header
        self.response: Body | None = None  # set while an earlier request has no response yet
        self.is_complete = False
        self.pending: Cancellable | None = None
        self.times = times
        # The times of arrival, of the handler's call and of its end, for requests that wait.
        self.quota_client_id: str  # known if there are quotas
        self.arrived_at: float
        self.started_at: float
        self.handled_at: float
        self.completed_at: float

    @property
    def client_id(self) -> str | None:
        (size,) = _CLIENT_ID_SIZE.unpack_from(self.body, HEADER.size - _CLIENT_ID_SIZE.size)
        text = self.body[HEADER.size : HEADER.size + size]
        return str(text, "utf-8", "replace") if size >= 0 else None

    @property
    def principal(self) -> Principal:
        """The user who sent the request."""
        return self.connection.principal

    @property
    def listener(self) -> str:
        """The name of its listener."""
        return self.connection.listener

    @property
    def client_host(self) -> str:
        return self.connection.peer_address.rpartition(":")[0].strip("[]")

    def caller(self) -> Caller:
        """Returns the client in the form that the group coordinator needs."""
        return Caller(self.client_id or "", f"/{self.client_host}", self.api_version)

    def observe_waited(self, completed_at: float, now: float) -> None:
        """Accounts for the time of a request that waited for its response, which is sent now."""
        self.times.waiting -= 1
        self.times.waited(
            self.started_at - self.arrived_at,
            self.handled_at - self.started_at,
            completed_at - self.handled_at,
            now - completed_at,
        )


def read_whole(part: Slice) -> bytes:
    """Returns the bytes of a region of a file; raises OSError if the file is shorter."""
    data = part.file.read_at(part.position, part.size)
    if len(data) != part.size:
        raise OSError(errno.EIO, "the file is shorter than the region of the response", part.file.path)
    return data


def read_header(
    connection: ClientChannel,
    frame: memoryview,
    flexible: frozenset[tuple[int, int]],
    requests: RequestMetrics,
) -> RequestContext:
    """Returns the request in a frame, and counts it; raises DecodeError. `flexible` has headers with tagged fields."""
    if len(frame) < HEADER.size:
        raise DecodeError(f"a request has only {len(frame)} bytes")
    api_key, api_version, correlation_id, client_id_size = HEADER.unpack_from(frame, 0)
    position = HEADER.size
    if client_id_size > 0:
        position += client_id_size
        if position > len(frame):
            raise DecodeError(f"a client id of {client_id_size} bytes in a request of {len(frame)}")
    is_flexible = (api_key, api_version) in flexible
    if is_flexible:
        try:
            position = skip_tags(frame, position) if frame[position] else position + 1
        except IndexError as error:
            raise DecodeError("a request header that ends too early") from error
    # ApiVersions never has tagged fields here, so that every client can read the response.
    has_tags = is_flexible and api_key != API_VERSIONS
    counted = requests.by_version.get((api_key, api_version)) or requests.begin(api_key, api_version)
    counted.count += 1
    return RequestContext(
        connection, api_key, api_version, correlation_id, frame, position, has_tags, counted.times
    )
