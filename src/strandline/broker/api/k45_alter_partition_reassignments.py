"""AlterPartitionReassignments (key 45), versions 0 and 1: moves partitions to other brokers (KIP-455).

The controller decides. Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR,
NO_REASSIGNMENT_IN_PROGRESS by partition; NOT_CONTROLLER.
"""

from __future__ import annotations

from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.wire.api.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)

REQUEST = AlterPartitionReassignmentsRequest

handle = decided_by_controller


refuse = refused_by_controller
