"""Requests of group members, as short as a test needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from strandline.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from strandline.wire.api.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from strandline.wire.api.k12_heartbeat import HeartbeatRequest
from strandline.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity
from strandline.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from strandline.wire.api.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from strandline.wire.api.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from strandline.wire.codec import encode
from strandline.wire.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    TopicPartitionData,
)
from strandline.wire.schema import Request

SESSION_MS = 10_000


def subscription(
    *topics: str, owned: Mapping[str, Iterable[int]] | None = None, version: int = 1, generation: int = -1
) -> bytes:
    """Returns a member's metadata in the classic protocol."""
    message = ConsumerProtocolSubscription(
        topics=topics,
        user_data=None,
        owned_partitions=tuple(
            TopicPartition(topic=topic, partitions=tuple(partitions))
            for topic, partitions in (owned or {}).items()
        ),
        generation_id=generation,
    )
    return version.to_bytes(2, "big") + bytes(encode(message, version))


def assignment(partitions: Mapping[str, Iterable[int]], version: int = 1) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            TopicPartitionData(topic=topic, partitions=tuple(found)) for topic, found in partitions.items()
        ),
        user_data=None,
    )
    return version.to_bytes(2, "big") + bytes(encode(message, version))


def join(
    group: str,
    member: str = "",
    *,
    instance: str | None = None,
    protocols: Mapping[str, bytes] | None = None,
    kind: str = "consumer",
    session_ms: int = SESSION_MS,
    rebalance_ms: int = SESSION_MS,
) -> JoinGroupRequest:
    offered = {"range": subscription("orders")} if protocols is None else protocols
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member,
        group_instance_id=instance,
        protocol_type=kind,
        protocols=tuple(JoinGroupRequestProtocol(name=n, metadata=m) for n, m in offered.items()),
    )


def sync(
    group: str,
    member: str,
    generation: int,
    assignments: Mapping[str, bytes] | None = None,
    *,
    instance: str | None = None,
    kind: str | None = "consumer",
    protocol: str | None = "range",
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        protocol_type=kind,
        protocol_name=protocol,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=m, assignment=a) for m, a in (assignments or {}).items()
        ),
    )


def heartbeat(group: str, member: str, generation: int, *, instance: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member, group_instance_id=instance
    )


def leave(group: str, *members: str | tuple[str, str | None]) -> LeaveGroupRequest:
    """Members by id, or by (id, instance id)."""
    identities = [(m, None) if isinstance(m, str) else m for m in members]
    return LeaveGroupRequest(
        group_id=group,
        member_id=identities[0][0],
        members=tuple(MemberIdentity(member_id=m, group_instance_id=i) for m, i in identities),
    )


def commit(
    group: str,
    offsets: Mapping[int, int],
    *,
    member: str = "",
    generation: int = -1,
    instance: str | None = None,
    topic: str = "orders",
    topic_id: bytes = bytes(16),
    metadata: str | None = "",
    leader_epoch: int = -1,
    retention_ms: int = -1,
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        retention_time_ms=retention_ms,
        topics=(
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_id,
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=leader_epoch,
                        committed_metadata=metadata,
                    )
                    for partition, offset in offsets.items()
                ),
            ),
        ),
    )


def fetch_offsets(
    *groups: str,
    partitions: Iterable[int] | None = (0, 1),
    topic: str = "orders",
    topic_id: bytes = bytes(16),
    member: str | None = None,
    epoch: int = -1,
    require_stable: bool = False,
) -> OffsetFetchRequest:
    """Of one group, in the fields of every version; partitions of None ask for all topics."""
    indexes = None if partitions is None else tuple(partitions)
    old = None if indexes is None else (OffsetFetchRequestTopic(name=topic, partition_indexes=indexes),)
    new = (
        None
        if indexes is None
        else (OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=indexes),)
    )
    return OffsetFetchRequest(
        group_id=groups[0],
        topics=old,
        groups=tuple(
            OffsetFetchRequestGroup(group_id=g, member_id=member, member_epoch=epoch, topics=new)
            for g in groups
        ),
        require_stable=require_stable,
    )


def fitted(request: Request, version: int) -> Request:
    """Without the fields that this version does not have: a request above fills those of every version."""
    if isinstance(request, OffsetFetchRequest):
        if version >= 8:
            return OffsetFetchRequest(
                groups=request.groups, require_stable=request.require_stable and version >= 7
            )
        return OffsetFetchRequest(
            group_id=request.group_id,
            topics=request.topics,
            require_stable=request.require_stable and version >= 7,
        )
    if isinstance(request, LeaveGroupRequest):
        if version >= 3:
            return LeaveGroupRequest(group_id=request.group_id, members=request.members)
        return LeaveGroupRequest(group_id=request.group_id, member_id=request.member_id)
    return request


def delete_offsets(group: str, partitions: Iterable[int], topic: str = "orders") -> OffsetDeleteRequest:
    found = tuple(OffsetDeleteRequestPartition(partition_index=p) for p in partitions)
    return OffsetDeleteRequest(
        group_id=group, topics=(OffsetDeleteRequestTopic(name=topic, partitions=found),)
    )


def consumer_heartbeat(group: str, member: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """Returns a heartbeat with only the member's id and epoch, and the given fields."""
    return ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)


def consumer_join(
    group: str, member: str, *topics: str, instance: str | None = None, **fields: Any
) -> ConsumerGroupHeartbeatRequest:
    """Returns the first heartbeat of a member."""
    given: dict[str, Any] = {
        "rebalance_timeout_ms": SESSION_MS,
        "subscribed_topic_names": topics or ("orders",),
        "topic_partitions": (),
        "instance_id": instance,
        **fields,
    }
    return ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=0, **given)


def owned(partitions: Mapping[bytes, Iterable[int]]) -> tuple[TopicPartitions, ...]:
    """Returns the partitions that a consumer reports to hold, by topic id."""
    return tuple(TopicPartitions(topic_id=t, partitions=tuple(p)) for t, p in partitions.items())
