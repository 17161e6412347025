"""The owners of partitions in a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from strandline.base.ids import TopicPartition
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer.group import ConsumerGroup
from strandline.wire.codec import DecodeError, decode
from strandline.wire.records.consumer_protocol import ConsumerProtocolAssignment


class GroupMember(NamedTuple):
    member_id: str
    client_id: str
    host: str


def owners_of(
    group: ClassicGroup | ConsumerGroup, topic_name: Callable[[bytes], str]
) -> dict[TopicPartition, GroupMember]:
    """Returns the owner of each assigned partition."""
    owners: dict[TopicPartition, GroupMember] = {}
    if isinstance(group, ConsumerGroup):
        for each in group.members.values():
            member = GroupMember(each.member_id, each.client_id, each.client_host)
            for topic_id, indexes in each.assigned.items():
                name = topic_name(topic_id)
                owners |= {TopicPartition(name, index): member for index in indexes}
        return owners
    for member_ in group.members.values():
        member = GroupMember(member_.member_id, member_.client_id, member_.client_host)
        owners |= dict.fromkeys(_assigned(member_.assignment), member)
    return owners


def _assigned(data: bytes) -> list[TopicPartition]:
    """Returns the partitions of a classic member that is a consumer; other kinds of groups have their own format."""
    if len(data) < 2:
        return []
    version = min(int.from_bytes(data[:2], "big"), ConsumerProtocolAssignment.VERSIONS.high)
    try:
        found = decode(ConsumerProtocolAssignment, version, data, 2)
    except DecodeError:
        return []
    return [
        TopicPartition(topic.topic, index)
        for topic in found.assigned_partitions
        for index in topic.partitions
    ]
