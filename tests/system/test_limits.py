"""Limits hold on real sockets: connections, idle time, request sizes, memory."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from strandline.testing import BrokerProcess, running_broker
from strandline.wire.api.k03_metadata import MetadataRequest
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.codec import encode, encode_into
from strandline.wire.headers import RequestHeader, request_header_version
from strandline.wire.schema import Request
from tests.batches import batch
from tests.compat.wire import WireClient
from tests.record_times import recent_ms
from tests.system.records import append, create
from tests.unit.broker.requests import fetch, produce

REQUEST_BYTES_MAX = 400_000
CONNECTIONS_MAX = 6
PER_ADDRESS_MAX = 5
IDLE_MS = 3000


@pytest.fixture(scope="module")
def strict() -> Iterator[BrokerProcess]:
    with running_broker(
        max_connections=str(CONNECTIONS_MAX),
        max_connections_per_ip=str(PER_ADDRESS_MAX),
        max_connections_per_ip_overrides="127.0.0.9:1",
        socket_request_max_bytes=str(REQUEST_BYTES_MAX),
        queued_max_request_bytes=str(REQUEST_BYTES_MAX),
    ) as broker:
        yield broker


def connected(broker: BrokerProcess, source: str = "127.0.0.1") -> socket.socket:
    host, _, port = broker.bootstrap.rpartition(":")
    made = socket.create_connection((host, int(port)), 10, (source, 0))
    made.settimeout(10)
    return made


def frame(request: Request, version: int, correlation_id: int = 1) -> bytes:
    header = RequestHeader(
        request_api_key=request.API_KEY,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=None,
    )
    made = encode(header, request_header_version(request.FLEXIBLE, version))
    encode_into(request, version, made)
    return struct.pack(">i", len(made)) + bytes(made)


HELLO = frame(ApiVersionsRequest(), 0)


def answers(client: socket.socket, within_s: float = 10) -> bool:
    client.sendall(HELLO)
    client.settimeout(within_s)
    try:
        return len(client.recv(10)) > 0
    except TimeoutError:
        return False


def is_turned_away(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_connections_beyond_the_limit_of_an_address_are_turned_away(strict: BrokerProcess) -> None:
    with ExitStack() as stack:
        allowed = [stack.enter_context(connected(strict)) for _ in range(PER_ADDRESS_MAX)]
        assert all(answers(client) for client in allowed)
        assert is_turned_away(stack.enter_context(connected(strict)))
        first = stack.enter_context(connected(strict, "127.0.0.9"))
        assert answers(first)
        assert is_turned_away(stack.enter_context(connected(strict, "127.0.0.9")))


def test_connections_beyond_the_limit_wait_for_a_place(strict: BrokerProcess) -> None:
    with ExitStack() as stack:
        served = [
            stack.enter_context(connected(strict, f"127.0.0.{1 + number % 2}"))
            for number in range(CONNECTIONS_MAX)
        ]
        assert all(answers(client) for client in served)
        held = stack.enter_context(connected(strict, "127.0.0.3"))
        assert not answers(held, within_s=0.4)
        served[0].close()
        held.settimeout(10)
        assert len(held.recv(10)) > 0


def test_request_of_the_largest_size_is_taken_and_a_larger_one_closes(strict: BrokerProcess) -> None:
    with connected(strict) as client:
        client.sendall(struct.pack(">i", REQUEST_BYTES_MAX + 1))
        assert is_turned_away(client)
    with WireClient(strict.bootstrap) as client:
        create(client, "large")
        assert append(client, "large", REQUEST_BYTES_MAX - 300) == 0


def test_large_requests_wait_until_there_is_memory_for_them(strict: BrokerProcess) -> None:
    """The first never ends, so the second is not read; a small one of a third client is."""
    whole = frame(produce(batch(1, size=300_000, timestamp=recent_ms()), topic="large"), 9)
    with connected(strict) as first, connected(strict) as second, connected(strict) as third:
        first.sendall(whole[:200_000])
        assert answers(third), "so the broker has seen how much the first will be"
        second.settimeout(1)
        second.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10_000)
        with pytest.raises(TimeoutError):
            second.sendall(whole * 40)
        assert answers(third)
        first.sendall(whole[200_000:])
        assert struct.unpack(">i", first.recv(4))[0] > 0


def test_idle_connections_are_closed() -> None:
    with running_broker(connections_max_idle_ms=str(IDLE_MS)) as broker:
        idle, active = connected(broker), connected(broker)
        with idle, active:
            begin = time.monotonic()
            assert answers(active)
            while time.monotonic() - begin < 2 * IDLE_MS / 1000:
                assert answers(active)
                time.sleep(0.05)
            assert idle.recv(1) == b""


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("what", ["records", "metadata"])
def test_clients_that_never_read_cost_a_broker_little(what: str) -> None:
    with running_broker() as broker, ExitStack() as stack:
        with WireClient(broker.bootstrap) as client:
            for number in range(60):
                create(client, f"a-topic-with-a-rather-long-name-{number:03d}")
            create(client, "t")
            for _ in range(20):
                assert append(client, "t", 900_000) == 0
        request = fetch((0, 0)) if what == "records" else MetadataRequest(topics=None)
        one = frame(request, 9 if what == "metadata" else 12)
        many = one * ((24 << 20) // len(one))  # more than the buffers of both sockets hold
        before = resident_bytes(broker.pid)
        for _ in range(8):
            greedy = stack.enter_context(connected(broker))
            greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            greedy.settimeout(0.3)
            with pytest.raises(TimeoutError):
                greedy.sendall(many)
        time.sleep(0.3)
        assert resident_bytes(broker.pid) - before < 40 << 20
        with WireClient(broker.bootstrap) as client:
            assert append(client, "t", 100) == 0, "others are served"


def test_requests_that_only_announce_their_size_reserve_nothing() -> None:
    """A hundred connections each say that 100 MB will follow: eight bytes would be worth ten gigabytes."""
    with running_broker() as broker, ExitStack() as stack:
        with WireClient(broker.bootstrap) as client:
            create(client, "t")
            assert append(client, "t", 100) == 0
        before = resident_bytes(broker.pid)
        for _ in range(100):
            stack.enter_context(connected(broker)).sendall(struct.pack(">i", 100_000_000) + b"more")
        with WireClient(broker.bootstrap) as client:
            assert append(client, "t", 100) == 0, "others are served"
        assert resident_bytes(broker.pid) - before < 20 << 20
