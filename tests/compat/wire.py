"""A client that sends exactly the given request and version, and returns the decoded response."""

from __future__ import annotations

import socket
import struct
from importlib import import_module
from pkgutil import iter_modules
from types import TracebackType

import strandline.wire.api
from strandline.rpc.channel import response_class
from strandline.wire.codec import decode_from, encode, encode_into
from strandline.wire.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from strandline.wire.schema import Request, Response

TIMEOUT_S = 60.0


def every_request_class() -> list[type[Request]]:
    found = []
    for entry in iter_modules(strandline.wire.api.__path__):
        module = import_module(f"strandline.wire.api.{entry.name}")
        found += [
            cls
            for cls in vars(module).values()
            if isinstance(cls, type) and issubclass(cls, Request) and cls is not Request
        ]
    return sorted(found, key=lambda cls: cls.API_KEY)


class WireClient:
    def __init__(self, bootstrap: str, client_id: str = "wire-test") -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self._client_id = client_id
        self._correlation_id = 0

    def call(self, request: Request, version: int) -> Response:
        self.send(request, version)
        return self.receive(type(request), version)

    def send(self, request: Request, version: int) -> None:
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=request.API_KEY,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        frame = encode(header, request_header_version(request.FLEXIBLE, version))
        encode_into(request, version, frame)
        self.send_frame(bytes(frame))

    def receive(self, request: type[Request], version: int) -> Response:
        frame = self.receive_frame()
        header_version = response_header_version(request.API_KEY, request.FLEXIBLE, version)
        header, position = decode_from(ResponseHeader, header_version, frame, 0)
        assert header.correlation_id == self._correlation_id
        answer, end = decode_from(response_class(request), version, frame, position)
        assert end == len(frame), f"{len(frame) - end} bytes behind the answer"
        return answer

    def send_frame(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def is_closed_by_peer(self) -> bool:
        """Waits for the other side to close; False if it answers instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError(f"the connection ended after {len(data)} of {size} bytes")
            data += part
        return bytes(data)

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()
