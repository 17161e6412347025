"""A simulated world: one loop, one seed, and the nodes, disks, wires and clients in it.

    def test_a_kill_loses_nothing(seed):
        with World(seed) as world:
            world.run(scenario(world))

    async def scenario(world):
        node = world.add_node()
        await node.start()
        client = await world.connect(node)
        ...
        node.kill()
        await node.start()

A node is started, stopped, killed, cut from power and started again; its volume stays. Whatever happens is decided by
the seed and by what the scenario does. A node that halts by itself fails the run, unless the scenario said that it may.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeVar

from strandline.base.ids import uuid_text
from strandline.broker.broker import Broker
from strandline.broker.broker_parts import Ports
from strandline.broker.metadata.raft_bootstrap import bootstrap_file, initial_voter, quorum_file
from strandline.config import BrokerConfig
from strandline.quorum.voters import VoterSet
from strandline.sim.clock import SimulatedClock
from strandline.sim.disk import SimulatedDisk
from strandline.sim.engine.disk_faults import DiskFaults
from strandline.sim.engine.loop import simulated_loop
from strandline.sim.engine.page_cache import PageCache
from strandline.sim.engine.process_life import ProcessLife
from strandline.sim.engine.trace import Trace
from strandline.sim.network import SimulatedNetwork
from strandline.sim.process import SimulatedProcess
from strandline.sim.random import Generator, SimulatedRandom, generator
from strandline.sim.wire_client import Disconnected, WireClient
from strandline.sim.workers import SimulatedWorkers
from strandline.storage.directory import format_directory, is_unformatted
from strandline.telemetry.events import Events
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

T = TypeVar("T")

DATA: Final = "/data"
PORT: Final = 9092
CONTROLLER_PORT: Final = 9093
CLIENT_HOST: Final = "clients"
# An hour: a wait that is longer than that never ends.
VIRTUAL_SECONDS_MAX: Final = 3600.0
_TRACE_LINES_SHOWN: Final = 40
_CONNECT_SECONDS_MAX: Final = 1.0
# The settings of a cluster of three brokers.
REPLICATED: Final = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
}


class World:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.trace = Trace()
        self.loop = simulated_loop(self.trace)
        self.network = SimulatedNetwork(self.loop, seed, self.trace)
        self.clients = self.network.host(CLIENT_HOST)
        self.chance = self.generator("scenario")
        self.chance_of_clients = self.generator("clients")
        self.nodes: dict[int, SimulatedNode] = {}
        self._leader_epochs: dict[
            tuple[str, bytes, int], int
        ] = {}  # the latest epoch that each client has heard of

    def generator(self, *purpose: object) -> Generator:
        return generator(self.seed, *purpose)

    def add_node(
        self,
        node_id: int = 1,
        *,
        settings: Mapping[str, str] | None = None,
        open_files_max: int = 1024,
        capacity_bytes: int = 1 << 40,
    ) -> SimulatedNode:
        """Adds a node, which is not started yet; the settings override those of a one-node cluster."""
        volume = PageCache(self.generator("volume", node_id), capacity_bytes=capacity_bytes)
        given = one_node_settings(node_id) | dict(settings or {})
        node = self.nodes[node_id] = SimulatedNode(self, node_id, given, volume, open_files_max)
        return node

    def add_cluster(
        self, nodes: int = 3, *, settings: Mapping[str, str] | None = None
    ) -> list[SimulatedNode]:
        """Adds nodes in both roles that form one cluster; none is started yet."""
        ids = range(1, nodes + 1)
        voters = ",".join(f"{node_id}@{host_name(node_id)}:{CONTROLLER_PORT}" for node_id in ids)
        return [
            self.add_node(node_id, settings=cluster_settings(node_id, voters) | dict(settings or {}))
            for node_id in ids
        ]

    def add_controllers(
        self, controllers: int, brokers: int = 1, *, settings: Mapping[str, str] | None = None
    ) -> list[SimulatedNode]:
        """Adds controllers, of which the first begins a quorum and the others can join it, and brokers with the ids
        after theirs."""
        ids = range(1, controllers + brokers + 1)
        servers = ",".join(f"{host_name(n)}:{CONTROLLER_PORT}" for n in ids[:controllers])
        nodes = []
        for node_id in ids:
            role = "controller" if node_id <= controllers else "broker"
            own = dynamic_settings(node_id, role, servers) | dict(settings or {})
            nodes.append(self.add_node(node_id, settings=own))
        nodes[0].begins_quorum = True
        return nodes

    async def start_all(self) -> None:
        """Starts all nodes at once: none is ready before a majority of controllers is there."""
        starting = [self.start_task(node.start()) for node in self.nodes.values()]
        for each in starting:
            await each

    async def connect_any(self, client_id: str = "sim") -> WireClient:
        """Connects to any node that is reachable, as a client with a bootstrap list does."""
        nodes = list(self.nodes.values())
        self.chance_of_clients.shuffle(nodes)
        for node in nodes:
            try:
                return await asyncio.wait_for(self.connect(node, client_id), _CONNECT_SECONDS_MAX)
            except (Disconnected, TimeoutError):
                continue
        raise Disconnected("no node is reachable")

    async def connect_leader(self, topic: str, partition: int, client_id: str = "sim") -> WireClient:
        """Connects to the broker that leads a partition, by the metadata of some broker."""
        any_node = await self.connect_any(client_id)
        asked = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
        try:
            response = await any_node.request(asked, MetadataResponse, seconds_max=_CONNECT_SECONDS_MAX)
        finally:
            any_node.close()
        for found in response.topics[0].partitions:
            node = self.nodes.get(found.leader_id)
            if found.partition_index == partition and node is not None:
                # As clients do: a broker that was cut off names leaders that are none any more.
                place = (client_id, response.topics[0].topic_id, partition)
                known = self._leader_epochs.get(place, -1)
                if found.leader_epoch < known:
                    raise Disconnected(f"a leader of {topic}-{partition} from before epoch {known}")
                self._leader_epochs[place] = found.leader_epoch
                try:
                    return await asyncio.wait_for(self.connect(node, client_id), _CONNECT_SECONDS_MAX)
                except TimeoutError as error:
                    raise Disconnected("the leader is not reachable") from error
        raise Disconnected(f"nobody leads {topic}-{partition}")

    async def connect(self, node: SimulatedNode, client_id: str = "sim") -> WireClient:
        """Connects to a node; raises wire_client.Disconnected where nobody listens."""
        return await WireClient.connect(self.clients, node.host, PORT, client_id)

    def start_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return self.loop.create_task(work)

    def run(self, main: Coroutine[Any, Any, T], *, virtual_seconds_max: float = VIRTUAL_SECONDS_MAX) -> T:
        """Runs a scenario to its end. An error says which seed it was and what happened last."""
        try:
            return self.loop.run_until_complete(main, seconds_max=virtual_seconds_max)
        except BaseException as error:
            error.add_note(f"the seed was {self.seed}, the virtual time {self.loop.time():.6f} s")
            error.add_note(f"the last events:\n{self.trace.tail(_TRACE_LINES_SHOWN)}")
            for node in self.nodes.values():
                error.add_note(f"node {node.node_id} said:\n" + "\n".join(node.said[-_TRACE_LINES_SHOWN:]))
            raise

    @property
    def trace_hash(self) -> str:
        return self.trace.hexdigest()

    def close(self) -> None:
        self.loop.close()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SimulatedNode:
    """A machine with one broker: its volume and faults outlive the broker's lives."""

    def __init__(
        self, world: World, node_id: int, settings: Mapping[str, str], volume: PageCache, open_files_max: int
    ) -> None:
        self._world = world
        self.node_id = node_id
        self.host = host_name(node_id)
        self.config = BrokerConfig(settings)
        self.volume = volume
        self.faults = DiskFaults()
        self.clock = SimulatedClock(world.loop)
        self.said: list[str] = []  # every event line of every life
        self.halts: list[str] = []
        self.may_halt = False
        self.begins_quorum = False
        self.cluster_name = "cluster"  # nodes of one cluster have one name
        self._open_files_max = open_files_max
        self._lives = 0
        self.life = ProcessLife(f"{self.host}, not started")
        self.life.end("not started")
        self.broker: Broker
        self.workers: SimulatedWorkers
        self.disk: SimulatedDisk

    @property
    def is_running(self) -> bool:
        return self.life.is_alive

    async def start(self) -> None:
        """Begins a new life: formats empty directories and starts the broker. Raises NodeHalted if the process ends
        before that."""
        assert not self.life.is_alive, "it runs already"
        self._world.network.power_back(self.host)
        life = self._begin_life()
        try:
            await life.run(self._start())
        except BaseException:
            life.end("could not start")
            raise

    async def _start(self) -> None:
        self._format_if_empty()
        await self.broker.start()

    def _begin_life(self) -> ProcessLife:
        world, number = self._world, self._lives
        self._lives += 1
        life = self.life = ProcessLife(f"{self.host}, life {number}")
        life.clock_rate = self.clock.rate
        life.on_end(self._ended)
        self.workers = SimulatedWorkers(world.loop, world.generator("workers", self.node_id, number))
        self.disk = SimulatedDisk(
            self.volume,
            life,
            self.faults,
            world.generator("disk", self.node_id, number),
            world.trace,
            wall_ms=self.clock.wall_ms,
        )
        ports = Ports(
            disk=self.disk,
            clock=self.clock,
            random=SimulatedRandom(world.generator("random", self.node_id, number)),
            workers=self.workers,
            network=world.network.host(self.host, life),
            process=SimulatedProcess(life, self._halted),
            open_files_max=self._open_files_max,
        )
        events = Events(self._say, self.clock.wall_ms, node=self.node_id)
        self.broker = life.context.run(Broker, ports, self.config, events)
        return life

    def _format_if_empty(self) -> None:
        """Formats the empty directories of a one-node configuration, as the real launcher does."""
        # Another disk is another directory.
        life = (self._lives,) if self._lives > 1 else ()
        random = SimulatedRandom(self._world.generator("format", self.node_id, *life))
        cluster_id = uuid_text(SimulatedRandom(self._world.generator(self.cluster_name)).uuid())
        missing = [path for path in self.config.log_dirs if is_unformatted(self.disk, path)]
        if not missing:
            return
        for path in missing:
            directory_id = random.uuid()
            if self.begins_quorum:
                self._write_first_voters(path, directory_id)
            format_directory(
                self.disk, path, cluster_id=cluster_id, node_id=self.node_id, directory_id=directory_id
            )
        name, contents = bootstrap_file(self.clock.wall_ms())
        self.disk.write_whole(f"{self.config.log_dirs[0]}/{name}", contents)

    def _write_first_voters(self, path: str, directory_id: bytes) -> None:
        voters = VoterSet.of([initial_voter(self.config, directory_id)])
        name, contents = quorum_file(self.clock.wall_ms(), voters)
        self.disk.make_directory(f"{path}/{name}".rpartition("/")[0])
        self.disk.write_whole(f"{path}/{name}", contents)

    def replace_disk(self) -> None:
        """Replaces the disk of a node that does not run: all its files are gone."""
        assert not self.life.is_alive, "it runs"
        self.volume = PageCache(self._world.generator("volume", self.node_id, self._lives))
        self.begins_quorum = False

    async def stop(self) -> None:
        """Shuts the broker down cleanly, and ends the process."""
        await self.life.run(self.broker.stop())
        self.life.end("stopped")

    def kill(self) -> None:
        """Kills the process as `kill -9` does: nothing more runs, and bytes that were written stay."""
        self._world.trace.note("kill", self.host)
        self.life.end("killed")

    def cut_power(self) -> None:
        """Turns the machine off at once; bytes that were not synced are kept or lost by chance."""
        self._world.trace.note("power cut", self.host)
        self.life.end("power cut", power_cut=True)

    def pause(self) -> None:
        """Pauses the process as SIGSTOP does: nothing runs, and its sockets stay open."""
        self._world.trace.note("pause", self.host)
        self.life.is_paused = True

    def resume(self) -> None:
        self._world.trace.note("resume", self.host)
        self._world.loop.resume(self.life)

    def set_clock_rate(self, rate: float) -> None:
        """Makes its clocks and timers run this much faster than those of the others; a restart keeps that."""
        self._world.trace.note("clock rate", f"{self.host} {rate}")
        self.clock.set_rate(rate)
        self.life.clock_rate = rate

    def kill_amid_disk_operation(self, number: int) -> None:
        """Kills the process during the disk operation that comes after `number` others."""
        self.faults.kill_amid_operation(number)

    def _ended(self) -> None:
        self.volume.crash(power_cut=self.life.lost_power)

    def _say(self, line: str) -> None:
        self._world.trace.note("say", line)
        self.said.append(line)

    def _halted(self, reason: str) -> None:
        self.halts.append(reason)
        if not self.may_halt:
            self._world.loop.fail(AssertionError(f"{self.host} halted: {reason}"))


def host_name(node_id: int) -> str:
    return f"node-{node_id}"


def one_node_settings(node_id: int) -> dict[str, str]:
    """Returns the settings of `strandline up`, with addresses of the simulated world."""
    host = host_name(node_id)
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://{host}:{PORT},CONTROLLER://{host}:0",
        "advertised.listeners": f"PLAINTEXT://{host}:{PORT}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{node_id}@{host}:1",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": DATA,
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }


def dynamic_settings(node_id: int, role: str, servers: str) -> dict[str, str]:
    """Returns the settings of a node of a cluster whose voters are in its metadata log."""
    host = host_name(node_id)
    listener = (
        f"CONTROLLER://{host}:{CONTROLLER_PORT}" if role == "controller" else f"PLAINTEXT://{host}:{PORT}"
    )
    return {
        "process.roles": role,
        "listeners": listener,
        "advertised.listeners": listener,
        "controller.quorum.voters": "",
        "controller.quorum.bootstrap.servers": servers,
    }


def cluster_settings(node_id: int, voters: str) -> dict[str, str]:
    """Returns the settings of a node of a cluster, which come on top of those of a one-node cluster."""
    host = host_name(node_id)
    return {
        "listeners": f"PLAINTEXT://{host}:{PORT},CONTROLLER://{host}:{CONTROLLER_PORT}",
        "controller.quorum.voters": voters,
        **REPLICATED,
    }
