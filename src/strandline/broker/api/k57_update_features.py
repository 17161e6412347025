"""UpdateFeatures (key 57), versions 0 to 2: raises or lowers the levels of features for the whole cluster (KIP-584).

The controller decides. Errors: INVALID_UPDATE_VERSION, NOT_CONTROLLER.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k57_update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = UpdateFeaturesRequest


async def handle(
    broker: Broker, context: RequestContext, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    response = await broker.decide(context, request)
    assert isinstance(response, UpdateFeaturesResponse)
    return response


refuse = refused_by_controller
