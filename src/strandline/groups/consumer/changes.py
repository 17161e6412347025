"""Plans changes of a consumer group: its epoch, the target assignment, and the members' next steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from crc32c import crc32c

from strandline.base.moment import Moment
from strandline.groups.consumer import records as consumer_records
from strandline.groups.consumer.assignors import ASSIGNORS, AssignableMember, Targets
from strandline.groups.consumer.group import (
    STABLE,
    UNREVOKED,
    ConsumerGroup,
    ConsumerGroupMember,
    ResolvedRegex,
    preferred_assignor,
)
from strandline.groups.consumer.reconciliation import Reported, reconcile
from strandline.groups.consumer.regular_expressions import matching_topics
from strandline.groups.rebalance_times import RebalanceTimes
from strandline.groups.result import Entry
from strandline.groups.settings import GroupSettings
from strandline.groups.timers import Timers
from strandline.groups.topics import Topics

REVOCATION: Final = "consumer-revocation"


class MemberChange(NamedTuple):
    """The records that one member's request makes, and the member as it is after them."""

    entries: list[Entry]
    member: ConsumerGroupMember
    has_new_assignment: bool


class ConsumerChanges:
    def __init__(self, settings: GroupSettings, timers: Timers, times: RebalanceTimes) -> None:
        self.settings = settings
        self._timers = timers
        self._times = times

    def plan_change(
        self,
        group: ConsumerGroup,
        known: ConsumerGroupMember,
        replaced: ConsumerGroupMember | None,
        requested: ConsumerGroupMember,
        reported: Reported,
        topics: Topics,
        now: Moment,
    ) -> MemberChange:
        group_id = group.group_id
        entries: list[Entry] = []
        if (
            replaced is None
            and group.epoch == group.assignment_epoch
            and group.seen_topics_version == topics.version
            and requested.member_id in group.members
            and requested.described() == known.described()
        ):
            return self._plan_step(group, known, requested, reported, topics, now)
        if replaced is not None:
            entries += consumer_records.member_tombstones(group_id, replaced.member_id)
        is_new = requested.member_id not in group.members
        if is_new or requested.described() != known.described():
            entries.append(consumer_records.member_entry(group_id, requested))
        members = {m.member_id: m for m in group.members.values() if m is not replaced}
        members[requested.member_id] = requested
        regexes = self._resolve(group, members, topics, now, entries)
        subscription_changed = (
            requested.topic_names != known.topic_names or requested.topic_regex != known.topic_regex
        )
        epoch = self._epoch_after(group, members, regexes, subscription_changed, topics, entries)
        targets: Targets = dict(group.targets)
        if replaced is not None:
            targets[requested.member_id] = targets.pop(replaced.member_id, {})
            entries.append(
                consumer_records.target_entry(group_id, requested.member_id, targets[requested.member_id])
            )
        target_epoch = group.assignment_epoch
        if epoch > target_epoch:
            targets = self._new_targets(group, members, regexes, targets, topics, entries)
            target_epoch = epoch
            entries.append(consumer_records.target_epoch_entry(group_id, epoch, now.wall_ms))
            self._times.begin(group_id, now)

        def owner_of(topic_id: bytes, index: int) -> str | None:
            owner = group.owners.get((topic_id, index))
            return requested.member_id if replaced is not None and owner == replaced.member_id else owner

        subscribed = _topic_ids(_names(requested.topic_names, requested.topic_regex, regexes), topics)
        placed = reconcile(
            owner_of,
            requested,
            target_epoch,
            targets.get(requested.member_id, {}),
            subscribed,
            subscription_changed,
            reported,
        )
        if is_new or placed.placed() != known.placed():
            entries.append(consumer_records.current_entry(group_id, placed))
        self._watch_revocation(group_id, known, placed, now)
        return MemberChange(entries, placed, placed.assigned != known.assigned)

    def plan_joins(
        self, group: ConsumerGroup, newcomers: list[ConsumerGroupMember], topics: Topics, now: Moment
    ) -> tuple[list[Entry], list[ConsumerGroupMember]]:
        """Plans one epoch and one assignment for several members that join at the same moment. Planned one after the
        other, each would get partitions that the next one takes away. None of them is static or has a regular
        expression."""
        group_id = group.group_id
        entries = [consumer_records.member_entry(group_id, requested) for requested in newcomers]
        members = dict(group.members)
        members.update((requested.member_id, requested) for requested in newcomers)
        regexes = self._resolve(group, members, topics, now, entries)
        epoch = self._epoch_after(group, members, regexes, True, topics, entries)
        targets = self._new_targets(group, members, regexes, group.targets, topics, entries)
        entries.append(consumer_records.target_epoch_entry(group_id, epoch, now.wall_ms))
        self._times.begin(group_id, now)
        placed = []
        for requested in newcomers:
            # A target has each partition once, so no two of these members get the same one.
            subscribed = _topic_ids(frozenset(requested.topic_names), topics)
            target = targets[requested.member_id]
            member = reconcile(_owners(group), requested, epoch, target, subscribed, True, None)
            entries.append(consumer_records.current_entry(group_id, member))
            placed.append(member)
        return entries, placed

    def _plan_step(
        self,
        group: ConsumerGroup,
        known: ConsumerGroupMember,
        requested: ConsumerGroupMember,
        reported: Reported,
        topics: Topics,
        now: Moment,
    ) -> MemberChange:
        """Plans the heartbeat of a member where no subscription has changed, as in most heartbeats: only the member is
        looked at."""
        if known is requested and known.state == STABLE and known.epoch == group.assignment_epoch:
            return MemberChange([], known, False)
        placed = reconcile(
            _owners(group),
            requested,
            group.assignment_epoch,
            group.targets.get(requested.member_id, {}),
            _topic_ids(group.subscribed_names(requested), topics),
            False,
            reported,
        )
        entries = []
        if placed.placed() != known.placed():
            entries.append(consumer_records.current_entry(group.group_id, placed))
        self._watch_revocation(group.group_id, known, placed, now)
        return MemberChange(entries, placed, placed.assigned != known.assigned)

    def _resolve(
        self,
        group: ConsumerGroup,
        members: Mapping[str, ConsumerGroupMember],
        topics: Topics,
        now: Moment,
        entries: list[Entry],
    ) -> dict[str, ResolvedRegex]:
        """Returns the topics that each regular expression matches, and matches again when topics have changed."""
        used = {member.topic_regex for member in members.values() if member.topic_regex}
        resolved = {regex: found for regex, found in group.regexes.items() if regex in used}
        for regex in group.regexes:
            if regex not in used:
                entries.append(consumer_records.regex_entry(group.group_id, regex, None))
        for regex in sorted(used):
            known = resolved.get(regex)
            if known is not None and group.seen_topics_version == topics.version:
                continue
            found = matching_topics(regex, topics.names())
            if known is None or known.topics != found:
                resolved[regex] = ResolvedRegex(
                    topics=found, version=topics.version, timestamp_ms=now.wall_ms
                )
                entries.append(consumer_records.regex_entry(group.group_id, regex, resolved[regex]))
        return resolved

    def _epoch_after(
        self,
        group: ConsumerGroup,
        members: Mapping[str, ConsumerGroupMember],
        regexes: Mapping[str, ResolvedRegex],
        subscription_changed: bool,
        topics: Topics,
        entries: list[Entry],
    ) -> int:
        """Returns the group's epoch: one more than before if subscriptions or the topics in them have changed."""
        metadata_hash = group.metadata_hash
        if subscription_changed or group.seen_topics_version != topics.version:
            wishes = {(member.topic_names, member.topic_regex) for member in members.values()}
            names = frozenset[str]().union(*(_names(*wish, regexes) for wish in wishes))
            metadata_hash = _hash_of(names, topics)
        if not subscription_changed and metadata_hash == group.metadata_hash:
            # This is noted only if nothing has to be written: if the records of a change are lost, the change is found
            # again.
            group.seen_topics_version = topics.version
            return group.epoch
        entries.append(consumer_records.group_entry(group.group_id, group.epoch + 1, metadata_hash))
        return group.epoch + 1

    def _new_targets(
        self,
        group: ConsumerGroup,
        members: Mapping[str, ConsumerGroupMember],
        regexes: Mapping[str, ResolvedRegex],
        targets: Mapping[str, Mapping[bytes, tuple[int, ...]]],
        topics: Topics,
        entries: list[Entry],
    ) -> Targets:
        wishes = {}
        counts: dict[bytes, int] = {}
        # Most members subscribe to the same topics: each subscription is looked up once.
        requested: dict[tuple[tuple[str, ...], str], frozenset[bytes]] = {}
        for member_id, member in members.items():
            wish = (member.topic_names, member.topic_regex)
            topic_ids = requested.get(wish)
            if topic_ids is None:
                names = _names(*wish, regexes)
                topic_ids = requested[wish] = _topic_ids(names, topics)
                for name in names:
                    topic_id = topics.topic_id(name)
                    if topic_id is not None:
                        counts[topic_id] = topics.partition_count(name)
            wishes[member_id] = AssignableMember(topic_ids, targets.get(member_id, {}))
        name = preferred_assignor(members.values(), self.settings.consumer_assignors[0])
        found = ASSIGNORS[name](wishes, counts)
        for member_id, target in found.items():
            known = targets.get(member_id)
            if target is not known and target != known:
                entries.append(consumer_records.target_entry(group.group_id, member_id, target))
        return found

    def _watch_revocation(
        self, group_id: str, known: ConsumerGroupMember, placed: ConsumerGroupMember, now: Moment
    ) -> None:
        key = (REVOCATION, group_id, placed.member_id)
        if placed.state != UNREVOKED:
            self._timers.cancel(key)
        elif known.placed() != placed.placed():
            self._timers.schedule(key, now.after_ms(placed.rebalance_timeout_ms))


def _owners(group: ConsumerGroup) -> Callable[[bytes, int], str | None]:
    return lambda topic_id, index: group.owners.get((topic_id, index))


def _names(
    topic_names: tuple[str, ...], topic_regex: str, regexes: Mapping[str, ResolvedRegex]
) -> frozenset[str]:
    names = frozenset(topic_names)
    resolved = regexes.get(topic_regex) if topic_regex else None
    return names if resolved is None else names | resolved.topics


def _topic_ids(names: frozenset[str], topics: Topics) -> frozenset[bytes]:
    found = (topics.topic_id(name) for name in names)
    return frozenset(topic_id for topic_id in found if topic_id is not None)


def _hash_of(names: frozenset[str], topics: Topics) -> int:
    """Returns another number whenever one of these topics is created, deleted or grows; 0 for no topics, as in
    Kafka."""
    value = 0
    for name in sorted(names):
        topic_id = topics.topic_id(name)
        if topic_id is not None:
            count = topics.partition_count(name)
            value = crc32c(f"{name} {count} ".encode() + topic_id, value)
    return value
