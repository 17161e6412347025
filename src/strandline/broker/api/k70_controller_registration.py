"""ControllerRegistration (key 70), version 0: a controller registers its endpoints and features (KIP-919).

This API is for controllers only. Errors: NOT_CONTROLLER.
"""

from __future__ import annotations

from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.wire.api.k70_controller_registration import (
    ControllerRegistrationRequest,
)

REQUEST = ControllerRegistrationRequest

handle = decided_by_controller


refuse = refused_by_controller
