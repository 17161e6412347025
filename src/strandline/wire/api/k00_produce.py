"""Produce (key 0), versions 3 to 13, flexible from 9."""

from __future__ import annotations

from strandline.base.buffers import Buffer
from strandline.wire.schema import (
    ZERO_UUID,
    Request,
    Response,
    Struct,
    array,
    field,
    int16,
    int32,
    int64,
    record_bytes,
    string,
    struct,
    uuid,
)


class PartitionProduceData(Struct):
    index: int = field(int32)
    records: Buffer | None = field(record_bytes, nullable="0+")


class TopicProduceData(Struct):
    name: str = field(string, "0-12", default="", ignorable=True)
    topic_id: bytes = field(uuid, "13+", default=ZERO_UUID, ignorable=True)
    partition_data: tuple[PartitionProduceData, ...] = field(array(PartitionProduceData))


class ProduceRequest(Request, key=0, versions="3-13", flexible="9+"):
    transactional_id: str | None = field(string, "3+", nullable="3+", default=None)
    acks: int = field(int16)
    timeout_ms: int = field(int32)
    topic_data: tuple[TopicProduceData, ...] = field(array(TopicProduceData))


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = field(int32, "8+", default=0)
    batch_index_error_message: str | None = field(string, "8+", nullable="8+", default=None)


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32, "10+", default=-1)
    leader_epoch: int = field(int32, "10+", default=-1)


class PartitionProduceResponse(Struct):
    index: int = field(int32)
    error_code: int = field(int16)
    base_offset: int = field(int64)
    log_append_time_ms: int = field(int64, "2+", default=-1)
    log_start_offset: int = field(int64, "5+", default=-1, ignorable=True)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = field(
        array(BatchIndexAndErrorMessage), "8+", default=(), ignorable=True
    )
    error_message: str | None = field(string, "8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch | None = field(
        struct(LeaderIdAndEpoch), "10+", default=None, tag=0, tagged="10+"
    )


class TopicProduceResponse(Struct):
    name: str = field(string, "0-12", default="", ignorable=True)
    topic_id: bytes = field(uuid, "13+", default=ZERO_UUID, ignorable=True)
    partition_responses: tuple[PartitionProduceResponse, ...] = field(array(PartitionProduceResponse))


class NodeEndpoint(Struct):
    node_id: int = field(int32, "10+", default=0)
    host: str = field(string, "10+", default="")
    port: int = field(int32, "10+", default=0)
    rack: str | None = field(string, "10+", nullable="10+", default=None)


class ProduceResponse(Response, key=0, versions="3-13", flexible="9+"):
    responses: tuple[TopicProduceResponse, ...] = field(array(TopicProduceResponse))
    throttle_time_ms: int = field(int32, "1+", default=0)
    node_endpoints: tuple[NodeEndpoint, ...] = field(
        array(NodeEndpoint), "10+", default=(), tag=0, tagged="10+"
    )
