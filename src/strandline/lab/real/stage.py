"""The real stage: a process for each node on this machine, links that are cut by their fault switches, real time.

Views come from the nodes themselves, over the pipes by which faults are set. A node that stands still says nothing:
its last view stays.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from strandline.client.world import ClientWorld
from strandline.lab.base import OFFSETS_TOPIC, TOPIC
from strandline.lab.diaries import ConsumerDiary, ProducerDiary
from strandline.lab.real.clients import ClientLibrary
from strandline.lab.scenario import LabScenario
from strandline.lab.stage import NOBODY, OnlySimulated, cluster_settings, rack_of
from strandline.lab.timeline import PartitionView, ReplicaView, partition_view, replica_view
from strandline.testing.clusters import Cluster, ClusterNode
from strandline.testing.fault_channels import BrokerGone

_WATCH_SECONDS: Final = 0.05
Way = tuple[str | int, str | int]  # from a sender to a receiver


class RealStage:
    """Brokers have the numbers 1, 2, 3…; the controllers, which are nodes of their own, those after them."""

    def __init__(self, scenario: LabScenario, library: ClientLibrary, first_port: int = 0) -> None:
        if scenario.only_simulated:
            raise OnlySimulated(scenario.only_simulated)
        self._library = library
        self._home = tempfile.TemporaryDirectory(prefix="strandline-lab-", ignore_cleanup_errors=True)
        self._cluster = Cluster(
            Path(self._home.name) / "nodes",
            scenario.brokers,
            cluster_settings(scenario),
            scenario.controllers,
            first_port,
        )
        for node in self._cluster.brokers:
            del node.settings["broker.rack"]
            rack = rack_of(scenario, node.node_id)
            if rack is not None:
                node.settings["broker.rack"] = rack
        self.brokers = [node.node_id for node in self._cluster.brokers]
        self.nodes = [node.node_id for node in self._cluster.nodes]
        self._partitions = [(TOPIC, each) for each in range(scenario.partitions)] + [(OFFSETS_TOPIC, 0)]
        self._observed: dict[int, dict[str, Any]] = {}
        self._refreshing = asyncio.Lock()
        self._paused: set[int] = set()
        self._killed: set[int] = set()
        self._cut: set[Way] = set()

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap

    @property
    def watch_seconds(self) -> float:
        return _WATCH_SECONDS

    def address(self, node: int) -> str:
        return self._cluster.node(node).bootstrap

    def now(self) -> float:
        return time.monotonic()

    def is_running(self, node: int) -> bool:
        return node not in self._killed and self._cluster.node(node).is_running

    # Life

    async def start(self) -> None:
        """Raises OSError if a port is taken, and RuntimeError with its log if a node does not start."""
        await asyncio.to_thread(self._cluster.start)
        await self.refresh()

    async def close(self) -> None:
        """Ends the clients, then the nodes; what they had is removed."""
        await self._library.close()
        for node in self._cluster.nodes:
            if node.is_running:
                node.kill()  # nothing of it is needed any more
        self._cluster.stop()
        self._home.cleanup()

    # Nodes

    def kill(self, node: int) -> None:
        """Kills the node without waiting for its end, so that two nodes killed in turn die at the same moment."""
        os.kill(self._cluster.node(node).pid, signal.SIGKILL)
        self._killed.add(node)
        self._paused.discard(node)

    def cut_power(self, node: int) -> None:
        raise OnlySimulated(
            "a process can be killed, but what it wrote without syncing stays with the system"
        )

    def pause(self, node: int) -> None:
        self._paused.add(node)
        self._cluster.node(node).pause()

    def resume(self, node: int) -> None:
        self._cluster.node(node).resume()
        self._paused.discard(node)

    async def start_node(self, node: int) -> None:
        ways = [(one, other) for one, other in self._cut if isinstance(one, int) and isinstance(other, int)]
        self._reap(node)
        await asyncio.to_thread(self._cluster.start_node, node, ways)
        for one, other in self._cut:
            if node in (one, other) and (isinstance(one, str) or isinstance(other, str)):
                self._library.cut(self._cluster.node(node), *_client_way(one, other))
        await self.refresh()

    async def stop_node(self, node: int) -> None:
        await asyncio.to_thread(self._cluster.node(node).stop)

    def replace_disk(self, node: int) -> None:
        self._reap(node)
        self._cluster.replace_disk(node)

    def _reap(self, *nodes: int) -> None:
        """Waits for the end of those nodes that were killed."""
        for node in self._killed.intersection(nodes):
            self._cluster.node(node).kill()
        self._killed.difference_update(nodes)

    # Links

    def cut(self, one: str | int, other: str | int) -> None:
        """Cuts the link between two nodes, or a node and a client, in both directions."""
        self.cut_one_way(one, other)
        self.cut_one_way(other, one)

    def cut_one_way(self, source: str | int, target: str | int) -> None:
        if (source, target) in self._cut:
            return
        self._check_paused(source, target)
        self._reap(*self.nodes)
        self._cut.add((source, target))
        if isinstance(source, int) and isinstance(target, int):
            self._cluster.cut(source, target, one_way=True)
        else:
            client, to_client = _client_way(source, target)
            node = self._cluster.node(source if isinstance(source, int) else int(target))
            self._library.cut(node, client, to_client)

    def heal(self) -> None:
        self._check_paused(*self.nodes)
        self._reap(*self.nodes)
        for source, target in self._cut:
            if isinstance(source, str) or isinstance(target, str):
                node = self._cluster.node(source if isinstance(source, int) else int(target))
                self._library.heal(node, *_client_way(source, target))
        self._cut.clear()
        self._cluster.heal()

    def control(self, node: int, command: Mapping[str, Any]) -> dict[str, Any]:
        """Sets, releases or describes a fault in requests, over the node's pipe."""
        return self._cluster.node(node).control(command)

    def _check_paused(self, *nodes: str | int) -> None:
        paused = sorted(self._paused & set(nodes))
        if paused:
            raise OnlySimulated(f"node {paused[0]} stands still and takes no orders about its links")

    # State

    async def refresh(self) -> None:
        async with self._refreshing:
            asked = [node for node in self._cluster.nodes if node.is_ready and self._hears(node)]
            found = await asyncio.gather(*(asyncio.to_thread(self._observe, node) for node in asked))
            for node, state in zip(asked, found, strict=True):
                if state is not None:
                    self._observed[node.node_id] = state

    def _hears(self, node: ClusterNode) -> bool:
        return self.is_running(node.node_id) and node.node_id not in self._paused

    def _observe(self, node: ClusterNode) -> dict[str, Any] | None:
        try:
            return node.control({"do": "observe", "partitions": self._partitions})
        except BrokerGone:
            return None  # it ends at this moment

    def fenced(self) -> tuple[int, ...]:
        """Returns the brokers that the controller has fenced."""
        controller = self._controller()
        return () if controller is None else tuple(controller["fenced"])

    def active_controller(self) -> int:
        for node in self.nodes:
            if node not in self.brokers and self.is_running(node) and self._says_controller(node):
                return node
        return -1

    def _says_controller(self, node: int) -> bool:
        return node in self._observed and bool(self._observed[node]["is_controller"])

    def _controller(self) -> dict[str, Any] | None:
        """Returns the state as the active controller has it, or another one that runs."""
        running = [node for node in self.nodes if node not in self.brokers and self.is_running(node)]
        known = [node for node in running if node in self._observed]
        known.sort(key=self._says_controller, reverse=True)
        return self._observed[known[0]] if known else None

    def view(self, topic: str, partition: int) -> PartitionView:
        controller, place = self._controller(), self._place_of(topic, partition)
        state = None if controller is None else controller["partitions"][place]
        if state is None:
            return NOBODY
        return partition_view(state, [self._replica(broker, place) for broker in state["replicas"]])

    def _place_of(self, topic: str, partition: int) -> int:
        if (topic, partition) not in self._partitions:
            self._partitions.append((topic, partition))
            for node in self._cluster.nodes:
                if self._hears(node):
                    state = self._observe(node)
                    if state is not None:
                        self._observed[node.node_id] = state
        return self._partitions.index((topic, partition))

    def _replica(self, broker: int, place: int) -> ReplicaView:
        is_running = self.is_running(broker)
        states = self._observed.get(broker, {}).get("replicas", []) if is_running else []
        return replica_view(broker, is_running, states[place] if place < len(states) else None)

    # Clients

    def client_world(self, name: str) -> ClientWorld:
        return self._library.own_world(name, self._cut_ways_of(name))

    def producer(
        self,
        name: str,
        settings: Mapping[str, str],
        topic: str,
        partitions: int,
        on_result: Callable[[], None],
    ) -> ProducerDiary:
        return self._library.producer(name, settings, topic, partitions, on_result, self._cut_ways_of(name))

    def consumer(
        self,
        name: str,
        settings: Mapping[str, str],
        topic: str,
        on_change: Callable[[], None],
        work_seconds: float,
    ) -> ConsumerDiary:
        return self._library.consumer(name, settings, topic, on_change, work_seconds, self._cut_ways_of(name))

    def _cut_ways_of(self, client: str) -> list[tuple[ClusterNode, bool]]:
        """Returns the nodes to which this client's links are cut, each with whether it is the way to the client."""
        return [
            (self._cluster.node(source if isinstance(source, int) else int(target)), target == client)
            for source, target in self._cut
            if client in (source, target)
        ]


def _client_way(source: str | int, target: str | int) -> tuple[str, bool]:
    """Returns the client of a link, and whether the way leads to it."""
    return (target, True) if isinstance(target, str) else (str(source), False)
