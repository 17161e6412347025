"""The state of partitions as one node has it: by its image of the metadata, and by its own replica."""

from __future__ import annotations

from typing import Any

from strandline.broker.broker import Broker


def leads_quorum(broker: Broker) -> bool:
    """Returns True if this node is the active controller."""
    quorum = getattr(broker, "quorum", None)  # there is none while the node starts
    return quorum is not None and bool(quorum.is_leader)


def fenced_brokers(broker: Broker) -> list[int]:
    """Returns the brokers that the controller has fenced, by this node's image."""
    return sorted(each.node_id for each in broker.image.brokers.values() if each.fenced)


def partition_state(broker: Broker, topic: str, index: int) -> dict[str, Any] | None:
    """Returns leader, epoch, ISR, ELR and replicas by this node's image, or None if the image has no such partition."""
    known = broker.image.topics.get(topic)
    state = None if known is None else known.partitions.get(index)
    if state is None:
        return None
    return {
        "leader": state.leader,
        "epoch": state.leader_epoch,
        "isr": sorted(state.in_sync),
        "elr": sorted(state.eligible_leaders),
        "replicas": sorted(state.replicas),
    }


def replica_state(broker: Broker, topic: str, index: int) -> dict[str, Any] | None:
    """Returns role, epoch, log end offset, high watermark and last stable offset of this node's replica, or None if it
    has none."""
    replicas = getattr(broker, "replicas", None)  # a controller has none
    replica = None if replicas is None else replicas.get(topic, index)
    if replica is None:
        return None
    return {
        "role": "leader" if replica.is_leader else "follower",
        "epoch": replica.epoch,
        "leo": replica.log.log_end_offset,
        "hw": replica.high_watermark,
        "lso": replica.last_stable_offset(),
    }


def observe(broker: Broker, partitions: list[tuple[str, int]]) -> dict[str, Any]:
    """Returns all of the above for these partitions, as plain values."""
    return {
        "is_controller": leads_quorum(broker),
        "fenced": fenced_brokers(broker),
        "partitions": [partition_state(broker, topic, index) for topic, index in partitions],
        "replicas": [replica_state(broker, topic, index) for topic, index in partitions],
    }
