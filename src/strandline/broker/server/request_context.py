"""One request on its way through the server: its header, its bytes, and the connection that its response leaves by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Final, Protocol

from strandline.base.buffers import Buffer
from strandline.groups.members import Caller
from strandline.security.principal import Principal
from strandline.storage.segment import Slice
from strandline.wire.codec import EncodeError

# API key, API version, correlation id, size of the client id.
HEADER: Final = Struct(">hhih")
_CLIENT_ID_SIZE: Final = Struct(">h")

# The body of a response: bytes and regions of files, one after the other.
Body = Sequence[Buffer | Slice]


class Cancellable(Protocol):
    """Something that is under way for a request and can be ended when its client is gone."""

    def cancel(self) -> None: ...


class ClientChannel(Protocol):
    """What handlers and responses need of a client's connection."""

    listener: str
    is_controller_listener: bool
    principal: Principal  # ANONYMOUS where nobody logs in
    software: tuple[str, str]
    # What handlers keep from one request of this connection to the next, by API key.
    handler_state: dict[int, Any]
    # Ends the long poll that waits on this connection, if one does.
    interrupt_long_poll: Callable[[], None] | None
    # Called once when the connection is lost.
    on_lost: Callable[[], None] | None

    @property
    def peer_address(self) -> str: ...

    def close(self) -> None: ...

    def completed(self, request: RequestContext, body: Body) -> None:
        """A response that was pending is known."""
        ...

    def cannot_encode(self, request: RequestContext, error: EncodeError) -> None:
        """A response cannot be encoded, so that the connection has to end."""
        ...


class RequestContext:
    """What a handler knows of a request beside its message, and what its connection knows of the response."""

    __slots__ = (
        "api_key",
        "api_version",
        "body",
        "connection",
        "correlation_id",
        "has_tagged_response_header",
        "is_complete",
        "pending",
        "position",
        "response",
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
    ) -> None:
        self.connection = connection
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.body = body
        self.position = position  # where the message begins, after the header
        self.has_tagged_response_header = has_tagged_response_header
        self.response: Body | None = None  # while it waits for the response of an earlier request
        self.is_complete = False
        self.pending: Cancellable | None = None

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
        """The name of the listener that it came to."""
        return self.connection.listener

    @property
    def client_host(self) -> str:
        return self.connection.peer_address.rpartition(":")[0].strip("[]")

    def caller(self) -> Caller:
        """The client as the group coordinator notes it."""
        return Caller(self.client_id or "", f"/{self.client_host}", self.api_version)
