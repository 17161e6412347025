"""The opaque bytes of JoinGroup and SyncGroup, as classic consumers write them."""

from __future__ import annotations

from strandline.wire.schema import Message, Struct, array, bytes_, field, int32, string


class TopicPartition(Struct):
    topic: str = field(string, "1+", default="")
    partitions: tuple[int, ...] = field(array(int32), "1+", default=())


class ConsumerProtocolSubscription(Message, versions="0-3"):
    topics: tuple[str, ...] = field(array(string))
    user_data: bytes | None = field(bytes_, nullable="0+", default=None)
    owned_partitions: tuple[TopicPartition, ...] = field(
        array(TopicPartition), "1+", default=(), ignorable=True
    )
    generation_id: int = field(int32, "2+", default=-1, ignorable=True)
    rack_id: str | None = field(string, "3+", nullable="3+", default=None, ignorable=True)


class TopicPartitionData(Struct):
    topic: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


class ConsumerProtocolAssignment(Message, versions="0-3"):
    assigned_partitions: tuple[TopicPartitionData, ...] = field(array(TopicPartitionData))
    user_data: bytes | None = field(bytes_, nullable="0+", default=None)
