"""AddPartitionsToTxn (key 24), versions 0 to 5, flexible from 3."""

from __future__ import annotations

from strandline.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    field,
    int16,
    int32,
    int64,
    string,
)


class AddPartitionsToTxnTopic(Struct):
    name: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = field(string, "4+", default="")
    producer_id: int = field(int64, "4+", default=0)
    producer_epoch: int = field(int16, "4+", default=0)
    verify_only: bool = field(boolean, "4+", default=False)
    topics: tuple[AddPartitionsToTxnTopic, ...] = field(array(AddPartitionsToTxnTopic), "4+", default=())


class AddPartitionsToTxnRequest(Request, key=24, versions="0-5", flexible="3+"):
    transactions: tuple[AddPartitionsToTxnTransaction, ...] = field(
        array(AddPartitionsToTxnTransaction), "4+", default=()
    )
    v3_and_below_transactional_id: str = field(string, "0-3", default="")
    v3_and_below_producer_id: int = field(int64, "0-3", default=0)
    v3_and_below_producer_epoch: int = field(int16, "0-3", default=0)
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = field(
        array(AddPartitionsToTxnTopic), "0-3", default=()
    )


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = field(int32)
    partition_error_code: int = field(int16)


class AddPartitionsToTxnTopicResult(Struct):
    name: str = field(string)
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = field(
        array(AddPartitionsToTxnPartitionResult)
    )


class AddPartitionsToTxnResult(Struct):
    transactional_id: str = field(string, "4+", default="")
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = field(
        array(AddPartitionsToTxnTopicResult), "4+", default=()
    )


class AddPartitionsToTxnResponse(Response, key=24, versions="0-5", flexible="3+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, "4+", default=0, ignorable=True)
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = field(
        array(AddPartitionsToTxnResult), "4+", default=()
    )
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = field(
        array(AddPartitionsToTxnTopicResult), "0-3", default=()
    )
