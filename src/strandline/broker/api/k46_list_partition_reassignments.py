"""ListPartitionReassignments (key 46), version 0: the reassignments that are not complete yet.

The controller decides. Errors: NOT_CONTROLLER.
"""

from __future__ import annotations

from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.wire.api.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)

REQUEST = ListPartitionReassignmentsRequest

handle = decided_by_controller


refuse = refused_by_controller
