"""PushTelemetry (key 72), version 0: metrics of a client in OpenTelemetry's format, for this node's page (KIP-714).

Errors: INVALID_REQUEST without an instance id or after the last push, THROTTLING_QUOTA_EXCEEDED,
UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE with and without compression, INVALID_RECORD
for bytes that are no metrics, or if the extra `telemetry` is not installed.
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k72_push_telemetry import PushTelemetryRequest, PushTelemetryResponse

REQUEST = PushTelemetryRequest


async def handle(
    services: Services, context: RequestContext, request: PushTelemetryRequest
) -> PushTelemetryResponse:
    await services.client_telemetry.push(
        context,
        request.client_instance_id,
        subscription_id=request.subscription_id,
        is_terminating=request.terminating,
        codec=request.compression_type,
        data=bytes(request.metrics),
    )
    return PushTelemetryResponse()


def refuse(_: PushTelemetryRequest, error: KafkaError) -> PushTelemetryResponse:
    return PushTelemetryResponse(error_code=error.code)
