"""ElectLeaders (key 43), versions 0 to 2: elects preferred leaders, or any replica if none is in sync.

The controller decides. Errors: UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE,
ELIGIBLE_LEADERS_NOT_AVAILABLE by partition; INVALID_REQUEST, NOT_CONTROLLER.
"""

from __future__ import annotations

from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.wire.api.k43_elect_leaders import ElectLeadersRequest

REQUEST = ElectLeadersRequest

handle = decided_by_controller


refuse = refused_by_controller
