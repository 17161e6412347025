"""AlterPartition (key 56), versions 2 to 3, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int8, int16, int32, int64, uuid


class BrokerState(Struct):
    broker_id: int = field(int32, "3+", default=0)
    broker_epoch: int = field(int64, "3+", default=-1)


class PartitionData(Struct):
    partition_index: int = field(int32)
    leader_epoch: int = field(int32)
    new_isr: tuple[int, ...] = field(array(int32), "0-2", default=())
    new_isr_with_epochs: tuple[BrokerState, ...] = field(array(BrokerState), "3+", default=())
    leader_recovery_state: int = field(int8, "1+", default=0)
    partition_epoch: int = field(int32)


class TopicData(Struct):
    topic_id: bytes = field(uuid, "2+")
    partitions: tuple[PartitionData, ...] = field(array(PartitionData))


class AlterPartitionRequest(Request, key=56, versions="2-3", flexible="0+"):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)
    topics: tuple[TopicData, ...] = field(array(TopicData))


class ResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)
    isr: tuple[int, ...] = field(array(int32))
    leader_recovery_state: int = field(int8, "1+", default=0)
    partition_epoch: int = field(int32)


class ResponseTopicData(Struct):
    topic_id: bytes = field(uuid, "2+")
    partitions: tuple[ResponsePartitionData, ...] = field(array(ResponsePartitionData))


class AlterPartitionResponse(Response, key=56, versions="2-3", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    topics: tuple[ResponseTopicData, ...] = field(array(ResponseTopicData))
