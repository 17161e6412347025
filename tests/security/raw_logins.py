"""SASL exchanges byte by byte, for logins that no client would try."""

from __future__ import annotations

import socket
import struct

from strandline.base.errors import ErrorCode
from strandline.testing import BrokerProcess
from strandline.wire.api.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from strandline.wire.api.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from strandline.wire.codec import decode, encode
from strandline.wire.headers import write_request_header
from strandline.wire.schema import Request

WAIT_S = 15.0


def connect(broker: BrokerProcess) -> socket.socket:
    host, _, port = broker.bootstrap.rpartition(":")
    return socket.create_connection((host, int(port)), WAIT_S)


def send(peer: socket.socket, request: Request, version: int) -> None:
    head = write_request_header(request.FLEXIBLE, request.API_KEY, version, 7, b"test")
    frame = bytes(head) + bytes(encode(request, version))
    peer.sendall(struct.pack(">i", len(frame)) + frame)


def receive(peer: socket.socket) -> bytes:
    """Returns the next frame; empty if the broker closed the connection."""
    size = b""
    while len(size) < 4:
        try:
            part = peer.recv(4 - len(size))
        except ConnectionResetError:
            return b""
        if not part:
            return b""
        size += part
    frame = b""
    while len(frame) < struct.unpack(">i", size)[0]:
        frame += peer.recv(65536)
    return frame


def begin(peer: socket.socket, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    send(peer, SaslHandshakeRequest(mechanism=mechanism), version)
    return decode(SaslHandshakeResponse, version, memoryview(receive(peer)), 4)


def log_in(peer: socket.socket, broker: BrokerProcess) -> SaslAuthenticateResponse:
    assert broker.security is not None
    assert begin(peer, "PLAIN").error_code == ErrorCode.NONE
    message = f"\0{broker.security.user}\0{broker.security.password}".encode()
    send(peer, SaslAuthenticateRequest(auth_bytes=message), 1)
    return decode(SaslAuthenticateResponse, 1, memoryview(receive(peer)), 4)
