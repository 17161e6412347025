"""ElectLeaders (key 43), versions 0 to 2, flexible from 2."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int8, int16, int32, string


class TopicPartitions(Struct):
    topic: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


class ElectLeadersRequest(Request, key=43, versions="0-2", flexible="2+"):
    election_type: int = field(int8, "1+", default=0)
    topic_partitions: tuple[TopicPartitions, ...] | None = field(array(TopicPartitions), nullable="0+")
    timeout_ms: int = field(int32, default=60000)


class PartitionResult(Struct):
    partition_id: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class ReplicaElectionResult(Struct):
    topic: str = field(string)
    partition_result: tuple[PartitionResult, ...] = field(array(PartitionResult))


class ElectLeadersResponse(Response, key=43, versions="0-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, "1+", default=0)
    replica_election_results: tuple[ReplicaElectionResult, ...] = field(array(ReplicaElectionResult))
