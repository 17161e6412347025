"""The client libraries that a scenario on real processes can use, and how the links of their clients are cut.

Strandline's own clients run in this process, each on a network of its own whose links are cut there. Those of other
libraries are processes of their own; their links are cut at the brokers, by the client's id.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from strandline.client.world import ClientWorld
from strandline.lab.clients import LabConsumer, LabProducer
from strandline.lab.diaries import ConsumerDiary, ProducerDiary
from strandline.lab.run import OWN_CLIENT
from strandline.node.client_world import client_world
from strandline.node.faults.links import CutLinks
from strandline.node.network import TcpNetwork
from strandline.testing.clusters import ClusterNode

Ways = Sequence[tuple[ClusterNode, bool]]  # nodes, each with whether the way to the client is meant


class ClientLibrary(ABC):
    name: str

    def __init__(self) -> None:
        self._worlds: list[ClientWorld] = []
        self._links: dict[str, list[CutLinks]] = {}

    def own_world(self, name: str, cut: Ways) -> ClientWorld:
        """Returns the world of a client of Strandline's own, which administers, judges, or plays."""
        world = client_world()
        self._worlds.append(world)
        assert isinstance(world.network, TcpNetwork)
        links = CutLinks([world.network])
        self._links.setdefault(name, []).append(links)
        for node, is_to_client in cut:
            _cut(links, node, is_to_client)
        return world

    @abstractmethod
    def producer(
        self,
        name: str,
        settings: Mapping[str, str],
        topic: str,
        partitions: int,
        on_result: Callable[[], None],
        cut: Ways,
    ) -> ProducerDiary: ...

    @abstractmethod
    def consumer(
        self,
        name: str,
        settings: Mapping[str, str],
        topic: str,
        on_change: Callable[[], None],
        work_seconds: float,
        cut: Ways,
    ) -> ConsumerDiary: ...

    def cut(self, node: ClusterNode, client: str, is_to_client: bool) -> None:
        """Cuts one way between a node and a client."""
        for links in self._links.get(client, ()):
            _cut(links, node, is_to_client)

    def heal(self, node: ClusterNode, client: str, is_to_client: bool) -> None:
        for links in self._links.get(client, ()):
            links.heal()

    async def close(self) -> None:
        for world in self._worlds:
            world.close()


class Strandline(ClientLibrary):
    name = OWN_CLIENT

    def producer(
        self,
        name: str,
        settings: Mapping[str, str],
        topic: str,
        partitions: int,
        on_result: Callable[[], None],
        cut: Ways,
    ) -> ProducerDiary:
        return LabProducer(name, settings, self.own_world(name, cut), topic, partitions, on_result)

    def consumer(
        self,
        name: str,
        settings: Mapping[str, str],
        topic: str,
        on_change: Callable[[], None],
        work_seconds: float,
        cut: Ways,
    ) -> ConsumerDiary:
        return LabConsumer(name, settings, self.own_world(name, cut), topic, on_change, work_seconds)


def _cut(links: CutLinks, node: ClusterNode, is_to_client: bool) -> None:
    if not node.bootstrap:
        return  # of a controller, with which no client talks
    host, _, port = node.bootstrap.rpartition(":")
    links.cut([(host, int(port))], outbound=not is_to_client, inbound=is_to_client)
