"""UpdateFeatures (key 57), versions 0 to 2: raises or lowers the levels of features for the whole cluster (KIP-584).

The controller decides. Errors: INVALID_UPDATE_VERSION, NOT_CONTROLLER.
"""

from __future__ import annotations

from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.wire.api.k57_update_features import UpdateFeaturesRequest

REQUEST = UpdateFeaturesRequest

handle = decided_by_controller


refuse = refused_by_controller
