"""GetTelemetrySubscriptions (key 71), version 0: the metrics that a client shall push, and how often (KIP-714).

It is announced as long as there is a client metrics subscription and the extra `telemetry` is installed. Errors:
THROTTLING_QUOTA_EXCEEDED for a client that sends it again before its interval is over, INVALID_REQUEST. Differs from
Kafka: counters are requested as totals, not as differences (ADR 46).
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.broker.telemetry.clients.instances import COMPRESSION_TYPES
from strandline.wire.api.k71_get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

REQUEST = GetTelemetrySubscriptionsRequest


def handle(
    services: Services, context: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    try:
        instance = services.client_telemetry.ask(context, request.client_instance_id)
    except KafkaError as error:
        return GetTelemetrySubscriptionsResponse(error_code=error.code)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.instance_id,
        subscription_id=instance.requested.subscription_id,
        accepted_compression_types=COMPRESSION_TYPES,
        push_interval_ms=instance.requested.interval_ms,
        telemetry_max_bytes=services.node.config.int("telemetry.max.bytes"),
        delta_temporality=False,
        requested_metrics=instance.requested.metrics,
    )
