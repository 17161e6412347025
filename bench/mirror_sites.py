"""A site is lost in simulated time: one cluster over three sites, or a mirror between two clusters.

Hosts of two sites are a distance apart, hosts of one site are not. Applications write in both sites and read in the
east, with Kafka's default settings and acks=all. Then the east is cut off from everything, its applications end, and
those of the west go on. When the east is back, `verify` lists what had not arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from statistics import median
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.admin.topics import NewTopic
from strandline.client.consumer.consumer import Consumer
from strandline.client.errors import KafkaError
from strandline.client.producer.producer import Producer
from strandline.client.world import ClientWorld
from strandline.mirror.config.settings import mirror_settings
from strandline.mirror.mirror import Mirror
from strandline.mirror.operations.control import MirrorControl
from strandline.mirror.operations.failover import fail_over
from strandline.mirror.operations.verify import verify
from strandline.sim.clock import SimulatedClock
from strandline.sim.random import SimulatedRandom
from strandline.sim.workers import SimulatedWorkers
from strandline.sim.world import PORT, SimulatedNode, World

TOPIC: Final = "orders"
GROUP: Final = "billing"
RECORDS_A_SECOND: Final = 50
_LOAD_SECONDS: Final = 25.0
_WAIT_SECONDS_MAX: Final = 300.0

Figures = dict[str, float]


class Sites:
    """The hosts of the sites east, west and middle, with applications of their own in each."""

    def __init__(self, world: World, round_trip_ms: float) -> None:
        self.world = world
        self._seconds = round_trip_ms / 2000
        self._hosts: dict[str, list[str]] = {}
        self._clients = 0

    def add(self, site: str, *hosts: str) -> None:
        for other, far in self._hosts.items():
            if other != site:
                for one in hosts:
                    for each in far:
                        self.world.network.set_distance(one, each, self._seconds)
        self._hosts.setdefault(site, []).extend(hosts)

    def cut_off(self, site: str) -> None:
        others = [each for name, hosts in self._hosts.items() if name != site for each in hosts]
        self.world.network.partition(self._hosts[site], others)

    def client_world(self, site: str) -> ClientWorld:
        """Returns the world of an application on the site's host for applications."""
        self._clients += 1
        world, name = self.world, f"client {self._clients}"
        return ClientWorld(
            network=world.network.host(f"applications-{site}"),
            clock=SimulatedClock(world.loop),
            random=SimulatedRandom(world.generator(name)),
            workers=SimulatedWorkers(world.loop, world.generator(f"{name} workers")),
        )


class Writer:
    """An application that writes at a steady rate until it is ended; `acknowledged` has the time of each value."""

    def __init__(self, sites: Sites, site: str, bootstrap: str, topic: str = TOPIC) -> None:
        self._sites, self._site, self._bootstrap, self._topic = sites, site, bootstrap, topic
        self.sent: dict[bytes, float] = {}
        self.acknowledged: dict[bytes, float] = {}
        self._notes: list[asyncio.Task[None]] = []
        self._task = sites.world.start_task(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        settings = {"bootstrap.servers": self._bootstrap, "acks": "all"}
        async with Producer(settings, world=self._sites.client_world(self._site)) as producer:
            while True:
                value = b"%s %06d" % (self._site.encode(), len(self.sent))
                self.sent[value] = loop.time()
                promise = await producer.send(self._topic, value, partition=0)
                self._notes.append(loop.create_task(self._note(value, promise)))
                await asyncio.sleep(1 / RECORDS_A_SECOND)

    async def _note(self, value: bytes, promise: Awaitable[object]) -> None:
        with suppress(KafkaError, asyncio.CancelledError):
            await promise
            self.acknowledged[value] = asyncio.get_running_loop().time()

    async def end(self) -> None:
        await ended(self._task)

    def latency_ms(self) -> float:
        return 1000 * median(when - self.sent[value] for value, when in self.acknowledged.items())

    def acknowledged_after(self, when: float) -> list[float]:
        return sorted(each for each in self.acknowledged.values() if each > when)


class Reader:
    """An application that reads as a member of a group and commits after each poll; `read` has the times."""

    def __init__(
        self, sites: Sites, site: str, bootstrap: str, topics: list[str], group: str | None = GROUP
    ) -> None:
        self._settings = {
            "bootstrap.servers": bootstrap,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        self._sites, self._site, self._topics, self._group = sites, site, topics, group
        self.read: dict[bytes, float] = {}
        self._task = sites.world.start_task(self._run())

    async def _run(self) -> None:
        group = {"group.id": self._group} if self._group else {}
        world = self._sites.client_world(self._site)
        async with Consumer({**self._settings, **group}, world=world) as consumer:
            if self._group:
                consumer.subscribe(self._topics)
            else:
                consumer.assign([TopicPartition(each, 0) for each in self._topics])
                consumer.seek_to_beginning(*consumer.assignment())
            while True:
                for record in await consumer.poll(1.0):
                    self.read.setdefault(record.value, asyncio.get_running_loop().time())
                if self._group:
                    await consumer.commit()

    async def end(self) -> None:
        await ended(self._task)

    def latency_ms(self, sent: dict[bytes, float]) -> float:
        return 1000 * median(when - sent[value] for value, when in self.read.items() if value in sent)


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError, KafkaError):
        await task


async def until(condition: Callable[[], bool], what: str) -> None:
    deadline = asyncio.get_running_loop().time() + _WAIT_SECONDS_MAX
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, what
        await asyncio.sleep(0.01)


# One cluster over three sites


async def stretch(world: World, round_trip_ms: float) -> Figures:
    sites = Sites(world, round_trip_ms)
    nodes = world.add_cluster(3)
    for node, site in zip(nodes, ("east", "west", "middle"), strict=True):
        sites.add(site, node.host, f"applications-{site}")
    bootstrap = ",".join(f"{node.host}:{PORT}" for node in nodes)
    await world.start_all()
    async with Admin({"bootstrap.servers": bootstrap}, world=sites.client_world("east")) as admin:
        await admin.create_topics([NewTopic(TOPIC, assignment={0: (1, 2, 3)})])
    writer, reader = (
        Writer(sites, "east", bootstrap),
        Reader(sites, "east", bootstrap, [TOPIC]),
    )
    far = Reader(sites, "west", bootstrap, [TOPIC], group=None)
    await _load(world, reader)
    cut_at = await _lose_the_east(sites, writer, reader)
    survivor = Writer(sites, "west", bootstrap)
    moved = Reader(sites, "west", bootstrap, [TOPIC])
    await until(lambda: bool(survivor.acknowledged), "nobody can write")
    await until(lambda: any(value in survivor.sent for value in moved.read), "nobody can read")
    await until(lambda: any(value in survivor.sent for value in far.read), "nobody can read without a group")
    figures = {
        "acknowledged_ms": writer.latency_ms(),
        "far_ms": far.latency_ms(writer.sent),
        "write_wait_s": survivor.acknowledged_after(cut_at)[0] - cut_at,
        "read_wait_s": min(when for value, when in moved.read.items() if value in survivor.sent) - cut_at,
        "lost": len(writer.acknowledged.keys() - far.read.keys()),
        "read_again": len(reader.read.keys() & moved.read.keys()),
        "listed": 0,
    }
    for each in (survivor, moved, far):
        await each.end()
    return figures


# Two clusters


class TwoClusters:
    """A cluster of a node in each of two sites, and a mirror's process in the west for each flow."""

    def __init__(self, world: World, round_trip_ms: float, *, both_ways: bool) -> None:
        self.sites = Sites(world, round_trip_ms)
        self.east, self.west = (
            self._node(world, number, site) for number, site in ((1, "east"), (2, "west"))
        )
        self.settings = mirror_settings(
            {
                "clusters": "east,west",
                "east.bootstrap.servers": f"{self.east.host}:{PORT}",
                "west.bootstrap.servers": f"{self.west.host}:{PORT}",
                "east->west.enabled": "true",
                "west->east.enabled": str(both_ways).lower(),
                "topics": f".*{TOPIC}",
                "sync.group.offsets.enabled": "true",
                "refresh.topics.interval.seconds": "1",
            }
        )
        self.flow = self.settings.flow("east->west")
        self.mirror = Mirror(self.settings, "one", self.sites.client_world("west"))

    def _node(self, world: World, number: int, site: str) -> SimulatedNode:
        node = world.add_node(number)
        node.cluster_name = site
        self.sites.add(site, node.host, f"applications-{site}")
        return node

    def bootstrap(self, site: str) -> str:
        return f"{(self.east if site == 'east' else self.west).host}:{PORT}"

    async def create_topics(self, *sites: str) -> None:
        for site in sites:
            settings = {"bootstrap.servers": self.bootstrap(site)}
            async with Admin(settings, world=self.sites.client_world(site)) as admin:
                await admin.create_topic(TOPIC, partitions=1, replication_factor=1)


async def active_passive(world: World, round_trip_ms: float) -> Figures:
    return await _mirrored(world, round_trip_ms, both_ways=False)


async def active_active(world: World, round_trip_ms: float) -> Figures:
    return await _mirrored(world, round_trip_ms, both_ways=True)


async def _mirrored(world: World, round_trip_ms: float, *, both_ways: bool) -> Figures:
    two = TwoClusters(world, round_trip_ms, both_ways=both_ways)
    sites, copy = two.sites, f"east.{TOPIC}"
    await world.start_all()
    await two.create_topics("east", *(("west",) if both_ways else ()))
    mirroring = world.start_task(two.mirror.run())
    writer = Writer(sites, "east", two.bootstrap("east"))
    reader = Reader(sites, "east", two.bootstrap("east"), [TOPIC])
    far = Reader(sites, "west", two.bootstrap("west"), [copy], group=None)
    other = Writer(sites, "west", two.bootstrap("west")) if both_ways else None
    await until(lambda: bool(far.read), "nothing is copied")
    writer.sent.clear()  # those that were sent while topics and clients were made
    await _load(world, reader)
    cut_at = await _lose_the_east(sites, writer, reader)
    # Producers go to the other cluster as soon as somebody says so.
    survivor = other or Writer(sites, "west", two.bootstrap("west"), copy)
    async with MirrorControl(two.flow, sites.client_world("west")) as control:
        await fail_over(control, dry_run=False)
        failed_over_at = world.loop.time()
        moved = Reader(sites, "west", two.bootstrap("west"), [copy, TOPIC] if both_ways else [copy])
        await until(lambda: any(value in survivor.sent for value in moved.read), "nobody can read")
        read_at = min(when for value, when in moved.read.items() if value in survivor.sent)
        missing = {value for value in writer.acknowledged if value not in far.read}
        await ended(mirroring)
        world.network.heal()
        (found,) = [each for each in await verify(control, with_contents=True) if each.source.topic == TOPIC]
    assert missing <= {each.value for each in found.missing}, "verify does not list what is missing"
    assert not found.different_count, "a copy differs from its record"
    processed = set(reader.read)
    skipped = writer.acknowledged.keys() - missing - processed - moved.read.keys()
    assert not skipped, "the group that was moved has skipped records"
    figures = {
        "acknowledged_ms": writer.latency_ms(),
        "far_ms": far.latency_ms(writer.sent),
        "write_wait_s": survivor.acknowledged_after(cut_at)[0] - cut_at,
        "read_wait_s": read_at - cut_at,
        "failover_s": failed_over_at - cut_at,
        "lost": len(missing),
        "read_again": len(processed & moved.read.keys()),
        "listed": found.missing_count,
    }
    for each in (survivor, moved, far):
        await each.end()
    return figures


async def _load(world: World, reader: Reader) -> None:
    """Waits until the applications of the east have worked for a while; how long, the seed says."""
    await until(lambda: bool(reader.read), "nobody reads")
    await asyncio.sleep(_LOAD_SECONDS + 10 * world.generator("cut").random())


async def _lose_the_east(sites: Sites, writer: Writer, reader: Reader) -> float:
    """Cuts the site off and ends its applications; returns the time."""
    sites.cut_off("east")
    cut_at = sites.world.loop.time()
    # They hear of nothing any more, and nobody hears of them: a farewell does not arrive.
    sites.world.start_task(writer.end())
    sites.world.start_task(reader.end())
    return cut_at


PATTERNS: Final[dict[str, Callable[[World, float], Any]]] = {
    "stretch cluster": stretch,
    "active-passive": active_passive,
    "active-active": active_active,
}


def measured(pattern: str, round_trip_ms: float, seed: int) -> Figures:
    """Returns the figures of one run."""
    with World(seed) as world:
        figures: Figures = world.run(PATTERNS[pattern](world, round_trip_ms))
    return figures
