"""ListTransactions (key 66), versions 0 to 2, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int16, int32, int64, string


class ListTransactionsRequest(Request, key=66, versions="0-2", flexible="0+"):
    state_filters: tuple[str, ...] = field(array(string))
    producer_id_filters: tuple[int, ...] = field(array(int64))
    duration_filter: int = field(int64, "1+", default=-1)
    transactional_id_pattern: str | None = field(string, "2+", nullable="2+", default=None)


class TransactionState(Struct):
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    transaction_state: str = field(string)


class ListTransactionsResponse(Response, key=66, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    unknown_state_filters: tuple[str, ...] = field(array(string))
    transaction_states: tuple[TransactionState, ...] = field(array(TransactionState))
