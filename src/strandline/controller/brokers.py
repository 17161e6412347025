"""Plans for brokers: register and unfence.

A broker that comes back after an unclean end may have lost what it had not synced, so offsets it handed out can be
handed out again: the partitions it leads get a new leader epoch, by which clients and followers see that (KIP-320).
"""

from __future__ import annotations

from dataclasses import dataclass

from strandline.controller.image import ClusterImage
from strandline.controller.plans import Planned
from strandline.wire.records.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from strandline.wire.schema import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    broker_id: int
    incarnation: bytes
    endpoints: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: str | None
    log_dirs: tuple[bytes, ...]
    was_clean_shutdown: bool


def plan_register(image: ClusterImage, registration: Registration, next_offset: int) -> Planned[int]:
    """The broker's epoch is the offset of its registration's record."""
    record = RegisterBrokerRecord(
        broker_id=registration.broker_id,
        incarnation_id=registration.incarnation,
        broker_epoch=next_offset,
        end_points=registration.endpoints,
        features=registration.features,
        rack=registration.rack,
        fenced=True,
        in_controlled_shutdown=False,
        log_dirs=registration.log_dirs,
    )
    records: list[Message] = [record]
    if not registration.was_clean_shutdown:
        records += _bump_leader_epochs(image, registration.broker_id)
    return Planned(records=tuple(records), response=next_offset)


def _bump_leader_epochs(image: ClusterImage, broker_id: int) -> list[Message]:
    return [
        PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=broker_id)
        for topic in image.topics.values()
        for index, partition in topic.partitions.items()
        if partition.leader == broker_id
    ]


def plan_unfence(image: ClusterImage, broker_id: int) -> Planned[None]:
    broker = image.brokers[broker_id]
    record = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=-1)
    return Planned(records=(record,), response=None)
