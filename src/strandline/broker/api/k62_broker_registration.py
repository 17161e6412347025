"""BrokerRegistration (key 62), versions 0 to 4: a broker joins the cluster, or comes back to it.

This API is for controllers only. Errors: NOT_CONTROLLER, INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION while
another process with the same id is alive.
"""

from __future__ import annotations

from strandline.broker.api.controller_forwarding import decided_for_broker
from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.wire.api.k62_broker_registration import BrokerRegistrationRequest

REQUEST = BrokerRegistrationRequest

handle = decided_for_broker


refuse = refused_by_controller
