"""The records of a consumer group, made from its state."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.groups.consumer.group import ConsumerGroup, ConsumerGroupMember, Owned, ResolvedRegex
from strandline.groups.result import Entry
from strandline.wire.records import offsets_topic as records


def group_entry(group_id: str, epoch: int, metadata_hash: int) -> Entry:
    return Entry(
        records.ConsumerGroupMetadataKey(group_id=group_id),
        records.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member_entry(group_id: str, member: ConsumerGroupMember) -> Entry:
    return Entry(
        records.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        records.ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=member.topic_names,
            subscribed_topic_regex=member.topic_regex or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=member.classic,
        ),
    )


def target_epoch_entry(group_id: str, epoch: int, now_ms: int) -> Entry:
    return Entry(
        records.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        records.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=now_ms
        ),
    )


def target_entry(group_id: str, member_id: str, target: Mapping[bytes, tuple[int, ...]]) -> Entry:
    return Entry(
        records.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        records.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=tuple(
                records.TopicPartition(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in sorted(target.items())
            )
        ),
    )


def current_entry(group_id: str, member: ConsumerGroupMember) -> Entry:
    return Entry(
        records.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        records.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_listed(member.assigned),
            partitions_pending_revocation=_listed(member.revoking),
        ),
    )


def _listed(owned: Owned) -> tuple[records.TopicPartitions, ...]:
    return tuple(
        records.TopicPartitions(
            topic_id=topic_id, partitions=tuple(indexes), assignment_epochs=tuple(indexes.values())
        )
        for topic_id, indexes in sorted(owned.items())
    )


def regex_entry(group_id: str, regex: str, resolved: ResolvedRegex | None) -> Entry:
    key = records.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    if resolved is None:
        return Entry(key, None)
    value = records.ConsumerGroupRegularExpressionValue(
        topics=tuple(sorted(resolved.topics)), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return Entry(key, value)


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    """Returns the tombstones of a member. Their order releases its partitions before the member is gone."""
    return [
        Entry(records.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        Entry(records.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        Entry(records.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group: ConsumerGroup) -> list[Entry]:
    entries = [entry for member_id in group.members for entry in member_tombstones(group.group_id, member_id)]
    entries += [regex_entry(group.group_id, regex, None) for regex in group.regexes]
    entries.append(Entry(records.ConsumerGroupTargetAssignmentMetadataKey(group_id=group.group_id), None))
    entries.append(Entry(records.ConsumerGroupMetadataKey(group_id=group.group_id), None))
    return entries


def group_records(group: ConsumerGroup, now_ms: int) -> list[Entry]:
    """Returns all records that make up the group."""
    entries = [member_entry(group.group_id, member) for member in group.members.values()]
    entries.append(group_entry(group.group_id, group.epoch, group.metadata_hash))
    entries += [
        target_entry(group.group_id, member_id, target) for member_id, target in group.targets.items()
    ]
    entries.append(target_epoch_entry(group.group_id, group.assignment_epoch, now_ms))
    entries += [current_entry(group.group_id, member) for member in group.members.values()]
    return entries
