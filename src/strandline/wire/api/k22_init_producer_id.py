"""InitProducerId (key 22), versions 0 to 6, flexible from 2."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, boolean, field, int16, int32, int64, string


class InitProducerIdRequest(Request, key=22, versions="0-6", flexible="2+"):
    transactional_id: str | None = field(string, nullable="0+")
    transaction_timeout_ms: int = field(int32)
    producer_id: int = field(int64, "3+", default=-1)
    producer_epoch: int = field(int16, "3+", default=-1)
    enable2_pc: bool = field(boolean, "6+", default=False)
    keep_prepared_txn: bool = field(boolean, "6+", default=False)


class InitProducerIdResponse(Response, key=22, versions="0-6", flexible="2+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    producer_id: int = field(int64, default=-1)
    producer_epoch: int = field(int16)
    ongoing_txn_producer_id: int = field(int64, "6+", default=-1)
    ongoing_txn_producer_epoch: int = field(int16, "6+", default=-1)
