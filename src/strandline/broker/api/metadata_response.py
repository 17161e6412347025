"""Parts of responses that several APIs have in common: brokers and partitions for clients of a listener."""

from __future__ import annotations

from typing import Final

from strandline.base.acls import OPERATIONS_OF, AclResource
from strandline.base.errors import ErrorCode
from strandline.base.topics import INTERNAL_TOPICS
from strandline.broker.api.services import Services
from strandline.controller.image import NO_LEADER, ClusterImage, PartitionState, TopicState
from strandline.wire.api.k03_metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

# Every operation on the cluster, as bits; a broker without an authorizer allows all of them.
CLUSTER_OPERATIONS: Final = OPERATIONS_OF[AclResource.CLUSTER]
NOT_REQUESTED: Final = -(1 << 31)


def brokers_seen_by(services: Services, listener: str) -> tuple[MetadataResponseBroker, ...]:
    found = []
    for state in services.suspected_brokers.listed_brokers():
        endpoint = state.endpoint(listener)
        if endpoint is not None:
            found.append(
                MetadataResponseBroker(
                    node_id=state.node_id, host=endpoint.host, port=endpoint.port, rack=state.rack
                )
            )
    return tuple(found)


def any_live_broker_id(image: ClusterImage) -> int:
    """Returns the broker that responses name as the controller; any broker can forward the requests that clients send
    to it."""
    live = image.live_brokers()
    return live[0].node_id if live else -1


def offline_replicas(image: ClusterImage, partition: PartitionState) -> tuple[int, ...]:
    brokers = image.brokers
    return tuple(n for n in partition.replicas if n not in brokers or brokers[n].fenced)


def topic_response(image: ClusterImage, topic: TopicState, operations: int) -> MetadataResponseTopic:
    partitions = []
    for index, state in sorted(topic.partitions.items()):
        partitions.append(
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if state.leader != NO_LEADER else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=state.leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=state.replicas,
                isr_nodes=state.in_sync,
                offline_replicas=offline_replicas(image, state),
            )
        )
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(partitions),
        topic_authorized_operations=operations,
    )
