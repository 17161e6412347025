"""AlterPartition (key 56), version 2 and 3: the leader of a partition asks for another in-sync set (KIP-497).

For controllers only. Errors: NOT_CONTROLLER, STALE_BROKER_EPOCH; by partition FENCED_LEADER_EPOCH,
INVALID_UPDATE_VERSION, INELIGIBLE_REPLICA, INVALID_REQUEST, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, and
NEW_LEADER_ELECTED where the change ends a reassignment that takes the leader away.
"""

from __future__ import annotations

from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.wire.api.k56_alter_partition import AlterPartitionRequest

REQUEST = AlterPartitionRequest

handle = decided_by_controller


refuse = refused_by_controller
