"""The opaque bytes of JoinGroup and SyncGroup, as Java's and librdkafka's members write and read them.

They are a version of two bytes, then the message. A reader of another version reads the fields that it knows:
fields are only ever added at the end. So the newest version can be written in any group, and one newer than ours is
read as ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strandline.base.ids import TopicPartition
from strandline.client.consumer.group.assignors import MemberSubscription
from strandline.client.net.partitions import by_topic
from strandline.wire.codec import decode, encode_into
from strandline.wire.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitionData,
)
from strandline.wire.records.consumer_protocol import TopicPartition as OwnedPartitions

_VERSION_BYTES: Final = 2
_VERSION_MAX: Final = 3


def encode_subscription(
    *,
    topics: Iterable[str],
    owned: Iterable[TopicPartition] = (),
    generation: int = -1,
    rack: str | None = None,
    user_data: bytes | None = None,
) -> bytes:
    """Returns a member's subscription, for JoinGroup."""
    message = ConsumerProtocolSubscription(
        topics=tuple(sorted(topics)),
        user_data=user_data,
        owned_partitions=tuple(
            OwnedPartitions(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(sorted(owned)).items()
        ),
        generation_id=generation,
        rack_id=rack,
    )
    out = bytearray(_VERSION_MAX.to_bytes(_VERSION_BYTES, "big"))
    encode_into(message, _VERSION_MAX, out)
    return bytes(out)


def decode_subscription(member_id: str, instance_id: str | None, metadata: bytes) -> MemberSubscription:
    """Returns a member's subscription, from JoinGroup's response."""
    version = min(int.from_bytes(metadata[:_VERSION_BYTES], "big"), _VERSION_MAX)
    message = decode(ConsumerProtocolSubscription, version, metadata, _VERSION_BYTES)
    return MemberSubscription(
        member_id=member_id,
        instance_id=instance_id,
        topics=tuple(message.topics),
        owned=tuple(
            TopicPartition(each.topic, index)
            for each in message.owned_partitions
            for index in each.partitions
        ),
        generation=message.generation_id,
        rack=message.rack_id,
        user_data=message.user_data,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """Returns a member's assignment, for SyncGroup."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            TopicPartitionData(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(sorted(partitions)).items()
        ),
        user_data=None,
    )
    version = 1  # Every reader knows it; later ones hold the same.
    out = bytearray(version.to_bytes(_VERSION_BYTES, "big"))
    encode_into(message, version, out)
    return bytes(out)


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """Returns the partitions of an assignment; none if the member got none."""
    if len(data) <= _VERSION_BYTES:
        return []
    version = min(int.from_bytes(data[:_VERSION_BYTES], "big"), _VERSION_MAX)
    message = decode(ConsumerProtocolAssignment, version, data, _VERSION_BYTES)
    return [
        TopicPartition(each.topic, index) for each in message.assigned_partitions for index in each.partitions
    ]
