"""GetTelemetrySubscriptions (key 71), versions 0, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import (
    ZERO_UUID,
    Request,
    Response,
    array,
    boolean,
    field,
    int8,
    int16,
    int32,
    string,
    uuid,
)


class GetTelemetrySubscriptionsRequest(Request, key=71, versions="0", flexible="0+"):
    client_instance_id: bytes = field(uuid)


class GetTelemetrySubscriptionsResponse(Response, key=71, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32, default=0)
    error_code: int = field(int16, default=0)
    client_instance_id: bytes = field(uuid, default=ZERO_UUID)
    subscription_id: int = field(int32, default=0)
    accepted_compression_types: tuple[int, ...] = field(array(int8), default=())
    push_interval_ms: int = field(int32, default=0)
    telemetry_max_bytes: int = field(int32, default=0)
    delta_temporality: bool = field(boolean, default=False)
    requested_metrics: tuple[str, ...] = field(array(string), default=())
