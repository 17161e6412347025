"""Measures the time from the start of a process to its first acknowledged record, with partitions in its data
directory.

The client is a socket and one prepared request, repeated until it is acknowledged: a real client would measure its own
back-off. Every partition has a record, and the directory was closed by a clean stop.
"""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from struct import Struct

from confluent_kafka import Producer

from bench import topics
from bench.measure import OthersMeter, memory, wait_until_quiet
from bench.peers import Peer
from bench.throughput import Figures
from strandline.wire.api.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.wire.codec import decode, encode
from strandline.wire.record_batch import Record, build_batch

TOPIC = "started"
_API_KEY = 0
# The last version whose header and body have no tagged fields.
_VERSION = 8
_HEADER = Struct(">hhih")
_LENGTH = Struct(">i")
_ANSWER_WAIT_S = 5.0
_RETRY_S = 0.005
_START_WAIT_S_MAX = 120.0


def prepare(peer: Peer, partitions: int) -> None:
    """Gives the peer's directory a topic with a record in each partition, and stops it cleanly."""
    peer.start()
    try:
        topics.create(peer, TOPIC, partitions=partitions)
        write_to_each(peer.bootstrap, partitions)
        wait_until_quiet(peer.pid)
    finally:
        peer.stop()


def write_to_each(bootstrap: str, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    for partition in range(partitions):
        producer.produce(TOPIC, b"first", partition=partition)
    left = producer.flush(_START_WAIT_S_MAX)
    assert left == 0, f"{left} records were not acknowledged"


def measure(peer: Peer) -> Figures:
    """Starts the peer, waits for an acknowledgement, and stops it again."""
    others = OthersMeter()
    with ThreadPoolExecutor(max_workers=1) as executor:
        begun_s = time.perf_counter()
        acknowledged = executor.submit(produce_until_acknowledged, peer.bootstrap)
        peer.start()
        try:
            first_ack_s = acknowledged.result() - begun_s
            wait_until_quiet(peer.pid)
            used = memory(peer.pid)
        finally:
            peer.stop()
    return {
        "first_ack_s": first_ack_s,
        "idle_pss_mb": used.pss_bytes / 1e6,
        "idle_rss_mb": used.rss_bytes / 1e6,
        "others_cores": others.read(),
    }


def produce_until_acknowledged(bootstrap: str) -> float:
    """Sends the request until it is acknowledged, and returns the time of the acknowledgement."""
    host, _, port = bootstrap.rpartition(":")
    request = _request()
    deadline = time.monotonic() + _START_WAIT_S_MAX
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((host, int(port)), timeout=_ANSWER_WAIT_S) as connection:
                while time.monotonic() < deadline:
                    connection.sendall(request)
                    if is_acknowledged(connection):
                        return time.perf_counter()
                    time.sleep(_RETRY_S)
        except (OSError, EOFError):
            time.sleep(_RETRY_S)
    raise RuntimeError("no record was acknowledged")


def _request() -> bytes:
    batch = build_batch(
        [Record(offset=0, timestamp=int(time.time() * 1000), key=None, value=b"next", headers=())]
    )
    return produce_request(TOPIC, batch, acks=-1)


def produce_request(topic: str, batch: bytes, *, acks: int) -> bytes:
    """Returns the frame of a Produce request with one batch for partition 0."""
    body = encode(
        ProduceRequest(
            acks=acks,
            timeout_ms=int(_ANSWER_WAIT_S * 1000),
            topic_data=(
                TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=batch),)),
            ),
        ),
        _VERSION,
    )
    client_id = b"bench"
    header = _HEADER.pack(_API_KEY, _VERSION, 0, len(client_id)) + client_id
    return _LENGTH.pack(len(header) + len(body)) + header + bytes(body)


def is_acknowledged(connection: socket.socket) -> bool:
    (size,) = _LENGTH.unpack(_receive(connection, _LENGTH.size))
    # Behind the correlation id is the body.
    response = decode(ProduceResponse, _VERSION, _receive(connection, size), 4)
    return response.responses[0].partition_responses[0].error_code == 0


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            raise EOFError
        received += chunk
    return received
