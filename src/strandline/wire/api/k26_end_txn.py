"""EndTxn (key 26), versions 0 to 5, flexible from 3."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, boolean, field, int16, int32, int64, string


class EndTxnRequest(Request, key=26, versions="0-5", flexible="3+"):
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    committed: bool = field(boolean)


class EndTxnResponse(Response, key=26, versions="0-5", flexible="3+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    producer_id: int = field(int64, "5+", default=-1, ignorable=True)
    producer_epoch: int = field(int16, "5+", default=-1, ignorable=True)
