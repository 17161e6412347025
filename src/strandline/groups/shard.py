"""One partition of `__consumer_offsets` as a machine: the groups and offsets that belong to it.

A method looks at the state and returns a `CoordinatorResult`: responses and records. The written state changes only by
`apply`, which the shell calls for each record that it has appended, and in a loop when it loads the partition after a
failover. The state of a classic group that is only in memory (waiting requests, new member ids) is lost with its
coordinator, as in Kafka: members find the new coordinator and join again.
"""

from __future__ import annotations

from typing import assert_never

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.moment import Moment
from strandline.base.tokens import Token
from strandline.groups.classic import protocol
from strandline.groups.classic.group import DEAD, EMPTY, ClassicGroup
from strandline.groups.classic.protocol import ClassicGroupProtocol
from strandline.groups.classic.rebalance import join_refused, sync_refused
from strandline.groups.consumer import protocol as consumer
from strandline.groups.consumer import records as consumer_records
from strandline.groups.consumer.group import GROUP_STABLE as CONSUMER_STABLE
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.protocol import ConsumerProtocol
from strandline.groups.consumer.requests import Join, heartbeat_refused
from strandline.groups.members import Caller
from strandline.groups.migration.classic_requests import ClassicMemberRequests
from strandline.groups.migration.migration import GroupMigration
from strandline.groups.offset_requests import OffsetRequests
from strandline.groups.offsets import GroupOffsets
from strandline.groups.rebalance_times import RebalanceTimes
from strandline.groups.result import (
    CoordinatorResult,
    Entry,
    OnWritten,
    RemovedMember,
    WrittenChange,
)
from strandline.groups.settings import GroupSettings
from strandline.groups.timers import Timers
from strandline.groups.topics import Topics
from strandline.ports.random import Random
from strandline.telemetry.counters import Counters
from strandline.wire.api.k11_join_group import JoinGroupRequest
from strandline.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.wire.api.k13_leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from strandline.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupResponse
from strandline.wire.api.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from strandline.wire.records import offsets_topic as records
from strandline.wire.schema import Message, Struct

Group = ClassicGroup | ConsumerGroup


class GroupShard:
    """The groups and offsets of one partition."""

    def __init__(self, settings: GroupSettings, topics: Topics, random: Random, counters: Counters) -> None:
        self.settings = settings
        self.topics = topics
        self.timers = Timers()
        self.times = RebalanceTimes(counters)
        self.classic = ClassicGroupProtocol(settings, self.timers, random, self.times)
        self.consumer = ConsumerProtocol(settings, self.timers, random, self.times)
        self.migration = GroupMigration(settings, self.consumer, random)
        self.classic_member_requests = ClassicMemberRequests(
            self.migration, self.consumer, self.timers, topics
        )
        self.groups: dict[str, Group] = {}
        # Classic groups that replace empty consumer groups once the tombstones of those are written.
        self._classic_in_place: dict[str, ClassicGroup] = {}
        self.offsets = GroupOffsets()
        self.offset_requests = OffsetRequests(settings, topics, self.groups, self.offsets, self.classic)

    # State of the log

    def apply(self, key: Message, value: Message | None) -> None:
        match key:
            case records.OffsetCommitKey():
                assert value is None or isinstance(value, records.OffsetCommitValue)
                self.offsets.apply(key, value)
            case records.GroupMetadataKey():
                assert value is None or isinstance(value, records.GroupMetadataValue)
                self._apply_classic(key.group, value)
            case _:
                self._apply_consumer(key, value)

    def _apply_classic(self, group_id: str, value: records.GroupMetadataValue | None) -> None:
        """Applies the record of a classic group. On the coordinator that wrote it the group exists already, with newer
        state; on others this creates it."""
        group = self.groups.get(group_id)
        if value is None:
            if isinstance(group, ClassicGroup):
                del self.groups[group_id]
                group.state = DEAD
                self.classic.forget_deadlines(group)
        elif isinstance(group, ClassicGroup):
            group.apply_assignments(value)
        elif group_id in self.classic_member_requests.downgraded:
            self.groups[group_id] = self.classic_member_requests.downgraded.pop(group_id)
        else:
            self.groups[group_id] = ClassicGroup.from_record(group_id, value)

    def _apply_consumer(self, key: Message, value: Message | None) -> None:
        group_id = getattr(key, "group_id", None)
        if group_id is None:
            return  # a newer broker wrote this kind of record
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = self.groups[group_id] = ConsumerGroup(group_id)
        if isinstance(key, records.ConsumerGroupMetadataKey) and value is None:
            del self.groups[group_id]
            if group_id in self._classic_in_place:
                self.groups[group_id] = self._classic_in_place.pop(group_id)
            return
        group.apply(key, value)

    def replay(self, key: Message, value: Message | None, producer_id: int = -1) -> None:
        """Applies a record while the shard loads: a later record of a classic group replaces the group of an earlier
        one."""
        if producer_id >= 0:
            assert isinstance(key, records.OffsetCommitKey), "only offsets are written in transactions"
            assert value is None or isinstance(value, records.OffsetCommitValue)
            self.offsets.apply(key, value, producer_id)
            return
        if isinstance(key, records.GroupMetadataKey) and value is not None:
            self.groups.pop(key.group, None)
        self.apply(key, value)

    def end_transaction(self, producer_id: int, is_commit: bool, now: Moment) -> None:
        """Applies a marker: the producer's pending offsets are committed or dropped."""
        self.offsets.end_transaction(producer_id, is_commit)

    def loaded(self, now: Moment) -> None:
        for group_id in self.offsets.groups():
            if group_id not in self.groups:
                # The group has offsets and no record: ListGroups shows it all the same.
                self.groups[group_id] = ClassicGroup(group_id=group_id, state_since_ms=now.wall_ms)
        for group in self.groups.values():
            if not isinstance(group, ClassicGroup):
                self.consumer.loaded(group, now)
                continue
            self.classic.loaded(group, now)
            if group.members and group.leader is None:
                # It was a consumer group just before, and some of its partitions may have no owner.
                result = self.classic.rebalance(group, now)
                assert not result.has_records, "no member has rejoined yet"
                assert not result.responses

    # Requests of the classic protocol

    def join(self, request: JoinGroupRequest, caller: Caller, token: Token, now: Moment) -> CoordinatorResult:
        settings = self.settings
        if (
            not settings.session_timeout_min_ms
            <= request.session_timeout_ms
            <= settings.session_timeout_max_ms
        ):
            return CoordinatorResult().respond_to(
                token, join_refused(request.member_id, ErrorCode.INVALID_SESSION_TIMEOUT)
            )
        group = self.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return self.classic.join(group, request, caller, token, now)
        if group is not None and not group.is_empty:
            return self.classic_member_requests.join(group, request, caller, token, now)
        if request.member_id:
            return CoordinatorResult().respond_to(
                token, join_refused(request.member_id, ErrorCode.UNKNOWN_MEMBER_ID)
            )
        new = ClassicGroup(group_id=request.group_id, state_since_ms=now.wall_ms)
        if group is None:
            self.groups[request.group_id] = new
            return self.classic.join(new, request, caller, token, now)
        self._classic_in_place[request.group_id] = new
        result = self.classic.join(new, request, caller, token, now)
        assert not result.has_records, "a new classic group writes nothing before its first generation"
        result.entries = consumer_records.group_tombstones(group)
        result.on_written = OnWritten(WrittenChange.CLASSIC_IN_PLACE, request.group_id)
        return result

    def sync(self, request: SyncGroupRequest, token: Token, now: Moment) -> CoordinatorResult:
        group = self.groups.get(request.group_id)
        if group is None:
            return CoordinatorResult().respond_to(token, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        if isinstance(group, ConsumerGroup):
            return self.classic_member_requests.sync(group, request, token, now)
        return self.classic.sync(group, request, token, now)

    def heartbeat(self, request: HeartbeatRequest, now: Moment) -> HeartbeatResponse:
        group = self.groups.get(request.group_id)
        if group is None:
            return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        try:
            if isinstance(group, ConsumerGroup):
                return HeartbeatResponse(
                    error_code=self.classic_member_requests.heartbeat(group, request, now)
                )
            return HeartbeatResponse(error_code=self.classic.heartbeat(group, request, now))
        except KafkaError as error:
            return HeartbeatResponse(error_code=error.code)

    def leave(self, request: LeaveGroupRequest, version: int, token: Token, now: Moment) -> CoordinatorResult:
        if version < 3:
            request = LeaveGroupRequest(
                group_id=request.group_id, members=(MemberIdentity(member_id=request.member_id),)
            )
        group = self.groups.get(request.group_id)
        if group is None:
            result = CoordinatorResult()
            members = [
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                )
                for identity in request.members
            ]
        elif isinstance(group, ConsumerGroup):
            result, members = self.classic_member_requests.leave(group, request, now)
        else:
            result, members = self.classic.leave(group, request, now)
        if version < 3:
            return result.respond_to(token, LeaveGroupResponse(error_code=members[0].error_code))
        return result.respond_to(token, LeaveGroupResponse(error_code=ErrorCode.NONE, members=tuple(members)))

    # Requests of the consumer protocol

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, token: Token, now: Moment
    ) -> CoordinatorResult:
        try:
            self.consumer.check(request, caller.api_version)
            if request.member_epoch < 0:
                return self._consumer_leave(request, token, now)
            result = CoordinatorResult()
            group = self._consumer_group_for(request, result, now)
            entries, response = self.consumer.plan_heartbeat(group, request, caller, self.topics, now)
            old = self.groups.get(request.group_id)
            if isinstance(old, ClassicGroup):
                self.classic_member_requests.release_waiting(old, result)
        except KafkaError as error:
            return CoordinatorResult().respond_to(token, heartbeat_refused(error.code, error.message))
        result.entries += entries
        if result.on_written is None:
            result.on_written = OnWritten(WrittenChange.HEARTBEAT, request.group_id)
        return result.respond_to(token, response)

    def consumer_joins(self, joins: list[Join], now: Moment) -> CoordinatorResult | None:
        """Joins several members to one group at the same moment; returns None if each has to be planned by itself."""
        group_id = joins[0].request.group_id
        group = self.groups.get(group_id) or ConsumerGroup(group_id)
        if not isinstance(group, ConsumerGroup) or not self.consumer.can_join_together(group, joins):
            return None
        entries, responses = self.consumer.plan_joining(group, joins, self.topics, now)
        result = CoordinatorResult(entries=entries, on_written=OnWritten(WrittenChange.HEARTBEAT, group_id))
        for join, response in zip(joins, responses, strict=True):
            result.respond_to(join.token, response)
        return result

    def _consumer_group_for(
        self, request: ConsumerGroupHeartbeatRequest, result: CoordinatorResult, now: Moment
    ) -> ConsumerGroup:
        """Returns the consumer group, perhaps a new one in place of a classic group, whose records go to `result`."""
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if request.member_epoch != 0:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
        if group is None:
            return ConsumerGroup(request.group_id)
        if group.state == EMPTY:
            result.entries.append(Entry(records.GroupMetadataKey(group=group.group_id), None))
            return ConsumerGroup(request.group_id)
        upgraded = self.migration.upgraded(group, self.topics)
        result.entries.append(Entry(records.GroupMetadataKey(group=group.group_id), None))
        result.entries += consumer_records.group_records(upgraded, now.wall_ms)
        result.on_written = OnWritten(WrittenChange.UPGRADE, group.group_id)
        return upgraded

    def _consumer_leave(
        self, request: ConsumerGroupHeartbeatRequest, token: Token, now: Moment
    ) -> CoordinatorResult:
        group = self.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
        entries, gone = self.consumer.plan_leave(group, request, now)
        response = ConsumerGroupHeartbeatResponse(
            throttle_time_ms=0,
            error_code=ErrorCode.NONE,
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval_ms=0,
        )
        result = (
            self.classic_member_requests.removal(group, gone, now)
            if gone
            else CoordinatorResult(entries=entries)
        )
        return result.respond_to(token, response)

    # Writes and time

    def written(self, on_written: OnWritten, now: Moment) -> CoordinatorResult:
        """Carries out the next step after the records of a change are committed."""
        group = self.groups.get(on_written.group_id)
        match on_written.change:
            case WrittenChange.ASSIGNMENT:
                if isinstance(group, ClassicGroup):
                    return self.classic.assignment_written(group, on_written, now)
            case WrittenChange.DOWNGRADE:
                if isinstance(group, ClassicGroup):
                    return self._rebalance_downgraded(group, now)
            case WrittenChange.UPGRADE:
                if isinstance(group, ConsumerGroup):
                    self.consumer.loaded(group, now)
                    self._note_completion(group, now)
            case WrittenChange.HEARTBEAT | WrittenChange.REMOVAL:
                if isinstance(group, ConsumerGroup):
                    self._note_completion(group, now)
            case WrittenChange.CLASSIC_IN_PLACE:
                pass  # it replaced the consumer group when the tombstones were applied
            case _:
                assert_never(on_written.change)
        return CoordinatorResult()

    def _note_completion(self, group: ConsumerGroup, now: Moment) -> None:
        if self.times.is_going_on(group.group_id):
            if group.is_empty:
                self.times.forget(group.group_id)
            elif group.state == CONSUMER_STABLE:
                self.times.complete(group.group_id, now)

    def write_failed(self, on_written: OnWritten, code: int, now: Moment) -> CoordinatorResult:
        """Carries out the next step after the records of a change could not be appended, or were not committed in
        time."""
        group = self.groups.get(on_written.group_id)
        self.classic_member_requests.downgraded.pop(on_written.group_id, None)
        match on_written.change:
            case WrittenChange.ASSIGNMENT:
                if isinstance(group, ClassicGroup):
                    return self.classic.assignment_not_written(group, on_written, code, now)
            case WrittenChange.DOWNGRADE if isinstance(group, ClassicGroup):
                # The records are in the log, though the high watermark did not pass them in time.
                return self._rebalance_downgraded(group, now)
            case WrittenChange.UPGRADE if isinstance(group, ConsumerGroup):
                # The records are in the log here too: the sessions of the members begin, as if they were committed.
                self.consumer.loaded(group, now)
                self.consumer.watch_again(group, now)
            case (
                WrittenChange.HEARTBEAT
                | WrittenChange.REMOVAL
                | WrittenChange.DOWNGRADE
                | WrittenChange.UPGRADE
            ):
                if isinstance(group, ConsumerGroup):
                    self.consumer.watch_again(group, now)
            case WrittenChange.CLASSIC_IN_PLACE:
                return self._classic_not_in_place(on_written.group_id, code)
            case _:
                assert_never(on_written.change)
        return CoordinatorResult()

    def _classic_not_in_place(self, group_id: str, code: int) -> CoordinatorResult:
        """Responds after the consumer group could not be replaced: the member that would have begun the classic group
        has to join again."""
        result = CoordinatorResult()
        abandoned = self._classic_in_place.pop(group_id, None)
        if abandoned is not None:
            self.classic.forget_deadlines(abandoned)
            for member in abandoned.members.values():
                if member.join_token is not None:
                    result.respond_to(member.join_token, join_refused(member.member_id, code))
        return result

    def _rebalance_downgraded(self, group: ClassicGroup, now: Moment) -> CoordinatorResult:
        for member_id in group.members:
            self.consumer.forget_deadlines(group.group_id, member_id)
        self.classic.loaded(group, now)
        return self.classic.rebalance(group, now)

    def waiting_members(self) -> list[tuple[Token, Struct]]:
        """Returns the requests that wait for a rebalance, with empty responses to them, for when this broker stops to
        be the coordinator."""
        found: list[tuple[Token, Struct]] = []
        for group in self.groups.values():
            for member in group.members.values() if isinstance(group, ClassicGroup) else ():
                if member.join_token is not None:
                    found.append((member.join_token, join_refused(member.member_id, ErrorCode.NONE)))
                if member.sync_token is not None:
                    found.append((member.sync_token, SyncGroupResponse(error_code=0, assignment=b"")))
        return found

    def expire(self, now: Moment) -> list[CoordinatorResult]:
        """Returns the results of deadlines that have passed."""
        results = []
        # Members of a group are removed together: a plan rests on the written group, which does not contain other
        # removals yet.
        gone: dict[str, dict[str, str]] = {}
        for kind, group_id, *rest in self.timers.due(now.monotonic):
            group = self.groups.get(group_id)
            if isinstance(group, ClassicGroup):
                if kind == protocol.JOIN:
                    results.append(self.classic.join_expired(group, now))
                elif kind == protocol.SYNC:
                    results.append(self.classic.sync_expired(group, now))
                elif kind == protocol.SESSION:
                    results.append(self.classic.session_expired(group, rest[0], now))
            elif isinstance(group, ConsumerGroup) and kind in consumer.DEADLINES and rest[0] in group.members:
                gone.setdefault(group_id, {})[rest[0]] = consumer.DEADLINES[kind]
        for group_id, members in gone.items():
            group = self.groups.get(group_id)
            assert isinstance(group, ConsumerGroup)
            result = self.classic_member_requests.removal(group, list(members), now)
            result.removed += [
                RemovedMember(group_id, member_id, reason) for member_id, reason in members.items()
            ]
            results.append(result)
        return results

    def expire_offsets(self, now: Moment) -> CoordinatorResult:
        """Returns tombstones of expired offsets, and of empty groups without offsets."""
        result = CoordinatorResult()
        for group_id in self.offsets.groups():
            result.entries += self.offset_requests.expired(group_id, now)
        expired: dict[str, int] = {}
        for entry in result.entries:
            assert isinstance(entry.key, records.OffsetCommitKey)
            expired[entry.key.group] = expired.get(entry.key.group, 0) + 1
        for group_id, group in self.groups.items():
            count = sum(len(partitions) for partitions in self.offsets.of_group(group_id).values())
            is_unused = count == expired.get(group_id, 0) and not self.offsets.pending_places(group_id)
            if self._is_empty(group) and is_unused:
                result.entries += self._group_tombstones(group)
        return result

    def offsets_of_topic_gone(self, topic: str) -> CoordinatorResult:
        groups = self.offsets.groups_with(topic)
        return CoordinatorResult(
            entries=[e for group_id in groups for e in self.offsets.tombstones(group_id, [topic])]
        )

    def offsets_without_topic(self) -> CoordinatorResult:
        """Returns tombstones of the offsets of topics that were deleted while there was no coordinator, or while it
        could not write.

        Topics with the same names may have been created since.
        """
        result = CoordinatorResult()
        for topic in self.offsets.topics():
            topic_id = self.topics.topic_id(topic)
            if topic_id is None:
                result.entries += self.offsets_of_topic_gone(topic).entries
            else:
                result.entries += self.offsets.former(topic, topic_id)
        return result

    def delete_group(self, group_id: str) -> tuple[CoordinatorResult, int]:
        """Returns the tombstones of an empty group and its offsets, and the error code of the response."""
        group = self.groups.get(group_id)
        if group is None and not self.offsets.of_group(group_id):
            return CoordinatorResult(), ErrorCode.GROUP_ID_NOT_FOUND
        if group is not None and not self._is_empty(group):
            return CoordinatorResult(), ErrorCode.NON_EMPTY_GROUP
        entries = self.offsets.tombstones(group_id)
        if group is not None:
            entries += self._group_tombstones(group)
        return CoordinatorResult(entries=entries), ErrorCode.NONE

    def _is_empty(self, group: Group) -> bool:
        if isinstance(group, ConsumerGroup):
            return group.is_empty
        return group.state == EMPTY and not group.pending_members

    def _group_tombstones(self, group: Group) -> list[Entry]:
        if isinstance(group, ConsumerGroup):
            return consumer_records.group_tombstones(group)
        return [Entry(records.GroupMetadataKey(group=group.group_id), None)]

    def check_invariants(self) -> None:
        for group in self.groups.values():
            group.check_invariants()
