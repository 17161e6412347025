"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members of a consumer group, and the removal of members."""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.moment import Moment
from strandline.base.tokens import Token
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.classic.rebalance import join_refused, sync_refused
from strandline.groups.consumer import protocol
from strandline.groups.consumer import records as consumer_records
from strandline.groups.consumer.group import UNREVOKED, ConsumerGroup, ConsumerGroupMember
from strandline.groups.consumer.protocol import ConsumerProtocol
from strandline.groups.members import Caller
from strandline.groups.migration.migration import GroupMigration
from strandline.groups.result import CoordinatorResult, Entry, OnWritten, WrittenChange
from strandline.groups.timers import Timers
from strandline.groups.topics import Topics
from strandline.wire.api.k11_join_group import JoinGroupRequest, JoinGroupResponse
from strandline.wire.api.k12_heartbeat import HeartbeatRequest
from strandline.wire.api.k13_leave_group import LeaveGroupRequest, MemberResponse
from strandline.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupResponse
from strandline.wire.records.offsets_topic import GroupMetadataKey


class ClassicMemberRequests:
    """The requests of members of a consumer group that speak the classic protocol."""

    def __init__(
        self, migration: GroupMigration, consumer: ConsumerProtocol, timers: Timers, topics: Topics
    ) -> None:
        self._migration = migration
        self._consumer = consumer
        self._timers = timers
        self._topics = topics
        # The classic groups that consumer groups are about to become, with the state that is in no record.
        self.downgraded: dict[str, ClassicGroup] = {}

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, token: Token, now: Moment
    ) -> CoordinatorResult:
        try:
            change = self._migration.join(group, request, caller, self._topics, now)
        except KafkaError as error:
            member_id = error.message if error.code == ErrorCode.MEMBER_ID_REQUIRED else request.member_id
            return CoordinatorResult().respond_to(token, join_refused(member_id, error.code))
        member = change.member
        assert member.classic is not None
        # The member has to sync within its rebalance timeout, or it is removed.
        self._expect(
            group, member.member_id, max(request.session_timeout_ms, member.rebalance_timeout_ms), now
        )
        self._timers.cancel((protocol.REJOIN, group.group_id, member.member_id))
        key = (protocol.SYNC, group.group_id, member.member_id)
        self._timers.schedule(key, now.after_ms(member.rebalance_timeout_ms))
        response = JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=member.epoch,
            protocol_type=request.protocol_type,
            protocol_name=member.classic.supported_protocols[0].name,
            # No member leads: the coordinator itself assigns.
            leader="",
            member_id=member.member_id,
            members=(),
        )
        return CoordinatorResult(entries=change.entries).respond_to(token, response)

    def sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, token: Token, now: Moment
    ) -> CoordinatorResult:
        try:
            member = self._migration.check_member(
                group, request.member_id, request.group_instance_id, request.generation_id
            )
            assert member.classic is not None
            if member.epoch < group.epoch and member.state != UNREVOKED:
                # A member that has to revoke partitions has rejoined already; it learns here which partitions it keeps.
                self._expect_rejoin(group, member, now)
                raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        except KafkaError as error:
            return CoordinatorResult().respond_to(token, sync_refused(error.code))
        self._expect(group, member.member_id, member.classic.session_timeout_ms, now)
        self._timers.cancel((protocol.SYNC, group.group_id, member.member_id))
        response = SyncGroupResponse(
            error_code=ErrorCode.NONE,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=self._migration.assignment_of(member, self._topics),
        )
        return CoordinatorResult().respond_to(token, response)

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, now: Moment) -> int:
        member = self._migration.check_member(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        assert member.classic is not None
        self._expect(group, member.member_id, member.classic.session_timeout_ms, now)
        if not self._migration.must_rejoin(group, member):
            return ErrorCode.NONE
        self._expect_rejoin(group, member, now)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def _expect_rejoin(self, group: ConsumerGroup, member: ConsumerGroupMember, now: Moment) -> None:
        """Gives the member its rebalance timeout to rejoin; heartbeats alone do not keep its partitions."""
        key = (protocol.REJOIN, group.group_id, member.member_id)
        if not self._timers.has(key):
            self._timers.schedule(key, now.after_ms(member.rebalance_timeout_ms))

    def _expect(self, group: ConsumerGroup, member_id: str, timeout_ms: int, now: Moment) -> None:
        self._timers.schedule((protocol.SESSION, group.group_id, member_id), now.after_ms(timeout_ms))

    def leave(
        self, group: ConsumerGroup, request: LeaveGroupRequest, now: Moment
    ) -> tuple[CoordinatorResult, list[MemberResponse]]:
        gone = []
        responses = []
        for identity in request.members:
            member_id = identity.member_id
            if identity.group_instance_id is not None:
                member_id = group.static_members.get(identity.group_instance_id, "")
            member = group.members.get(member_id)
            code = ErrorCode.NONE
            if member is None or (member.classic is None and identity.member_id):
                code = ErrorCode.UNKNOWN_MEMBER_ID
            elif identity.member_id and identity.member_id != member_id:
                code = ErrorCode.FENCED_INSTANCE_ID
            else:
                gone.append(member_id)
            responses.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        return (self.removal(group, gone, now) if gone else CoordinatorResult()), responses

    def removal(self, group: ConsumerGroup, gone: list[str], now: Moment) -> CoordinatorResult:
        """Removes members. If all members that are left are classic, the group becomes a classic group."""
        for member_id in gone:
            self._consumer.forget_deadlines(group.group_id, member_id)
        if not self._migration.can_downgrade(group, gone):
            result = CoordinatorResult(entries=self._consumer.plan_removal(group, gone))
            result.on_written = OnWritten(WrittenChange.REMOVAL, group.group_id)
            return result
        classic = self._migration.downgraded(group, gone, self._topics, now)
        self.downgraded[classic.group_id] = classic
        assignments = {member.member_id: member.assignment for member in classic.members.values()}
        entries = consumer_records.group_tombstones(group)
        entries.append(Entry(GroupMetadataKey(group=group.group_id), classic.to_record(assignments)))
        return CoordinatorResult(
            entries=entries, on_written=OnWritten(WrittenChange.DOWNGRADE, group.group_id)
        )

    def release_waiting(self, group: ClassicGroup, result: CoordinatorResult) -> None:
        """Responds to requests that wait in a classic group that becomes a consumer group: their members have to join
        again."""
        for member in group.members.values():
            if member.join_token is not None:
                refused = join_refused(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
                result.respond_to(member.join_token, refused)
                group.await_join(member, None)
            if member.sync_token is not None:
                result.respond_to(
                    member.sync_token,
                    SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, assignment=b""),
                )
                member.sync_token = None
