"""ApiVersions (key 18), versions 0 to 4: the APIs, versions and features of this node.

An unknown version gets a response in version 0 with UNSUPPORTED_VERSION and the range of this API (KIP-511). Names of
client software that break KIP-511's pattern get INVALID_REQUEST. Produce is announced from version 0, as by Kafka,
because librdkafka would otherwise switch compression off; versions 0 to 2 are refused. The APIs of client telemetry are
announced while a subscription exists (ADR 46). Features whose lowest level is 0 are announced from version 4 on,
because older clients fail on them (KAFKA-17492).
"""

from __future__ import annotations

import re
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.broker.api.services import Services
from strandline.broker.api.table import API_VERSIONS, TABLE, TELEMETRY
from strandline.broker.server.pending_response import Handled
from strandline.broker.server.request_context import RequestContext
from strandline.controller.features import KRAFT_VERSION_FEATURE, SUPPORTED_FEATURES
from strandline.wire.api.k18_api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from strandline.wire.codec import encode

REQUEST = ApiVersionsRequest

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_PRODUCE: Final = 0
_TELLS_LEVEL_0_FROM: Final = 4


def handle(services: Services, context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if context.api_version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not _SOFTWARE.fullmatch(name) or not _SOFTWARE.fullmatch(version):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
        context.connection.software = (name, version)
    is_telemetry_announced = services.client_telemetry.is_announced
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=tuple(
            ApiVersion(
                api_key=api.key,
                min_version=0 if api.key == _PRODUCE else api.version_min,
                max_version=api.version_max,
            )
            for api in TABLE.values()
            if api.is_served_on(controller_listener=context.connection.is_controller_listener)
            and (is_telemetry_announced or api.key not in TELEMETRY)
        ),
        supported_features=tuple(
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
            if low > 0 or context.api_version >= _TELLS_LEVEL_0_FROM
        ),
        finalized_features_epoch=services.quorum.applied_offset - 1,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(_finalized_features(services).items())
        ),
    )


def _finalized_features(services: Services) -> dict[str, int]:
    """Returns the levels that the whole cluster uses; kraft.version is among them once it is more than 0, as in
    Kafka."""
    level = services.quorum.kraft_version
    return services.image.features | ({KRAFT_VERSION_FEATURE: level} if level else {})


def respond_to_unknown_version(_: Services, context: RequestContext) -> Handled:
    """Responds with the versions of this API in version 0, which every client can read (KIP-511)."""
    context.api_version = 0
    api = TABLE[API_VERSIONS]
    response = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=(ApiVersion(api_key=api.key, min_version=api.version_min, max_version=api.version_max),),
    )
    return (encode(response, 0),)
