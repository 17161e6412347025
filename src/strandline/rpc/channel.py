"""The client's side of a connection: requests are sent with correlation ids, and responses complete their futures, in
order.

A broker responds in the order of the requests. So a response with another correlation id than that of the oldest
waiting request means that the stream cannot be trusted, and the channel is closed. When the connection is lost, every
waiting request fails with ChannelClosed: it is unknown whether the other side carried it out.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Protocol

from strandline.base.callbacks import call_back
from strandline.ports.network import Connection, Network
from strandline.ports.tls import Tls
from strandline.rpc.frames import BadFrame, FrameReader
from strandline.telemetry.traffic import Traffic
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.codec import DecodeError, decode_from, encode_into
from strandline.wire.headers import read_response_header, write_request_header
from strandline.wire.schema import Request, Response

RESPONSE_BYTES_MAX: Final = 256 * 1024 * 1024

# The API keys of SaslHandshake and SaslAuthenticate.
_LOGIN_KEYS: Final = (17, 36)

_responses: dict[type[Request], type[Response]] = {}


def response_class(request: type[Request]) -> type[Response]:
    """Returns the response class of a request class, which is in the same module."""
    found = _responses.get(request)
    if found is None:
        module = import_module(request.__module__)
        found = _responses[request] = getattr(module, request.__name__.removesuffix("Request") + "Response")
    return found


def _decoded(request: type[Request], version: int, frame: memoryview, position: int) -> Response:
    response = response_class(request)
    try:
        return decode_from(response, version, frame, position)[0]
    except DecodeError:
        if request is not ApiVersionsRequest or version == 0:
            raise
        # A broker that does not know the version of an ApiVersions request responds in version 0 (KIP-511).
        return decode_from(response, 0, frame, position)[0]


class ChannelClosed(ConnectionError):
    """The connection was lost, or never opened."""


class ResponseReceiver(Protocol):
    """Receives the response, or the loss of the connection: a future, or an object that costs less."""

    def done(self) -> bool: ...

    def set_result(self, result: Any, /) -> None: ...

    def set_exception(self, exception: Exception, /) -> None: ...


class Channel:
    def __init__(
        self, client_id: str, *, response_bytes_max: int = RESPONSE_BYTES_MAX, traffic: Traffic | None = None
    ) -> None:
        self._client_id = client_id.encode()
        self._frames = FrameReader(response_bytes_max, trusts_sizes=True)
        self._connection: Connection | None = None
        self._waiting: deque[tuple[int, type[Request], int, ResponseReceiver | None]] = deque()
        self._correlation_id = 0
        # Requests that wait while a login is renewed: see `hold`.
        self._held: list[tuple[Request, int, ResponseReceiver | None]] | None = None
        self._on_lost: Callable[[], None] | None = None
        self._lost_because = ""
        self._traffic = traffic
        self.buffer = self._frames.buffer

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    @property
    def waiting_count(self) -> int:
        return len(self._waiting) + (len(self._held) if self._held is not None else 0)

    @property
    def unsent_bytes(self) -> int:
        """The bytes that the operating system has not taken yet, the only sign of unsent requests that have no
        response."""
        return 0 if self._connection is None else self._connection.unsent_bytes

    async def open(self, network: Network, host: str, port: int, tls: Tls | None = None) -> None:
        """Connects; raises OSError if nothing listens at the address."""
        await network.connect(host, port, self, tls)

    def on_lost(self, act: Callable[[], None]) -> None:
        self._on_lost = act

    # Called by the network

    def connected(self, connection: Connection) -> None:
        self._connection = connection

    def received(self, size: int) -> None:
        self._frames.received(size)
        try:
            while True:
                frame = self._frames.next_frame()
                if frame is not None:
                    self._receive_response(frame)
                elif self._frames.growth_bytes:
                    self._frames.grow()
                else:
                    return
        except (BadFrame, DecodeError) as error:
            self._fail(ChannelClosed(f"the response cannot be read: {error}"))

    def drained(self) -> None:
        pass

    def lost(self, error: Exception | None) -> None:
        self._connection = None
        self._lost_because = str(error) if error is not None else "the other side closed the connection"
        self._fail(ChannelClosed(self._lost_because))
        if self._on_lost is not None:
            self._on_lost()

    # Called by the owner

    def request(self, message: Request, version: int) -> asyncio.Future[Any]:
        """Sends a request; returns the future of its response."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._send(message, version, future)
        return future

    def request_into(self, message: Request, version: int, receiver: ResponseReceiver) -> None:
        """Sends a request; the caller's receiver gets the response as soon as it has been read."""
        self._send(message, version, receiver)

    def send_without_response(self, message: Request, version: int) -> None:
        """Sends a Produce request with acks=0, which has no response."""
        self._send(message, version, None)

    def hold(self) -> None:
        """Holds back all requests, except those of a login, until `release`."""
        if self._held is None:
            self._held = []

    def release(self) -> None:
        """Sends the requests that were held back."""
        held, self._held = self._held, None
        for message, version, receiver in held or ():
            try:
                self._send(message, version, receiver)
            except ChannelClosed as error:
                if receiver is not None and not receiver.done():
                    call_back(receiver.set_exception, error)

    def _send(self, message: Request, version: int, receiver: ResponseReceiver | None) -> None:
        if self._connection is None:
            raise ChannelClosed(self._lost_because or "the connection is closed")
        if self._held is not None and message.API_KEY not in _LOGIN_KEYS:
            self._held.append((message, version, receiver))
            return
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        frame = bytearray(4)
        frame += write_request_header(
            message.FLEXIBLE, message.API_KEY, version, self._correlation_id, self._client_id
        )
        encode_into(message, version, frame)
        frame[:4] = (len(frame) - 4).to_bytes(4, "big")
        if receiver is not None:
            self._waiting.append((self._correlation_id, type(message), version, receiver))
        self._connection.send(frame)
        if self._traffic is not None:
            self._traffic.requests += 1
            self._traffic.bytes_out += len(frame)

    def _receive_response(self, frame: memoryview) -> None:
        if not self._waiting:
            raise DecodeError("a response came without a request")
        correlation_id, request, version, receiver = self._waiting[0]
        received_id, position = read_response_header(request.API_KEY, request.FLEXIBLE, version, frame)
        if received_id != correlation_id:
            raise DecodeError(f"a response to request {received_id} came, where {correlation_id} is expected")
        if self._traffic is not None:
            self._traffic.responses += 1
            self._traffic.bytes_in += len(frame) + 4
        response = _decoded(request, version, frame, position)
        self._waiting.popleft()  # not before: if the response cannot be read, its request has to fail too
        if receiver is not None and not receiver.done():
            receiver.set_result(response)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.abort()

    def _fail(self, error: ChannelClosed) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, _, _, receiver in waiting:
            if receiver is not None and not receiver.done():
                # An error in one receiver must not keep the following ones waiting for ever.
                call_back(receiver.set_exception, error)
        if self._connection is not None:
            self._connection.abort()
            self._connection = None
