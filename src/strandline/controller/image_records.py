"""The records that make up an image: the contents of a snapshot of the metadata log."""

from __future__ import annotations

from strandline.controller.image import ClusterImage, PartitionState
from strandline.wire.records.framing import ForeignRecord
from strandline.wire.records.metadata import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    QuotaEntity,
    RegisterBrokerRecord,
    TopicRecord,
)
from strandline.wire.schema import Message


def records_of(image: ClusterImage) -> list[Message]:
    records: list[Message] = [
        FeatureLevelRecord(name=name, feature_level=level) for name, level in sorted(image.features.items())
    ]
    records += image.controllers.values()
    for broker in image.brokers.values():
        records.append(
            RegisterBrokerRecord(
                broker_id=broker.node_id,
                incarnation_id=broker.incarnation,
                broker_epoch=broker.epoch,
                end_points=broker.endpoints,
                features=broker.features,
                rack=broker.rack,
                fenced=broker.fenced,
                in_controlled_shutdown=broker.in_controlled_shutdown,
                log_dirs=broker.log_dirs,
            )
        )
    for topic in image.topics.values():
        records.append(TopicRecord(name=topic.name, topic_id=topic.topic_id))
        records += [_partition(topic.topic_id, index, state) for index, state in topic.partitions.items()]
    for (kind, name), overrides in image.configs.items():
        records += [
            ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
            for key, value in overrides.items()
        ]
    if image.next_producer_id:
        records.append(
            ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
        )
    records += image.scram_credentials.values()
    records += image.delegation_tokens.values()
    records += image.acls.values()
    for entity, quotas in image.client_quotas.items():
        named = tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity)
        records += [
            ClientQuotaRecord(entity=named, key=key, value=value, remove=False)
            for key, value in quotas.items()
        ]
    records += [ForeignRecord(value=value) for value in image.foreign]
    return records


def _partition(topic_id: bytes, index: int, state: PartitionState) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=state.replicas,
        isr=state.in_sync,
        removing_replicas=state.removing,
        adding_replicas=state.adding,
        leader=state.leader,
        leader_recovery_state=state.recovery_state,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        directories=state.directories,
        eligible_leader_replicas=state.eligible_leaders or None,
        last_known_elr=state.last_known_leaders or None,
    )
