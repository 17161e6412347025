"""Keys and values of the records in __consumer_offsets."""

from __future__ import annotations

from strandline.wire.schema import (
    ZERO_UUID,
    Message,
    Struct,
    array,
    bytes_,
    field,
    int8,
    int32,
    int64,
    string,
    struct,
    uuid,
)


class LegacyOffsetCommitKey(Message, key=0, versions="0"):
    group: str = field(string, "0")
    topic: str = field(string, "0")
    partition: int = field(int32, "0")


class LegacyOffsetCommitValue(Message, key=0, versions="0"):
    offset: int = field(int64, "0")
    metadata: str = field(string, "0")
    commit_timestamp: int = field(int64, "0")


class OffsetCommitKey(Message, key=1, versions="0"):
    group: str = field(string, "0")
    topic: str = field(string, "0")
    partition: int = field(int32, "0")


class OffsetCommitValue(Message, key=1, versions="0-4", flexible="4+"):
    offset: int = field(int64)
    leader_epoch: int = field(int32, "3+", default=-1, ignorable=True)
    metadata: str = field(string)
    commit_timestamp: int = field(int64)
    expire_timestamp: int = field(int64, "1", default=-1, ignorable=True)
    topic_id: bytes = field(uuid, "4+", default=ZERO_UUID, tag=0, tagged="4+", ignorable=True)


class GroupMetadataKey(Message, key=2, versions="0"):
    group: str = field(string, "0")


class MemberMetadata(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "3+", nullable="3+", default=None, ignorable=True)
    client_id: str = field(string)
    client_host: str = field(string)
    rebalance_timeout: int = field(int32, "1+", default=-1, ignorable=True)
    session_timeout: int = field(int32)
    subscription: bytes = field(bytes_)
    assignment: bytes = field(bytes_)


class GroupMetadataValue(Message, key=2, versions="0-4", flexible="4+"):
    protocol_type: str = field(string)
    generation: int = field(int32)
    protocol: str | None = field(string, nullable="0+")
    leader: str | None = field(string, nullable="0+")
    current_state_timestamp: int = field(int64, "2+", default=-1, ignorable=True)
    members: tuple[MemberMetadata, ...] = field(array(MemberMetadata))


class ConsumerGroupMetadataKey(Message, key=3, versions="0"):
    group_id: str = field(string, "0")


class ConsumerGroupMetadataValue(Message, key=3, versions="0", flexible="0+"):
    epoch: int = field(int32)
    metadata_hash: int = field(int64, default=0, tag=0, tagged="0+")


class ConsumerGroupMemberMetadataKey(Message, key=5, versions="0"):
    group_id: str = field(string, "0")
    member_id: str = field(string, "0")


class ClassicProtocol(Struct):
    name: str = field(string)
    metadata: bytes = field(bytes_)


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = field(int32)
    supported_protocols: tuple[ClassicProtocol, ...] = field(array(ClassicProtocol))


class ConsumerGroupMemberMetadataValue(Message, key=5, versions="0", flexible="0+"):
    instance_id: str | None = field(string, nullable="0+")
    rack_id: str | None = field(string, nullable="0+")
    client_id: str = field(string)
    client_host: str = field(string)
    subscribed_topic_names: tuple[str, ...] = field(array(string))
    subscribed_topic_regex: str | None = field(string, nullable="0+")
    rebalance_timeout_ms: int = field(int32, default=-1)
    server_assignor: str | None = field(string, nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = field(
        struct(ClassicMemberMetadata), nullable="0+", default=None, tag=0, tagged="0+"
    )


class ConsumerGroupTargetAssignmentMetadataKey(Message, key=6, versions="0"):
    group_id: str = field(string, "0")


class ConsumerGroupTargetAssignmentMetadataValue(Message, key=6, versions="0", flexible="0+"):
    assignment_epoch: int = field(int32)
    assignment_timestamp: int = field(int64, default=0, tag=0, tagged="0+")


class ConsumerGroupTargetAssignmentMemberKey(Message, key=7, versions="0"):
    group_id: str = field(string, "0")
    member_id: str = field(string, "0")


class TopicPartition(Struct):
    topic_id: bytes = field(uuid)
    partitions: tuple[int, ...] = field(array(int32))


class ConsumerGroupTargetAssignmentMemberValue(Message, key=7, versions="0", flexible="0+"):
    topic_partitions: tuple[TopicPartition, ...] = field(array(TopicPartition))


class ConsumerGroupCurrentMemberAssignmentKey(Message, key=8, versions="0"):
    group_id: str = field(string, "0")
    member_id: str = field(string, "0")


class TopicPartitions(Struct):
    topic_id: bytes = field(uuid)
    partitions: tuple[int, ...] = field(array(int32))
    assignment_epochs: tuple[int, ...] | None = field(
        array(int32), nullable="0+", default=(), tag=0, tagged="0+"
    )


class ConsumerGroupCurrentMemberAssignmentValue(Message, key=8, versions="0", flexible="0+"):
    member_epoch: int = field(int32)
    previous_member_epoch: int = field(int32)
    state: int = field(int8)
    assigned_partitions: tuple[TopicPartitions, ...] = field(array(TopicPartitions))
    partitions_pending_revocation: tuple[TopicPartitions, ...] = field(array(TopicPartitions))


class ConsumerGroupRegularExpressionKey(Message, key=16, versions="0"):
    group_id: str = field(string, "0")
    regular_expression: str = field(string, "0")


class ConsumerGroupRegularExpressionValue(Message, key=16, versions="0", flexible="0+"):
    topics: tuple[str, ...] = field(array(string))
    version: int = field(int64)
    timestamp: int = field(int64)


class ConsumerGroupPartitionMetadataKey(Message, key=4, versions="0"):
    group_id: str = field(string, "0")


class PartitionMetadata(Struct):
    partition: int = field(int32)
    racks: tuple[str, ...] = field(array(string))


class TopicMetadata(Struct):
    topic_id: bytes = field(uuid)
    topic_name: str = field(string)
    num_partitions: int = field(int32)
    partition_metadata: tuple[PartitionMetadata, ...] = field(array(PartitionMetadata))


class ConsumerGroupPartitionMetadataValue(Message, key=4, versions="0", flexible="0+"):
    topics: tuple[TopicMetadata, ...] = field(array(TopicMetadata))
