"""AssignReplicasToDirs (key 73), version 0: a broker reports in which of its directories a replica is (KIP-858).

This API is for controllers only. Errors: STALE_BROKER_EPOCH, NOT_CONTROLLER; by partition UNKNOWN_TOPIC_ID,
UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER for a partition without a replica on the broker.
"""

from __future__ import annotations

from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.wire.api.k73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
)

REQUEST = AssignReplicasToDirsRequest

handle = decided_by_controller


refuse = refused_by_controller
