"""The copies of a partition: equal on every replica once all are in sync, and each leader's books are right."""

from __future__ import annotations

from strandline.sim.history import Violation
from strandline.sim.world import DATA, SimulatedNode, World
from strandline.storage import names


def are_in_sync(world: World, topics: list[str] | None = None) -> bool:
    """Returns True if every replica of these topics, or of all, is in sync by the image of every node, and no broker
    has started again since."""
    for node in world.nodes.values():
        if any(not _knows(node, other) for other in world.nodes.values() if other.broker.config.is_broker):
            return False
        for topic in node.broker.image.topics if topics is None else topics:
            found = node.broker.image.topics.get(topic)
            if found is None or any(
                len(state.in_sync) < len(state.replicas) for state in found.partitions.values()
            ):
                return False
    return True


def _knows(node: SimulatedNode, other: SimulatedNode) -> bool:
    known = node.broker.image.brokers.get(other.node_id)
    lifecycle = getattr(other.broker, "lifecycle", None)  # there is none before it has read its disks
    return known is not None and not known.fenced and lifecycle is not None and known.epoch == lifecycle.epoch


def difference(world: World, topics: list[str]) -> str | None:
    """Returns a description of a partition whose copies differ, or None if there is none."""
    nodes = list(world.nodes.values())
    for topic in topics:
        for index, state in sorted(nodes[0].broker.image.topics[topic].partitions.items()):
            copies = {
                node.node_id: log_of(node, f"{DATA}/{topic}-{index}")
                for node in nodes
                if node.node_id in state.replicas
            }
            if len(set(copies.values())) > 1:
                sizes = {node_id: len(copy) for node_id, copy in copies.items()}
                return f"{topic}-{index}: {sizes} bytes"
    return None


def log_of(node: SimulatedNode, directory: str) -> bytes:
    """Returns the bytes of all segments together: each replica rolls its segments at places of its own."""
    found = sorted(name for name in node.disk.names(directory) if name.endswith(names.LOG))
    return b"".join(bytes(node.disk.read(f"{directory}/{name}")) for name in found)


def check(world: World, topics: list[str]) -> None:
    found = difference(world, topics)
    if found is not None:
        raise Violation("copies-differ", found)
    for node in world.nodes.values():
        for replica in node.broker.replicas.all_open():
            if replica.is_leader:
                replica.leader.check_invariants()
