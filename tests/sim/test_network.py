"""The simulated network: late, in pieces, in order; and everything that can happen to a connection."""

from __future__ import annotations

import asyncio
import errno

import pytest

from strandline.broker.server.connection import SEND_BYTES_HIGH
from strandline.ports.network import Connection
from strandline.sim.disk import SimulatedDisk
from strandline.sim.engine.connection import SOCKET_BYTES
from strandline.sim.engine.disk_faults import DiskFaults
from strandline.sim.engine.page_cache import PageCache
from strandline.sim.engine.process_life import ProcessLife
from strandline.sim.network import HostNetwork
from strandline.sim.wire_client import Disconnected, WireClient
from strandline.sim.workloads.producer import create_topic, produce
from strandline.sim.world import CLIENT_HOST, SimulatedNode, World
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from tests.sim.seeds import seeds


class Listening:
    """A peer that keeps what it is told."""

    def __init__(self) -> None:
        self.connection: Connection
        self.received_bytes = bytearray()
        self.pieces = 0
        self.drained_count = 0
        self.lost_with: list[Exception | None] = []
        self._room = memoryview(bytearray(5000))

    def connected(self, connection: Connection) -> None:
        self.connection = connection

    def buffer(self, size_hint: int = -1) -> memoryview:
        return self._room

    def received(self, size: int) -> None:
        self.pieces += 1
        self.received_bytes += self._room[:size]

    def drained(self) -> None:
        self.drained_count += 1

    def lost(self, error: Exception | None) -> None:
        self.lost_with.append(error)


class Pair:
    """A connection between the hosts a and b."""

    def __init__(self, world: World, life: ProcessLife | None = None) -> None:
        self._world = world
        self.near = Listening()
        self.far = Listening()
        self._a = HostNetwork(world.network, "a", None)
        self._b = HostNetwork(world.network, "b", life)
        self._life = life or ProcessLife("b")

    async def open(self) -> None:
        listener = await self._life.run(self._b.listen("b", 0, lambda: self.far))
        await self._a.connect("b", listener.port, self.near)
        await asyncio.sleep(0.1)
        assert self.far.connection.peer_address.startswith("a:")


def pattern(size: int) -> bytes:
    return bytes(number * 7 % 251 for number in range(size))


@seeds(5)
def test_bytes_arrive_late_in_pieces_and_in_order(seed: int) -> None:
    async def scenario(world: World) -> None:
        pair = Pair(world)
        await pair.open()
        sent = pattern(40_000)
        for start in range(0, len(sent), 1000):
            pair.near.connection.send(sent[start : start + 1000])
        assert not pair.far.received_bytes
        await asyncio.sleep(1)
        assert pair.far.received_bytes == sent
        assert pair.far.pieces >= 40

    with World(seed) as world:
        world.run(scenario(world))


def test_connections_have_different_delays() -> None:
    async def scenario(world: World) -> None:
        arrivals = []
        for _ in range(5):
            pair = Pair(world)
            await pair.open()
            began = world.loop.time()
            pair.near.connection.send(b"x")
            while not pair.far.received_bytes:
                await asyncio.sleep(0.0001)
            arrivals.append(round(world.loop.time() - began, 4))
        assert len(set(arrivals)) > 3

    with World(1) as world:
        world.run(scenario(world))


def test_a_reader_that_does_not_read_pushes_back_on_its_writer() -> None:
    async def scenario(world: World) -> None:
        pair = Pair(world)
        await pair.open()
        pair.far.connection.pause_reading()
        sent = pattern(3 * SOCKET_BYTES)
        pair.near.connection.send(sent)
        await asyncio.sleep(1)
        assert pair.near.connection.unsent_bytes == 2 * SOCKET_BYTES
        assert pair.near.drained_count == 0
        assert not pair.far.received_bytes
        pair.far.connection.resume_reading()
        await asyncio.sleep(1)
        assert pair.far.received_bytes == sent
        assert pair.near.connection.unsent_bytes == 0
        assert pair.near.drained_count == 1

    with World(1) as world:
        world.run(scenario(world))


def test_close_sends_what_was_handed_over_and_abort_does_not() -> None:
    async def scenario(world: World) -> None:
        sent = pattern(2 * SOCKET_BYTES)
        pair = Pair(world)
        await pair.open()
        pair.near.connection.send(sent)
        pair.near.connection.close()
        await asyncio.sleep(1)
        assert pair.far.received_bytes == sent
        assert pair.far.lost_with == pair.near.lost_with == [None]
        pair = Pair(world)
        await pair.open()
        pair.near.connection.send(sent)
        pair.near.connection.abort()
        await asyncio.sleep(1)
        assert len(pair.far.received_bytes) < len(sent)
        assert pair.near.lost_with == [None]
        assert isinstance(pair.far.lost_with[0], ConnectionResetError)

    with World(1) as world:
        world.run(scenario(world))


def test_bytes_that_the_operating_system_took_arrive_after_their_process_was_killed() -> None:
    async def scenario(world: World) -> None:
        life = ProcessLife("b")
        pair = Pair(world, life)
        await pair.open()
        pair.far.connection.send(pattern(2 * SOCKET_BYTES))
        life.end("killed")
        await asyncio.sleep(1)
        assert pair.near.received_bytes == pattern(2 * SOCKET_BYTES)[:SOCKET_BYTES]
        assert pair.near.lost_with == [None]
        assert pair.far.lost_with == []

    with World(1) as world:
        world.run(scenario(world))


def test_a_host_without_power_is_silent_until_it_is_back() -> None:
    async def scenario(world: World) -> None:
        life = ProcessLife("b")
        pair = Pair(world, life)
        await pair.open()
        life.end("power cut", power_cut=True)
        pair.near.connection.send(b"anyone?")
        await asyncio.sleep(100)
        assert pair.near.lost_with == []
        world.network.power_back("b")
        await asyncio.sleep(1)
        assert isinstance(pair.near.lost_with[0], ConnectionResetError)

    with World(1) as world:
        world.run(scenario(world))


def test_a_cut_holds_one_direction_back_and_heals_in_order() -> None:
    async def scenario(world: World) -> None:
        pair = Pair(world)
        await pair.open()
        world.network.cut("a", "b")
        pair.near.connection.send(b"held, ")
        pair.far.connection.send(b"goes through")
        await asyncio.sleep(1)
        assert not pair.far.received_bytes
        assert pair.near.received_bytes == b"goes through"
        world.network.heal()
        pair.near.connection.send(b"after it")
        await asyncio.sleep(1)
        assert pair.far.received_bytes == b"held, after it"

    with World(1) as world:
        world.run(scenario(world))


def test_a_wire_that_two_faults_have_cut_is_whole_when_both_have_ended() -> None:
    async def scenario(world: World) -> None:
        pair = Pair(world)
        await pair.open()
        world.network.cut("a", "b")
        world.network.partition(["a"], ["b"])
        pair.near.connection.send(b"held")
        world.network.mend("a", "b")
        await asyncio.sleep(1)
        assert not pair.far.received_bytes
        world.network.mend("a", "b")
        await asyncio.sleep(1)
        assert pair.far.received_bytes == b"held"

    with World(1) as world:
        world.run(scenario(world))


def test_connecting_over_a_partition_times_out_and_to_nobody_is_refused() -> None:
    async def scenario(world: World) -> None:
        pair = Pair(world)
        with pytest.raises(ConnectionRefusedError):
            await world.network.host("a").connect("b", 1, pair.near)
        world.network.partition(["a"], ["b"])
        with pytest.raises(TimeoutError):
            await pair.open()
        world.network.heal()
        await pair.open()

    with World(1) as world:
        world.run(scenario(world))


def test_a_region_of_a_file_is_read_when_its_turn_comes() -> None:
    async def scenario(world: World) -> None:
        pair = Pair(world)
        await pair.open()
        disk = SimulatedDisk(
            PageCache(world.generator("volume")),
            ProcessLife("b"),
            DiskFaults(),
            world.generator("disk"),
            world.trace,
        )
        file = disk.open("/file", create=True)
        file.write_at(0, (bytes(200_000),))
        pair.near.connection.send(b"ahead")
        pair.near.connection.send_file(file, 0, 200_000)
        file.write_at(190_000, (b"late",))
        disk.remove("/file")
        file.close()
        await asyncio.sleep(1)
        assert len(pair.far.received_bytes) == 200_005
        assert pair.far.received_bytes[190_005:190_009] == b"late"
        with pytest.raises(OSError) as raised:
            file.read_at(0, 1)
        assert raised.value.errno == errno.EBADF

    with World(1) as world:
        world.run(scenario(world))


def test_a_client_that_does_not_read_is_not_buffered_for_without_limit() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t")
        for _ in range(4):
            await produce(client, "t", 0, [b"x" * 500_000])
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 21)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic="t", partitions=(partition,)),)
        )
        client.connection.pause_reading()
        responses = [client.send(request, 12) for _ in range(8)]
        await asyncio.sleep(10)
        (served,) = node.broker.connections._served
        unsent = served._connection.unsent_bytes
        assert SEND_BYTES_HIGH < unsent < 2 * SEND_BYTES_HIGH + 2_000_000
        client.connection.resume_reading()
        for pending in responses:
            response = await pending
            assert len(response.responses[0].partitions[0].records) > 1_900_000

    with World(1) as world:
        world.run(scenario(world, world.add_node()))


@seeds(5)
def test_a_broken_connection_tells_both_sides_and_clients_come_back(seed: int) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t")
        producing = world.start_task(produce(client, "t", 0, [b"x"]))
        await asyncio.sleep(0)
        world.network.break_connections(CLIENT_HOST)
        with pytest.raises(Disconnected):
            await producing
        assert not client.is_connected
        client = await WireClient.connect(world.clients, node.host, 9092)
        await produce(client, "t", 0, [b"y"])
        assert len(node.broker.connections) == 1

    with World(seed) as world:
        world.run(scenario(world, world.add_node()))
