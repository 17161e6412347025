"""A cluster with partitions whose replicas are to move."""

from __future__ import annotations

from strandline.controller.image import PartitionState
from strandline.controller.reassignments import plan_alter_reassignments
from strandline.wire.api.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.unit.controller.plans import Cluster, topic


def cluster_of(brokers: int, *replicas: int, **settings: str) -> tuple[Cluster, PartitionState]:
    cluster = Cluster(*[None] * brokers, **settings)
    cluster.create(topic(assignments={0: replicas}))
    return cluster, cluster.image.topics["t"].partitions[0]


def reassign(cluster: Cluster, *replicas: int, other_factor: bool = True) -> int:
    """Gives the partition a target; without one the reassignment is cancelled."""
    target = ReassignablePartition(partition_index=0, replicas=replicas or None)
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name="t", partitions=(target,)),),
        allow_replication_factor_change=other_factor,
    )
    response = cluster.commit(plan_alter_reassignments(cluster.image, request, cluster.rules))
    return int(response.responses[0].partitions[0].error_code)
