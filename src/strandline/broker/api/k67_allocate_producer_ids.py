"""AllocateProducerIds (key 67), version 0: a broker requests a block of producer ids.

Errors: NOT_CONTROLLER.
"""

from __future__ import annotations

from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.wire.api.k67_allocate_producer_ids import (
    AllocateProducerIdsRequest,
)

REQUEST = AllocateProducerIdsRequest

handle = decided_by_controller


refuse = refused_by_controller
