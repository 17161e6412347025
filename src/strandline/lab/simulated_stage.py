"""The simulated stage: controllers, brokers and clients in one thread and in virtual time, from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from strandline.broker.broker import Broker
from strandline.client.world import ClientWorld
from strandline.lab.clients import LabConsumer, LabProducer
from strandline.lab.raw_frames import RawFrames
from strandline.lab.scenario import LabScenario
from strandline.lab.stage import NOBODY, cluster_settings, rack_of
from strandline.lab.timeline import PartitionView, ReplicaView, partition_view, replica_view
from strandline.node.faults.observation import fenced_brokers, leads_quorum, partition_state, replica_state
from strandline.node.faults.requests import RequestFaults
from strandline.node.faults.rule import parse_rule
from strandline.sim.checks.log import log_of
from strandline.sim.clock import SimulatedClock
from strandline.sim.random import SimulatedRandom
from strandline.sim.wire_client import WireClient
from strandline.sim.workers import SimulatedWorkers
from strandline.sim.world import CONTROLLER_PORT, DATA, PORT, SimulatedNode, World, host_name
from strandline.wire.record_batch import headers_in

FIRST_CONTROLLER: Final = 101
_WATCH_SECONDS: Final = 0.01


class SimulatedStage:
    """Brokers have the numbers 1, 2, 3; the controllers, which are nodes of their own, 101, 102, 103."""

    def __init__(self, scenario: LabScenario) -> None:
        self.world = World(scenario.seed)
        self._states: dict[tuple[str, int], tuple[object, list[ReplicaView], PartitionView]] = {}
        self._faults: dict[Broker, RequestFaults] = {}
        self._replica_states: dict[tuple[int, str, int], tuple[object, ReplicaView]] = {}
        controllers = range(FIRST_CONTROLLER, FIRST_CONTROLLER + scenario.controllers)
        voters = ",".join(f"{node}@{host_name(node)}:{CONTROLLER_PORT}" for node in controllers)
        for node in controllers:
            listener = f"CONTROLLER://{host_name(node)}:{CONTROLLER_PORT}"
            own = {"process.roles": "controller", "listeners": listener, "advertised.listeners": listener}
            self._add(node, own, voters, scenario)
        for node in range(1, scenario.brokers + 1):
            own = {"process.roles": "broker", "listeners": f"PLAINTEXT://{host_name(node)}:{PORT}"}
            rack = rack_of(scenario, node)
            if rack is not None:
                own["broker.rack"] = rack
            self._add(node, own, voters, scenario)
        self.brokers: dict[int, SimulatedNode] = {
            number: node for number, node in self.world.nodes.items() if number < FIRST_CONTROLLER
        }

    def _add(self, node: int, own: dict[str, str], voters: str, scenario: LabScenario) -> None:
        given = {**own, "controller.quorum.voters": voters, **cluster_settings(scenario)}
        self.world.add_node(node, settings=given)

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(self.world.nodes)

    @property
    def watch_seconds(self) -> float:
        return _WATCH_SECONDS

    def address(self, node: int) -> str:
        return f"{host_name(node)}:{PORT}"

    def is_running(self, node: int) -> bool:
        return self.world.nodes[node].is_running

    async def refresh(self) -> None:
        """Views are read from the nodes' own memory: they are always of now."""

    @property
    def bootstrap(self) -> str:
        return ",".join(map(self.address, self.brokers))

    def now(self) -> float:
        return self.world.loop.time()

    def client_world(self, name: str) -> ClientWorld:
        """Returns the world of one client, on a host of its own."""
        world = self.world
        return ClientWorld(
            network=world.network.host(name),
            clock=SimulatedClock(world.loop),
            random=SimulatedRandom(world.generator(name)),
            workers=SimulatedWorkers(world.loop, world.generator(f"{name} workers")),
        )

    def producer(
        self,
        name: str,
        settings: Mapping[str, str],
        topic: str,
        partitions: int,
        on_result: Callable[[], None],
    ) -> LabProducer:
        return LabProducer(name, settings, self.client_world(name), topic, partitions, on_result)

    def consumer(
        self,
        name: str,
        settings: Mapping[str, str],
        topic: str,
        on_change: Callable[[], None],
        work_seconds: float,
    ) -> LabConsumer:
        return LabConsumer(name, settings, self.client_world(name), topic, on_change, work_seconds)

    async def start(self) -> None:
        await self.world.start_all()

    def kill(self, node: int) -> None:
        self.world.nodes[node].kill()

    def cut_power(self, node: int) -> None:
        self.world.nodes[node].cut_power()

    def pause(self, node: int) -> None:
        self.world.nodes[node].pause()

    def resume(self, node: int) -> None:
        self.world.nodes[node].resume()

    async def start_node(self, node: int) -> None:
        await self.world.nodes[node].start()

    async def stop_node(self, node: int) -> None:
        await self.world.nodes[node].stop()

    def replace_disk(self, node: int) -> None:
        self.world.nodes[node].replace_disk()

    def cut(self, one: str | int, other: str | int) -> None:
        """Cuts the link between two nodes, or a node and a client, in both directions."""
        self.world.network.partition([_host(one)], [_host(other)])

    def cut_one_way(self, source: str | int, target: str | int) -> None:
        self.world.network.cut(_host(source), _host(target))

    def heal(self) -> None:
        self.world.network.heal()

    def control(self, node: int, command: Mapping[str, Any]) -> dict[str, Any]:
        """Sets, releases or describes a fault in requests; another life of the node has none."""
        broker = self.brokers[node].broker
        faults = self._faults.get(broker)
        if faults is None:
            faults = self._faults[broker] = RequestFaults(broker.dispatch, broker.services)
        match command["do"]:
            case "set":
                return faults.add(parse_rule(command["fault"])).status()
            case "release":
                faults.release(command["id"])
        return faults.find(command["id"]).status()

    def fenced(self) -> tuple[int, ...]:
        """Returns the brokers that the controller has fenced."""
        controller = self._controller()
        if controller is None:
            return ()
        return tuple(fenced_brokers(controller.broker))

    def active_controller(self) -> int:
        """Returns the controller that leads the metadata quorum; -1 if none does. If several believe that they lead, it
        is the one with the latest epoch.
        """
        active = self.active_controllers()
        return max(active, key=self._quorum_epoch) if active else -1

    def active_controllers(self) -> list[int]:
        """Returns the controllers that believe that they lead the quorum."""
        return [
            number
            for number, node in self.world.nodes.items()
            if number >= FIRST_CONTROLLER and node.is_running and leads_quorum(node.broker)
        ]

    def _quorum_epoch(self, controller: int) -> int:
        return self.world.nodes[controller].broker.quorum.core.epoch

    def view(self, topic: str, partition: int) -> PartitionView:
        controller = self._controller()
        state = None if controller is None else partition_state(controller.broker, topic, partition)
        if state is None:
            return NOBODY
        replicas = [self._replica(broker, topic, partition) for broker in state["replicas"]]
        # It is looked at a hundred times a second, and is nearly always the same.
        last = self._states.get((topic, partition))
        if last is not None and last[0] == state and last[1] == replicas:
            return last[2]
        view = partition_view(state, replicas)
        self._states[topic, partition] = (state, replicas, view)
        return view

    def copies(self, topic: str, partition: int) -> dict[int, bytes]:
        """Returns the bytes of the log on each broker that has it and runs."""
        directory = f"{DATA}/{topic}-{partition}"
        return {
            number: log_of(node, directory)
            for number, node in self.brokers.items()
            if node.is_running and node.disk.exists(directory)
        }

    def count_markers(self, broker: int, topic: str, partition: int) -> int:
        """Counts the markers of transactions that the broker's log still has."""
        return sum(header.is_control for _, header in headers_in(self.copies(topic, partition)[broker]))

    def last_sequence(self, broker: int, topic: str, partition: int) -> int:
        """Returns the last sequence number of the newest producer that the broker's replica knows; -1 if it knows of
        none.
        """
        replica = self.brokers[broker].broker.replicas.get(topic, partition)
        entries = [] if replica is None else replica.producers.entries()
        return entries[-1].last_sequence if entries else -1

    def set_epoch(self, transactional_id: str, epoch: int) -> None:
        """Has the coordinator take this epoch for the last one of the transactional id."""
        for node in self.brokers.values():
            for runtime in node.broker.transactions.shards():
                known = runtime.shard.transactions.get(transactional_id)
                if known is not None:
                    runtime.shard.apply(replace(known, epoch=epoch), runtime.now())

    async def connect_frames(self, node: int, name: str) -> RawFrames:
        """Opens a connection from a host of its own, for bytes that no encoder would write."""
        return await RawFrames.connect(self.world.network.host(name), host_name(node), PORT)

    async def connect(self, node: int, name: str) -> WireClient:
        """Opens a connection from a host of its own, for requests that no client would send."""
        port = PORT if node in self.brokers else CONTROLLER_PORT
        return await WireClient.connect(self.world.network.host(name), host_name(node), port, name)

    def break_connections(self, host: str | int) -> None:
        """Breaks each connection of this host; it may connect again at once."""
        self.world.network.break_connections(_host(host))

    def _replica(self, broker: int, topic: str, partition: int) -> ReplicaView:
        node = self.brokers[broker]
        state = replica_state(node.broker, topic, partition) if node.is_running else None
        last = self._replica_states.get((broker, topic, partition))
        if last is not None and last[0] == (node.is_running, state):
            return last[1]
        view = replica_view(broker, node.is_running, state)
        self._replica_states[broker, topic, partition] = ((node.is_running, state), view)
        return view

    def _controller(self) -> SimulatedNode | None:
        """Returns the active controller, or another one that runs."""
        active = self.world.nodes.get(self.active_controller())
        if active is not None:
            return active
        running = [
            node
            for number, node in self.world.nodes.items()
            if number >= FIRST_CONTROLLER and node.is_running and hasattr(node.broker, "image")
        ]
        return running[0] if running else None


def _host(name: str | int) -> str:
    return host_name(name) if isinstance(name, int) else name
