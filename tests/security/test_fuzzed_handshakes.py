"""Bytes instead of handshakes and logins, from a seed: connections end, others are served, memory stays bounded."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from strandline.client.sync import Admin
from strandline.testing import BrokerProcess
from strandline.wire.api.k17_sasl_handshake import SaslHandshakeRequest
from strandline.wire.api.k36_sasl_authenticate import SaslAuthenticateRequest
from strandline.wire.codec import encode
from strandline.wire.headers import write_request_header
from strandline.wire.schema import Request
from tests.properties.effort import IS_SOAK
from tests.security.kinds import secured_broker

ROUNDS = 3000 if IS_SOAK else 150
HALF_OPEN = 1000
GROWTH_MB_MAX = 120


@pytest.fixture(scope="module")
def tls_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with secured_broker(("SSL", "", "none"), tmp_path_factory.mktemp("tls")) as started:
        yield started


@pytest.fixture(scope="module")
def sasl_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with secured_broker(("SASL_PLAINTEXT", "PLAIN", "none"), tmp_path_factory.mktemp("sasl")) as started:
        yield started


def connect(broker: BrokerProcess) -> socket.socket:
    host, _, port = broker.bootstrap.rpartition(":")
    return socket.create_connection((host, int(port)), 10)


def is_served(broker: BrokerProcess) -> bool:
    with Admin(broker.client_settings) as admin:
        admin.list_topics()
    return True


def memory_mb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    raise AssertionError("no VmRSS")


def hello(broker: BrokerProcess) -> bytes:
    """Returns the first message of a TLS client."""
    context = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def framed(request: Request, version: int) -> bytes:
    head = write_request_header(request.FLEXIBLE, request.API_KEY, version, 1, b"fuzz")
    frame = bytes(head) + bytes(encode(request, version))
    return struct.pack(">i", len(frame)) + frame


def changed(random: Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(out))
        action = random.randrange(4)
        if action == 0:
            out[at] = random.randrange(256)
        elif action == 1:
            out[at:at] = random.randbytes(random.choice((1, 3, 50)))
        elif action == 2:
            del out[at : at + random.choice((1, 4, 60))]
            if not out:
                out += b"\0"
        else:
            return bytes(out[: at + 1])
    return bytes(out)


def send_and_leave(broker: BrokerProcess, data: bytes, random: Random) -> None:
    with connect(broker) as peer:
        peer.settimeout(0.02)
        try:
            peer.sendall(data)
            if random.random() < 0.5:
                peer.shutdown(socket.SHUT_WR)
            while peer.recv(10_000):
                pass
        except OSError:
            pass


def test_fuzzed_tls_handshakes(tls_broker: BrokerProcess) -> None:
    assert is_served(tls_broker)
    before = memory_mb(tls_broker.pid)
    for seed in range(ROUNDS):
        random = Random(seed)
        send_and_leave(tls_broker, changed(random, hello(tls_broker)), random)
    assert is_served(tls_broker)
    assert memory_mb(tls_broker.pid) - before < GROWTH_MB_MAX
    assert "Traceback" not in tls_broker.log_text


def test_fuzzed_logins(sasl_broker: BrokerProcess) -> None:
    assert is_served(sasl_broker)
    before = memory_mb(sasl_broker.pid)
    for seed in range(ROUNDS):
        random = Random(seed)
        mechanism = random.choice(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "", "x" * 3000))
        first = framed(SaslHandshakeRequest(mechanism=mechanism), random.choice((0, 1)))
        token = random.choice((b"\0alice\0wrong", b"n,,n=alice,r=abc", b"n,,n=alice,r=", b"", b"\xff" * 500))
        second = framed(SaslAuthenticateRequest(auth_bytes=token), random.choice((0, 1, 2)))
        raw = struct.pack(">i", len(token)) + token
        data = first + random.choice((second, raw, b""))
        if random.random() < 0.7:
            data = changed(random, data)
        send_and_leave(sasl_broker, data, random)
    assert is_served(sasl_broker)
    assert memory_mb(sasl_broker.pid) - before < GROWTH_MB_MAX
    assert "Traceback" not in sasl_broker.log_text


def test_a_thousand_half_open_handshakes(tls_broker: BrokerProcess) -> None:
    before = memory_mb(tls_broker.pid)
    greeting = hello(tls_broker)
    peers = [connect(tls_broker) for _ in range(HALF_OPEN)]
    try:
        for number, peer in enumerate(peers):
            peer.sendall(greeting[: number % len(greeting)])
        assert is_served(tls_broker)
        assert memory_mb(tls_broker.pid) - before < GROWTH_MB_MAX
    finally:
        for peer in peers:
            peer.close()
