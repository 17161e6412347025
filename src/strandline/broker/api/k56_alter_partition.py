"""AlterPartition (key 56), versions 2 and 3: the leader of a partition requests another in-sync set (KIP-497).

This API is for controllers only. Errors: NOT_CONTROLLER, STALE_BROKER_EPOCH; by partition FENCED_LEADER_EPOCH,
INVALID_UPDATE_VERSION, INELIGIBLE_REPLICA, INVALID_REQUEST, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, and
NEW_LEADER_ELECTED if the change completes a reassignment that removes the leader.
"""

from __future__ import annotations

from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.wire.api.k56_alter_partition import AlterPartitionRequest

REQUEST = AlterPartitionRequest

handle = decided_by_controller


refuse = refused_by_controller
