"""Events of groups for the log: rebalances, members whose session ended, groups that are removed."""

from __future__ import annotations

from strandline.groups.result import CoordinatorResult
from strandline.telemetry.events import Events
from strandline.wire.records.offsets_topic import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
)


def tell_removed(events: Events, result: CoordinatorResult) -> None:
    for group_id, member_id, reason in result.removed:
        events.info(reason, group=group_id, member=member_id)


def tell_written(events: Events, result: CoordinatorResult) -> None:
    for key, value in result.entries:
        if not isinstance(key, GroupMetadataKey | ConsumerGroupMetadataKey):
            continue
        group = key.group if isinstance(key, GroupMetadataKey) else key.group_id
        if value is None:
            events.info("group removed", group=group)
        elif isinstance(value, ConsumerGroupMetadataValue):
            events.info("group rebalances", group=group, epoch=value.epoch)
        elif isinstance(value, GroupMetadataValue) and value.members:
            generation, members = value.generation, len(value.members)
            events.info("group rebalanced", group=group, generation=generation, members=members)
        elif isinstance(value, GroupMetadataValue):
            events.info("group is empty", group=group, generation=value.generation)
