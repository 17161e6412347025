"""BrokerHeartbeat (key 63), versions 0 to 2: a broker is alive, requests to be fenced, or is about to stop.

This API is for controllers only. Errors: NOT_CONTROLLER, STALE_BROKER_EPOCH.
"""

from __future__ import annotations

from strandline.broker.api.controller_forwarding import decided_for_broker
from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.wire.api.k63_broker_heartbeat import BrokerHeartbeatRequest

REQUEST = BrokerHeartbeatRequest

handle = decided_for_broker


refuse = refused_by_controller
