"""DescribeTransactions (key 65), version 0, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int16, int32, int64, string


class DescribeTransactionsRequest(Request, key=65, versions="0", flexible="0+"):
    transactional_ids: tuple[str, ...] = field(array(string))


class TopicData(Struct):
    topic: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


class TransactionState(Struct):
    error_code: int = field(int16)
    transactional_id: str = field(string)
    transaction_state: str = field(string)
    transaction_timeout_ms: int = field(int32)
    transaction_start_time_ms: int = field(int64)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    topics: tuple[TopicData, ...] = field(array(TopicData))


class DescribeTransactionsResponse(Response, key=65, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    transaction_states: tuple[TransactionState, ...] = field(array(TransactionState))
