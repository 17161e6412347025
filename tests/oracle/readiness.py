"""Whether a broker is ready, asked on its socket with requests of a few bytes.

Client libraries cache what they learn, also that a topic is unknown, so polling with one of them may wait long
after the broker is ready.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

# Apache Kafka on a machine whose cores are busy.
READY_TIMEOUT_S = 90.0
_ANSWER_TIMEOUT_S = 20.0
_CORRELATION_ID = 7

_LIST_OFFSETS = 2
_METADATA = 3
_API_VERSIONS = 18
_LATEST = -1
_CONSUMER = -1


def lists_a_broker(address: str) -> bool:
    """It answers ApiVersions and lists a broker in Metadata."""

    def ask(connection: socket.socket) -> bool:
        if _exchange(connection, _API_VERSIONS, version=0, body=b"")[:2] != b"\x00\x00":
            return False
        # Metadata v1 about no topic: the array of brokers comes first.
        answer = _exchange(connection, _METADATA, version=1, body=struct.pack(">i", 0))
        (broker_count,) = struct.unpack_from(">i", answer)
        return bool(broker_count > 0)

    return _ask(address, ask)


def leads(address: str, topic: str, partition: int) -> bool:
    """It answers for the partition as its leader, so it takes records."""
    name = topic.encode()

    def ask(connection: socket.socket) -> bool:
        # ListOffsets v1 about one partition of one topic.
        wanted = struct.pack(">iiq", 1, partition, _LATEST)
        body = struct.pack(">iih", _CONSUMER, 1, len(name)) + name + wanted
        answer = _exchange(connection, _LIST_OFFSETS, version=1, body=body)
        # One topic with its name, one partition with its index, then the error code.
        (error_code,) = struct.unpack_from(">h", answer, 4 + 2 + len(name) + 4 + 4)
        return bool(error_code == 0)

    return _ask(address, ask)


def wait_until_writable(address: str, topic: str, *, partitions: int = 1) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    for partition in range(partitions):
        while not leads(address, topic, partition):
            assert time.monotonic() < deadline, f"nobody leads {topic}-{partition}"
            time.sleep(0.01)


def _ask(address: str, question: Callable[[socket.socket], bool]) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_ANSWER_TIMEOUT_S) as connection:
            return question(connection)
    except (OSError, EOFError, struct.error):
        return False


def _exchange(connection: socket.socket, api_key: int, *, version: int, body: bytes) -> bytes:
    """One request with header v1, and the body of its answer."""
    client_id = b"readiness"
    header = struct.pack(">hhih", api_key, version, _CORRELATION_ID, len(client_id)) + client_id
    connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
    (size,) = struct.unpack(">i", _receive(connection, 4))
    answer = _receive(connection, size)
    assert answer[:4] == struct.pack(">i", _CORRELATION_ID), "the answer belongs to another request"
    return answer[4:]


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            raise EOFError
        received += chunk
    return received
