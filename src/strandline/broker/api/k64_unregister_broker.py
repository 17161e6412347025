"""UnregisterBroker (key 64), version 0: removes the registration of a broker that will not come back.

Errors: BROKER_ID_NOT_REGISTERED, NOT_CONTROLLER.
"""

from __future__ import annotations

from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.wire.api.k64_unregister_broker import UnregisterBrokerRequest

REQUEST = UnregisterBrokerRequest

handle = decided_by_controller


refuse = refused_by_controller
