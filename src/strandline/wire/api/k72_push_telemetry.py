"""PushTelemetry (key 72), versions 0, flexible from 0."""

from __future__ import annotations

from strandline.base.buffers import Buffer
from strandline.wire.schema import Request, Response, boolean, bytes_, field, int8, int16, int32, uuid


class PushTelemetryRequest(Request, key=72, versions="0", flexible="0+"):
    client_instance_id: bytes = field(uuid)
    subscription_id: int = field(int32)
    terminating: bool = field(boolean)
    compression_type: int = field(int8)
    metrics: Buffer = field(bytes_)


class PushTelemetryResponse(Response, key=72, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32, default=0)
    error_code: int = field(int16, default=0)
