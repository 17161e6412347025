"""Plans for brokers: registration, fencing, unfencing, controlled shutdown, unregistration.

A broker that is not fenced may lead. When it is fenced it leaves every in-sync set, and its partitions get other
leaders. When it comes back it is unfenced once it has caught up with the metadata, and rejoins each in-sync set once it
has caught up with the partition. A broker that comes back after an unclean shutdown may have lost what it had not
synced: first it is taken out of every in-sync set and every list of eligible leaders (KIP-966).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.controller.image import (
    NO_LEADER,
    UNASSIGNED,
    BrokerRegistration,
    ClusterImage,
    PartitionState,
    TopicState,
)
from strandline.controller.partitions import ONLINE, UNCLEAN, PartitionChange
from strandline.wire.api.k70_controller_registration import ControllerRegistrationRequest
from strandline.wire.records.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRules:
    """The part of the topics' configuration that elections need."""

    min_in_sync: Callable[[str], int]
    allows_unclean: Callable[[str], bool]
    uses_eligible: Callable[[], bool]


def plan_register(
    image: ClusterImage,
    registration: Registration,
    next_offset: int,
    rules: TopicRules,
    *,
    is_old_alive: bool = False,
) -> Planned[int]:
    """Plans a registration. The broker's epoch is the offset of the registration's record."""
    old = image.brokers.get(registration.broker_id)
    if old is not None and old.incarnation != registration.incarnation and is_old_alive:
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Another broker is registered with id {registration.broker_id}, and it is alive. Use another node.id.",
        )
    if old is not None and old.incarnation == registration.incarnation:
        return Planned(records=(), response=old.epoch)  # the response was lost
    records: list[Message] = [
        RegisterBrokerRecord(
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
    ]
    if old is not None:
        records += _come_back(image, registration, rules, old)
    return Planned(records=tuple(records), response=next_offset)


def _come_back(
    image: ClusterImage, registration: Registration, rules: TopicRules, old: BrokerRegistration
) -> list[PartitionChangeRecord]:
    """Returns the changes of partitions with a replica on a broker that registers again, perhaps with other disks."""
    broker_id, log_dirs = registration.broker_id, registration.log_dirs
    unclean = frozenset() if registration.was_clean_shutdown else frozenset({broker_id})
    has_no_old_disk = not set(old.log_dirs) & set(log_dirs)
    records = []
    for topic, index, partition in partitions_of(image, broker_id):
        record = without_replica(
            image,
            broker_id,
            (topic, index, partition),
            rules,
            unclean_shutdown=unclean,
            lost=unclean if has_no_old_disk else frozenset(),
            keep_alone=len(image.brokers) == 1,
        )
        if record is not None:
            records.append(record)
    return records


def only_directory(log_dirs: tuple[bytes, ...]) -> bytes:
    """Returns the only directory of a broker; UNASSIGNED if it has several, because then the broker chooses and reports
    one."""
    return log_dirs[0] if len(log_dirs) == 1 else UNASSIGNED


def without_replica(
    image: ClusterImage,
    broker_id: int,
    place: tuple[TopicState, int, PartitionState],
    rules: TopicRules,
    *,
    unclean_shutdown: frozenset[int] = frozenset(),
    lost: frozenset[int] = frozenset(),
    keep_alone: bool = False,
) -> PartitionChangeRecord | None:
    """Takes a broker out of the in-sync set of a partition, and elects another leader if the broker led it."""
    topic, index, partition = place
    if len(partition.replicas) == 1:
        # No other broker has the partition. After an unclean shutdown its leader epoch must still rise (KIP-320).
        record = PartitionChangeRecord(topic_id=topic.topic_id, partition_id=index)
        if partition.leader != broker_id or (keep_alone and not unclean_shutdown):
            return None
        record.leader = broker_id if keep_alone else NO_LEADER
        return record
    if broker_id not in (*partition.in_sync, *partition.eligible_leaders, *partition.last_known_leaders):
        return None
    return PartitionChange(
        topic_id=topic.topic_id,
        index=index,
        partition=partition,
        is_alive=candidates(image, partition, leaving=broker_id),
        min_in_sync=rules.min_in_sync(topic.name),
        uses_eligible=rules.uses_eligible(),
        election=UNCLEAN if rules.allows_unclean(topic.name) else ONLINE,
        in_sync=tuple(r for r in partition.in_sync if r != broker_id),
        unclean_shutdown=unclean_shutdown,
        lost=lost,
    ).record()


def _without(image: ClusterImage, broker_id: int, rules: TopicRules) -> list[PartitionChangeRecord]:
    """Takes a broker out of all its in-sync sets, and elects other leaders for the partitions that it led."""
    changes = [without_replica(image, broker_id, place, rules) for place in partitions_of(image, broker_id)]
    return [record for record in changes if record is not None]


def partitions_of(image: ClusterImage, broker_id: int) -> Iterable[tuple[TopicState, int, PartitionState]]:
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            if broker_id in partition.replicas:
                yield topic, index, partition


def is_active(image: ClusterImage, broker_id: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced and not broker.in_controlled_shutdown


def can_lead(image: ClusterImage, partition: PartitionState, broker_id: int) -> bool:
    """Returns True if the broker is active and the directory with its replica has not failed."""
    return is_active(image, broker_id) and image.brokers[broker_id].has_online(
        partition.directory_of(broker_id)
    )


def candidates(
    image: ClusterImage, partition: PartitionState, *, coming: int | None = None, leaving: int | None = None
) -> Callable[[int], bool]:
    """Returns a function that says who can lead a partition once one broker has come back, or another is gone."""

    def is_one(broker_id: int) -> bool:
        if broker_id == coming:
            return image.brokers[broker_id].has_online(partition.directory_of(broker_id))
        return broker_id != leaving and can_lead(image, partition, broker_id)

    return is_one


def plan_fence(image: ClusterImage, broker_id: int, rules: TopicRules) -> Planned[None]:
    broker = image.brokers.get(broker_id)
    if broker is None or broker.fenced:
        return Planned(records=(), response=None)
    record = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=1)
    return Planned(records=(record, *_without(image, broker_id, rules)), response=None)


def plan_unfence(image: ClusterImage, broker_id: int, rules: TopicRules) -> Planned[None]:
    """Plans the unfencing of a broker: it may lead again, and is elected for partitions without a leader if it is
    eligible."""
    broker = image.brokers[broker_id]
    if not broker.fenced:
        return Planned(records=(), response=None)
    records: list[Message] = [
        BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=-1)
    ]
    for topic, index, partition in partitions_of(image, broker_id):
        if partition.leader != NO_LEADER:
            continue
        record = PartitionChange(
            topic_id=topic.topic_id,
            index=index,
            partition=partition,
            is_alive=candidates(image, partition, coming=broker_id),
            min_in_sync=rules.min_in_sync(topic.name),
            uses_eligible=rules.uses_eligible(),
            election=UNCLEAN if rules.allows_unclean(topic.name) else ONLINE,
        ).record()
        if record is not None:
            records.append(record)
    return Planned(records=tuple(records), response=None)


def plan_controlled_shutdown(image: ClusterImage, broker_id: int, rules: TopicRules) -> Planned[bool]:
    """Moves leadership away from the broker; the response is True once it leads nothing that another broker could
    lead."""
    broker = image.brokers[broker_id]
    records: list[Message] = []
    if not broker.in_controlled_shutdown:
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=1
            )
        )
    for topic, index, partition in partitions_of(image, broker_id):
        if len(partition.replicas) == 1 or broker_id not in partition.in_sync:
            continue
        if partition.in_sync == (broker_id,):
            continue  # no other replica is in sync: the broker leads until it stops
        record = PartitionChange(
            topic_id=topic.topic_id,
            index=index,
            partition=partition,
            is_alive=candidates(image, partition, leaving=broker_id),
            min_in_sync=rules.min_in_sync(topic.name),
            uses_eligible=rules.uses_eligible(),
            in_sync=tuple(r for r in partition.in_sync if r != broker_id),
        ).record()
        if record is not None:
            records.append(record)
    return Planned(records=tuple(records), response=not records)


def plan_unregister(image: ClusterImage, broker_id: int, rules: TopicRules) -> Planned[None]:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker is registered with id {broker_id}.")
    record = UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch)
    return Planned(records=(*_without(image, broker_id, rules), record), response=None)


def check_epoch(image: ClusterImage, broker_id: int, epoch: int) -> BrokerRegistration:
    """Returns the broker; raises KafkaError unless the request has its present epoch."""
    broker = image.brokers.get(broker_id)
    if broker is None or broker.epoch != epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Broker {broker_id} has registered again: its epoch is no longer {epoch}.",
        )
    return broker


def plan_register_controller(image: ClusterImage, request: ControllerRegistrationRequest) -> Planned[None]:
    """Plans the registration of a controller (KIP-919): its endpoints and features, for clients that connect to
    controllers."""
    known = image.controllers.get(request.controller_id)
    if known is not None and known.incarnation_id == request.incarnation_id:
        return Planned(records=(), response=None)  # the response was lost
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        end_points=tuple(
            ControllerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in request.listeners
        ),
        features=tuple(
            ControllerFeature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in request.features
        ),
    )
    return Planned(records=(record,), response=None)
