"""A cluster under load, one of whose disks fails."""

from __future__ import annotations

from strandline.sim.world import SimulatedNode, World
from tests.sim import cluster
from tests.sim.load import Load


def is_said_offline(node: SimulatedNode, directory: str) -> bool:
    return any("log directory offline" in line and f"directory={directory}" in line for line in node.said)


async def cluster_with_load(world: World) -> tuple[list[SimulatedNode], Load]:
    """Three nodes with three directories. The metadata log is apart: a node whose metadata cannot be written ends."""
    nodes = world.add_cluster(3, settings={"log.dirs": "/data,/one,/two", "metadata.log.dir": "/data"})
    await world.start_all()
    load = Load(world, None, "t", partitions=6)
    await load.create()
    return nodes, load


async def begin(load: Load, nodes: list[SimulatedNode]) -> None:
    """Starts the load, and returns when the controller knows the directory of each replica."""
    load.start()
    await cluster.until(lambda: all(are_all_assigned(node) for node in nodes))


def are_all_assigned(node: SimulatedNode) -> bool:
    topics = node.broker.image.topics
    return "t" in topics and all(
        bytes(16) not in p.directories for topic in topics.values() for p in topic.partitions.values()
    )


def led(node: SimulatedNode, directory: str, topic: str = "t") -> list[int]:
    """Partitions of a topic that a node leads from a directory."""
    replicas = node.broker.replicas
    found = [replicas.get(topic, index) for index in range(6)]
    return [
        replica.partition.partition
        for replica in found
        if replica is not None and replica.is_leader and replica.directory.path == directory
    ]
