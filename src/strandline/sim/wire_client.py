"""A client that speaks the wire protocol and nothing more: requests by message, responses by correlation id.

It keeps no metadata, retries nothing and hides nothing, so a workload sees exactly what the broker did.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from typing import Any, Final, TypeVar, cast

from strandline.broker.api.table import TABLE
from strandline.ports.network import Connection, Network
from strandline.rpc.frames import FrameReader
from strandline.wire.codec import decode_from, encode
from strandline.wire.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from strandline.wire.schema import Request, Response

R = TypeVar("R", bound=Response)

RESPONSE_BYTES_MAX: Final = 100 * 1024 * 1024
ANSWER_SECONDS_MAX: Final = 30.0


class Disconnected(Exception):
    """The connection is gone. It is unknown whether a request without a response was carried out."""


class _Sent:
    __slots__ = ("correlation_id", "future", "request", "version")

    def __init__(
        self, correlation_id: int, request: Request, version: int, future: asyncio.Future[Any]
    ) -> None:
        self.correlation_id = correlation_id
        self.request = request
        self.version = version
        self.future = future


class WireClient:
    """One connection. It is the network's peer itself."""

    def __init__(self, client_id: str = "sim") -> None:
        self._client_id = client_id
        self._frames = FrameReader(RESPONSE_BYTES_MAX, trusts_sizes=True)
        self._connection: Connection | None = None
        self._sent: deque[_Sent] = deque()
        self._correlation_id = 0
        self.buffer = self._frames.buffer

    @classmethod
    async def connect(cls, network: Network, host: str, port: int, client_id: str = "sim") -> WireClient:
        client = cls(client_id)
        try:
            await network.connect(host, port, client)
        except OSError as error:
            raise Disconnected(str(error)) from error
        return client

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            raise Disconnected("not connected")
        return self._connection

    def send(self, request: Request, version: int | None = None) -> asyncio.Future[Any]:
        """Sends without waiting; the future gives the response. Several may be under way."""
        connection = self.connection
        key = request.API_KEY
        version = TABLE[key].version_max if version is None else version
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        frame = encode(header, request_header_version(request.FLEXIBLE, version)) + encode(request, version)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._sent.append(_Sent(self._correlation_id, request, version, future))
        connection.send(len(frame).to_bytes(4, "big") + frame)
        return future

    async def request(
        self,
        request: Request,
        response_class: type[R],
        *,
        version: int | None = None,
        seconds_max: float = ANSWER_SECONDS_MAX,
    ) -> R:
        """Sends a request and returns its response; raises Disconnected if none comes in time or the connection
        breaks."""
        try:
            response = await asyncio.wait_for(self.send(request, version), seconds_max)
        except TimeoutError as error:
            self.abort()
            raise Disconnected(f"no response within {seconds_max} s") from error
        assert isinstance(response, response_class)
        return response

    def send_without_response(self, request: Request, version: int | None = None) -> None:
        """Sends a request that has no response, such as a Produce with acks=0."""
        self.send(request, version)
        self._sent.pop()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def abort(self) -> None:
        if self._connection is not None:
            self._connection.abort()

    # Called by the network

    def connected(self, connection: Connection) -> None:
        self._connection = connection

    def received(self, size: int) -> None:
        self._frames.received(size)
        while True:
            frame = self._frames.next_frame()
            if frame is not None:
                self._receive_response(frame)
            elif self._frames.growth_bytes:
                self._frames.grow()
            else:
                return

    def drained(self) -> None:
        pass

    def lost(self, error: Exception | None) -> None:
        self._connection = None
        while self._sent:
            sent = self._sent.popleft()
            if not sent.future.done():
                sent.future.set_exception(Disconnected(str(error or "closed by the other side")))
                sent.future.exception()  # so that nothing is logged if nobody waits

    def _receive_response(self, frame: memoryview) -> None:
        sent = self._sent.popleft()
        version = response_header_version(sent.request.API_KEY, sent.request.FLEXIBLE, sent.version)
        header, position = decode_from(ResponseHeader, version, frame, 0)
        assert header.correlation_id == sent.correlation_id, "responses come in the order of their requests"
        response, end = decode_from(_response_class(sent.request), sent.version, frame, position)
        assert end == len(frame), f"{len(frame) - end} bytes after a {type(response).__name__}"
        if not sent.future.done():
            sent.future.set_result(response)


def _response_class(request: Request) -> type[Response]:
    """Returns the class of the response by name: `FetchResponse` stands beside `FetchRequest`."""
    kind = type(request)
    name = kind.__name__.removesuffix("Request") + "Response"
    return cast("type[Response]", getattr(sys.modules[kind.__module__], name))
