"""TCP: order across bytes and files, what waits, and how it ends. On the loop that a node uses and on asyncio's own."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from strandline.config import BrokerConfig
from strandline.node import launcher, network
from strandline.node.disk import RealDisk
from strandline.node.launcher import embedded_settings
from strandline.node.network import TcpConnection, TcpNetwork
from strandline.ports.network import Connection


class Recorder:
    """A peer that writes down what it is told."""

    def __init__(self, on_connected: Callable[[Connection], None] = lambda connection: None) -> None:
        self.connection: TcpConnection | None = None
        self.data = bytearray()
        self.drains = 0
        self.is_lost = asyncio.Event()
        self._on_connected = on_connected
        self._buffer = bytearray(1000)

    def connected(self, connection: Connection) -> None:
        assert isinstance(connection, TcpConnection)
        self.connection = connection
        self._on_connected(connection)

    def buffer(self, size_hint: int = -1) -> memoryview:
        return memoryview(self._buffer)

    def received(self, size: int) -> None:
        self.data += self._buffer[:size]

    def drained(self) -> None:
        self.drains += 1

    def lost(self, error: Exception | None) -> None:
        self.is_lost.set()


Scenario = Callable[[Recorder, socket.socket], Coroutine[Any, Any, None]]


def run(
    scenario: Scenario,
    loop: str,
    on_connected: Callable[[Connection], None] = lambda connection: None,
    send_buffer_bytes: int = -1,
) -> None:
    """Runs a scenario with a served connection and its client's blocking socket."""

    async def main() -> None:
        network, recorder = TcpNetwork(send_buffer_bytes), Recorder(on_connected)
        listener = await network.listen("127.0.0.1", 0, lambda: recorder)
        client = socket.socket()
        client.settimeout(10)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        try:
            await asyncio.to_thread(client.connect, ("127.0.0.1", listener.port))
            while recorder.connection is None:
                await asyncio.sleep(0.001)
            await scenario(recorder, client)
        finally:
            client.close()
            listener.close()
            if recorder.connection is not None:
                recorder.connection.abort()
                await asyncio.wait_for(recorder.is_lost.wait(), 10)
                assert recorder.connection.unsent_bytes == 0

    if loop == "uvloop":
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())
    else:
        asyncio.run(main())


@pytest.fixture(params=["uvloop", "asyncio"])
def loop(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def received(client: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = client.recv(min(1 << 20, size - len(data)))
        if not part:
            break
        data += part
    return bytes(data)


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)


def test_bytes_and_regions_of_files_arrive_in_the_order_they_were_sent(loop: str, tmp_path: Path) -> None:
    contents = bytes(range(256)) * 16_000
    (tmp_path / "f").write_bytes(contents)

    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        file = RealDisk().open(str(tmp_path / "f"))
        expected = b""
        connection = recorder.connection
        assert connection is not None
        for number in range(30):
            head = b"<%d>" % number
            connection.send(head)
            size = (1, 100, 20_000, 2_000_000)[number % 4]
            connection.send_file(file, number * 1000, size)
            expected += head + contents[number * 1000 : number * 1000 + size]
        assert connection.unsent_bytes > 0, "the socket does not take it all"
        assert await asyncio.to_thread(received, client, len(expected)) == expected
        await eventually(lambda: connection.unsent_bytes == 0)
        assert recorder.drains >= 1
        file.close()

    run(scenario, loop)


def test_a_file_stays_open_until_its_region_is_sent(loop: str, tmp_path: Path) -> None:
    contents = b"z" * 20_000_000
    (tmp_path / "f").write_bytes(contents)

    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        file = RealDisk().open(str(tmp_path / "f"))
        assert recorder.connection is not None
        recorder.connection.send_file(file, 0, len(contents))
        file.close()
        assert file.fd >= 0
        assert await asyncio.to_thread(received, client, len(contents)) == contents
        await eventually(lambda: file.fd == -1)

    run(scenario, loop)


def test_a_closed_connection_sends_what_it_was_given_first(loop: str) -> None:
    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        assert recorder.connection is not None
        recorder.connection.send(b"x" * 15_000_000)
        recorder.connection.close()
        recorder.connection.send(b"too late")
        assert len(await asyncio.to_thread(received, client, 16_000_000)) == 15_000_000

    run(scenario, loop)


def test_an_aborted_connection_sends_nothing_more(loop: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"z" * 1_000_000)

    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        file = RealDisk().open(str(tmp_path / "f"))
        assert recorder.connection is not None
        recorder.connection.send(b"x" * 15_000_000)
        recorder.connection.send_file(file, 0, 1_000_000)
        file.close()
        recorder.connection.abort()
        assert file.fd == -1
        await asyncio.wait_for(recorder.is_lost.wait(), 10)

    run(scenario, loop)


def test_a_peer_that_goes_ends_the_connection(loop: str) -> None:
    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        client.sendall(b"hello")
        await eventually(lambda: recorder.data == b"hello")
        client.close()
        await asyncio.wait_for(recorder.is_lost.wait(), 10)

    run(scenario, loop)


def test_nothing_is_read_while_reading_is_paused(loop: str) -> None:
    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        assert recorder.connection is not None
        recorder.connection.pause_reading()
        client.sendall(b"held")
        await asyncio.sleep(0.1)
        assert recorder.data == b""
        recorder.connection.resume_reading()
        await eventually(lambda: recorder.data == b"held")

    run(scenario, loop)


def test_reading_can_be_paused_before_the_first_byte(loop: str) -> None:
    """uvloop begins to read after it has told of the connection, whatever was asked for meanwhile."""

    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        assert recorder.connection is not None
        await asyncio.sleep(0.05)
        client.sendall(b"held")
        await asyncio.sleep(0.1)
        assert recorder.data == b""
        recorder.connection.resume_reading()
        await eventually(lambda: recorder.data == b"held")

    run(scenario, loop, on_connected=lambda connection: connection.pause_reading())


def test_a_region_that_the_file_no_longer_has_ends_the_connection(loop: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"z" * 100_000)

    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        file = RealDisk().open(str(tmp_path / "f"))
        assert recorder.connection is not None
        recorder.connection.send_file(file, 0, 200_000)
        assert len(await asyncio.to_thread(received, client, 200_000)) <= 100_000
        file.close()

    run(scenario, loop)


def test_the_real_port_is_told_where_0_was_asked_for(loop: str) -> None:
    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        assert client.getpeername()[1] > 0
        assert recorder.connection is not None
        assert recorder.connection.peer_address == f"127.0.0.1:{client.getsockname()[1]}"

    run(scenario, loop)


def test_a_connection_takes_no_more_unread_than_its_send_buffer_holds(loop: str) -> None:
    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        assert recorder.connection is not None
        recorder.connection.send(bytes(4_000_000))
        assert recorder.connection.unsent_bytes > 3_500_000
        assert await asyncio.to_thread(received, client, 4_000_000) == bytes(4_000_000)

    run(scenario, loop, send_buffer_bytes=50_000)


def test_a_name_that_cannot_be_resolved_is_an_address_that_does_not_respond(loop: str) -> None:
    """Another node may advertise it, and must not end this one."""

    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        for host in ("broker-0..kafka", "b" * 64 + ".kafka"):
            with pytest.raises(OSError, match="address"):
                await TcpNetwork().connect(host, 9092, Recorder(lambda connection: None))

    run(scenario, loop)


@pytest.mark.parametrize("host", ["a..b", "b" * 64 + ".kafka"])
def test_a_name_that_cannot_be_asked_for_is_nothing_to_listen_on(loop: str, host: str) -> None:
    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        with pytest.raises(OSError, match=f"{host}:0 is no address") as refused:
            await TcpNetwork().listen(host, 0, Recorder)
        assert refused.value.errno == errno.EINVAL

    run(scenario, loop)


def test_without_ipv6_there_is_no_listening_on_an_address_of_it(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        monkeypatch.setattr(network, "_is_usable", lambda family: family != socket.AF_INET6)
        with pytest.raises(OSError, match="::1:0: this machine has no IPv6") as refused:
            await TcpNetwork().listen("::1", 0, Recorder)
        assert refused.value.errno == errno.EADDRNOTAVAIL

    run(scenario, loop)


def test_a_connection_for_which_no_file_is_left_is_closed_and_the_next_is_served(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.dup

    def refuse(fd: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        problems: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
        late = Recorder()
        listener = await TcpNetwork().listen("127.0.0.1", 0, lambda: late)
        monkeypatch.setattr(os, "dup", refuse)
        with await asyncio.to_thread(socket.create_connection, ("127.0.0.1", listener.port), 10) as refused:
            with suppress(ConnectionResetError):
                assert await asyncio.to_thread(refused.recv, 1) == b""
            await asyncio.wait_for(late.is_lost.wait(), 10)
        monkeypatch.setattr(os, "dup", real)
        with await asyncio.to_thread(socket.create_connection, ("127.0.0.1", listener.port), 10):
            await eventually(lambda: late.connection is not None)
        listener.close()
        assert problems == []

    run(scenario, loop)


def test_buffers_are_as_large_as_asked_for_on_either_side(loop: str) -> None:
    def sizes(recorder: Recorder) -> list[int]:
        assert recorder.connection is not None
        assert recorder.connection._socket is not None
        options = (socket.SO_SNDBUF, socket.SO_RCVBUF)
        return [recorder.connection._socket.getsockopt(socket.SOL_SOCKET, option) for option in options]

    async def scenario(recorder: Recorder, client: socket.socket) -> None:
        accepted, connecting = Recorder(), Recorder()
        sized = TcpNetwork(30_000, 20_000, own_receive_buffer_bytes=10_000)
        listener = await sized.listen("127.0.0.1", 0, lambda: accepted)
        await sized.connect("127.0.0.1", listener.port, connecting)
        await eventually(lambda: accepted.connection is not None)
        # Linux keeps as much again for itself.
        assert sizes(accepted) in ([30_000, 20_000], [60_000, 40_000])
        assert sizes(connecting)[1] in (10_000, 20_000)
        assert sizes(connecting)[0] > 60_000, "only of those that are accepted"
        assert sizes(recorder)[1] > 40_000, "left to the operating system"
        listener.close()
        for each in (accepted, connecting):
            assert each.connection is not None
            each.connection.abort()
            await asyncio.wait_for(each.is_lost.wait(), 10)

    run(scenario, loop)


def test_a_node_s_sockets_follow_its_settings_where_they_are_set() -> None:
    def buffers(**given: str) -> tuple[list[tuple[int, int]], int]:
        settings = embedded_settings(port=0, data="d", host="localhost")
        config = BrokerConfig(settings | {name.replace("_", "."): value for name, value in given.items()})
        replicas = launcher._replica_network(config)
        assert replicas._buffers == []
        return launcher._network(config)._buffers, replicas._own_receive_buffer_bytes

    send, receive = socket.SO_SNDBUF, socket.SO_RCVBUF
    assert buffers() == ([(send, 102_400)], -1)
    assert buffers(socket_receive_buffer_bytes="7000", replica_socket_receive_buffer_bytes="9000") == (
        [(send, 102_400), (receive, 7000)],
        9000,
    )
