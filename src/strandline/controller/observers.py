"""Observers: brokers that copy a topic and are never in its in-sync sets.

The topic's setting `strandline.observers` names them, by node id or by rack. An observer is never assigned as a
replica, so it is never in sync, never elected, and counts in no minimum: it pulls from the leader like a follower and
serves consumers that are near it. A broker with a replica of a partition is no observer of it, even if the setting
names it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.controller.image import TOPIC_RESOURCE, BrokerRegistration, ClusterImage, PartitionState

OBSERVERS: Final = "strandline.observers"


def named_observers(image: ClusterImage, topic: str) -> frozenset[int]:
    """Returns the brokers that the topic's setting names, whether or not they have replicas."""
    text = image.configs.get((TOPIC_RESOURCE, topic), {}).get(OBSERVERS)
    return frozenset() if not text else brokers_named(image, text)


def brokers_named(image: ClusterImage, text: str) -> frozenset[int]:
    names = {name.strip() for name in text.split(",")} - {""}
    return frozenset(
        broker.node_id
        for broker in image.brokers.values()
        if str(broker.node_id) in names or (broker.rack is not None and broker.rack in names)
    )


def observers_of(image: ClusterImage, topic: str, partition: PartitionState) -> frozenset[int]:
    return named_observers(image, topic) - set(partition.replicas)


def without_observers(
    brokers: Iterable[BrokerRegistration], observers: frozenset[int]
) -> list[BrokerRegistration]:
    """Returns the brokers that may have replicas."""
    return [broker for broker in brokers if broker.node_id not in observers]


def check_observers(image: ClusterImage, topic: str, text: str) -> None:
    """Checks that no named broker has a replica already: it would leave the in-sync set without a reassignment."""
    known = image.topics.get(topic)
    names = {name.strip() for name in text.split(",")}
    for index, partition in () if known is None else known.partitions.items():
        both = sorted(replica for replica in partition.replicas if str(replica) in names)
        if both:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Broker {both[0]} holds a replica of {topic}-{index}: reassign it before it becomes an observer.",
            )
