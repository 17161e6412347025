"""A process of Spark's finds the connection to Spark, and acknowledges on it."""

from __future__ import annotations

import pickle
import socket
import sys
from collections.abc import Iterator
from functools import cache

import pytest

from strandline.spark.micro_batches import StreamReader
from strandline.spark.options import read_options
from strandline.spark.runtime import tcp_quickack

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no TCP_QUICKACK")


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[socket.socket, socket.socket]]:
    # Not the process's own: a session of Spark may have been here before.
    monkeypatch.setattr(tcp_quickack, "_connections", cache(tcp_quickack._connections.__wrapped__))
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as near,
    ):
        far, _ = server.accept()
        with far:
            yield near, far
    for each in tcp_quickack._connections():
        each.close()


def test_connections_over_tcp_are_found_and_neither_listeners_nor_other_sockets(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    one, two = socket.socketpair()
    with one, two:
        found = {each.getsockname() for each in tcp_quickack._connections()}
    assert {each.getsockname() for each in connected} <= found
    assert all(each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for each in connected)


def test_a_reader_acknowledges_when_it_arrives_with_its_task(
    connected: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = read_options({"kafka.bootstrap.servers": "h:1", "subscribe": "t"}, is_stream=True)
    sent = pickle.dumps(StreamReader(options))
    asked = []
    monkeypatch.setattr(tcp_quickack, "acknowledge_now", lambda: asked.append(True))
    arrived = pickle.loads(sent)
    assert arrived._options == options
    assert asked == [True]


def test_a_connection_that_is_closed_is_no_reason_to_fail(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    tcp_quickack.acknowledge_now()
    for each in tcp_quickack._connections():
        each.close()
    tcp_quickack.acknowledge_now()
