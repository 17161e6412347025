"""AddOffsetsToTxn (key 25), versions 0 to 4, flexible from 3."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, field, int16, int32, int64, string


class AddOffsetsToTxnRequest(Request, key=25, versions="0-4", flexible="3+"):
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    group_id: str = field(string)


class AddOffsetsToTxnResponse(Response, key=25, versions="0-4", flexible="3+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
