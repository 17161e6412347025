"""The classic protocol (KIP-62, 134, 345, 394, 429): JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Rules:
1. A rebalance waits for every member to rejoin, at most for the longest rebalance timeout; dynamic members that did not
   rejoin are removed. A new group waits `group.initial.rebalance.delay.ms`, longer while members keep coming.
2. A dynamic member gets its id first and joins with it (KIP-394), so that a lost response leaves no ghost.
3. Only the leader's SyncGroup decides the assignment. It is written before any member gets it; if the write fails, all
   members rejoin.
4. A member that misses its session timeout is removed; so is one that does not sync within the rebalance timeout.
5. A static member (KIP-345) that joins again with its instance id gets a new member id and keeps its assignment,
   without a rebalance. A process that still uses the old member id is fenced.
6. While a group rebalances, commits and heartbeats of the old generation get REBALANCE_IN_PROGRESS.
"""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.moment import Moment
from strandline.base.tokens import Token
from strandline.groups.classic.group import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    ClassicGroup,
    ClassicGroupMember,
)
from strandline.groups.classic.rebalance import (
    JOIN,
    SESSION,
    SYNC,
    ClassicRebalance,
    join_refused,
    sync_refused,
)
from strandline.groups.members import Caller, member_id_for
from strandline.groups.result import (
    SESSION_EXPIRED,
    CoordinatorResult,
    Entry,
    OnWritten,
    RemovedMember,
    WrittenChange,
)
from strandline.wire.api.k11_join_group import JoinGroupRequest
from strandline.wire.api.k12_heartbeat import HeartbeatRequest
from strandline.wire.api.k13_leave_group import LeaveGroupRequest, MemberResponse
from strandline.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupResponse
from strandline.wire.records.offsets_topic import GroupMetadataKey

MEMBER_ID_REQUIRED_FROM: Final = 4
SKIPS_ASSIGNMENT_FROM: Final = 9

__all__ = ["JOIN", "SESSION", "SYNC", "ClassicGroupProtocol"]


class ClassicGroupProtocol(ClassicRebalance):
    """The requests of the protocol; how a group rebalances is `ClassicRebalance`."""

    def join(
        self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, token: Token, now: Moment
    ) -> CoordinatorResult:
        result = CoordinatorResult()
        names = [protocol.name for protocol in request.protocols]
        if not self._accepts(group, request.member_id):
            group.remove(request.member_id)
            return result.respond_to(token, join_refused("", ErrorCode.GROUP_MAX_SIZE_REACHED))
        if not group.supports(request.protocol_type, names):
            return result.respond_to(
                token, join_refused(request.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            )
        if not request.member_id:
            return self._join_new(group, request, caller, token, now, result)
        return self._join_known(group, request, caller, token, now, result)

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        size_max = self.settings.group_size_max
        if group.state == PREPARING_REBALANCE:
            member = group.members.get(member_id)
            return (member is not None and member.join_token is not None) or group.joined_count < size_max
        if group.state in (COMPLETING_REBALANCE, STABLE):
            return member_id in group.members or len(group.members) < size_max
        return True

    def _join_new(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        caller: Caller,
        token: Token,
        now: Moment,
        result: CoordinatorResult,
    ) -> CoordinatorResult:
        instance_id = request.group_instance_id
        member_id = member_id_for(instance_id or caller.client_id, self._random)
        if instance_id is not None:
            if instance_id in group.static_members:
                return self._replace_static(group, request, caller, member_id, token, now, result)
            return self._add(group, request, caller, member_id, token, now, result)
        if caller.api_version >= MEMBER_ID_REQUIRED_FROM:
            group.pending_members[member_id] = None
            self._expect_heartbeat(group, member_id, request.session_timeout_ms, now)
            return result.respond_to(token, join_refused(member_id, ErrorCode.MEMBER_ID_REQUIRED))
        return self._add(group, request, caller, member_id, token, now, result)

    def _join_known(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        caller: Caller,
        token: Token,
        now: Moment,
        result: CoordinatorResult,
    ) -> CoordinatorResult:
        member_id = request.member_id
        if member_id in group.pending_members:
            return self._add(group, request, caller, member_id, token, now, result)
        try:
            group.check_member(member_id, request.group_instance_id)
        except KafkaError as error:
            return result.respond_to(token, join_refused(member_id, error.code))
        member = group.members[member_id]
        unchanged = _protocols(request) == member.protocols
        if group.state == PREPARING_REBALANCE:
            return self._update(group, member, request, token, now, result)
        if group.state == COMPLETING_REBALANCE and unchanged:
            # The response to the same JoinGroup was lost: the member gets it again.
            return result.respond_to(token, self._joined(group, member))
        if group.state == STABLE and unchanged and group.leader != member_id:
            return result.respond_to(token, self._joined(group, member))
        if group.state in (COMPLETING_REBALANCE, STABLE):
            return self._update(group, member, request, token, now, result)
        return result.respond_to(token, join_refused(member_id, ErrorCode.UNKNOWN_MEMBER_ID))

    def _add(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        caller: Caller,
        member_id: str,
        token: Token,
        now: Moment,
        result: CoordinatorResult,
    ) -> CoordinatorResult:
        member = ClassicGroupMember(
            member_id=member_id,
            instance_id=request.group_instance_id,
            client_id=caller.client_id,
            client_host=caller.client_host,
            rebalance_timeout_ms=_rebalance_timeout(request),
            session_timeout_ms=request.session_timeout_ms,
            protocols=_protocols(request),
            join_token=token,
            is_new=True,
        )
        if group.state == PREPARING_REBALANCE and group.previous_state == EMPTY:
            group.has_new_member = True
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member)
        # The member cannot send heartbeats while it waits, and a broken connection is not noticed: so its wait is
        # bounded.
        self._expect_heartbeat(group, member_id, self.settings.new_member_join_timeout_ms, now)
        return self._rebalance_or_complete(group, now, result)

    def _update(
        self,
        group: ClassicGroup,
        member: ClassicGroupMember,
        request: JoinGroupRequest,
        token: Token,
        now: Moment,
        result: CoordinatorResult,
    ) -> CoordinatorResult:
        group.set_protocols(member, _protocols(request))
        member.rebalance_timeout_ms = _rebalance_timeout(request)
        member.session_timeout_ms = request.session_timeout_ms
        if member.join_token is not None:
            # The same member has sent the request again on another connection; nobody waits for the response to the
            # earlier one.
            result.respond_to(member.join_token, join_refused(member.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
        group.await_join(member, token)
        return self._rebalance_or_complete(group, now, result)

    def _replace_static(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        caller: Caller,
        member_id: str,
        token: Token,
        now: Moment,
        result: CoordinatorResult,
    ) -> CoordinatorResult:
        instance_id = request.group_instance_id
        assert instance_id is not None
        old_leader = group.leader
        member = group.replace_static(instance_id, member_id)
        self._fence_waiting(group, member, result)
        self._expect_heartbeat(group, member_id, member.session_timeout_ms, now)
        group.set_protocols(member, _protocols(request))
        member.rebalance_timeout_ms = _rebalance_timeout(request)
        member.session_timeout_ms = request.session_timeout_ms
        if group.state == STABLE and group.select_protocol() == group.protocol:
            return self._return_static(group, member, old_leader, caller, token, result)
        group.await_join(member, token)
        if group.state == COMPLETING_REBALANCE:
            # The leader may have computed an assignment for the old member id.
            return self._begin_rebalance(group, now, result)
        return self._rebalance_or_complete(group, now, result)

    def _return_static(
        self,
        group: ClassicGroup,
        member: ClassicGroupMember,
        old_leader: str | None,
        caller: Caller,
        token: Token,
        result: CoordinatorResult,
    ) -> CoordinatorResult:
        """Responds to a static member that came back within its session: it keeps its assignment, without a
        rebalance."""
        assignments = {m.member_id: m.assignment for m in group.members.values()}
        result.entries.append(Entry(GroupMetadataKey(group=group.group_id), group.to_record(assignments)))
        response = self._joined(group, member)
        if caller.api_version >= SKIPS_ASSIGNMENT_FROM:
            # The leader gets the list of members but must not assign again (KIP-814).
            response.skip_assignment = group.leader == member.member_id
        else:
            # An older client must not learn that it leads, or it would assign again.
            response.leader = old_leader or ""
            response.members = ()
        return result.respond_to(token, response)

    def _fence_waiting(
        self, group: ClassicGroup, member: ClassicGroupMember, result: CoordinatorResult
    ) -> None:
        if member.join_token is not None:
            result.respond_to(member.join_token, join_refused(member.member_id, ErrorCode.FENCED_INSTANCE_ID))
            group.await_join(member, None)
        if member.sync_token is not None:
            result.respond_to(
                member.sync_token, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, assignment=b"")
            )
            member.sync_token = None

    def sync(
        self, group: ClassicGroup, request: SyncGroupRequest, token: Token, now: Moment
    ) -> CoordinatorResult:
        result = CoordinatorResult()
        try:
            self._check_sync(group, request)
        except KafkaError as error:
            return result.respond_to(token, sync_refused(error.code))
        member = group.members[request.member_id]
        if group.state == STABLE:
            self._synced(group, member.member_id)
            return result.respond_to(token, self._assigned(group, member))
        member.sync_token = token
        self._synced(group, member.member_id)
        if group.leader != request.member_id:
            return result
        assignments = {a.member_id: a.assignment for a in request.assignments if a.member_id in group.members}
        result.entries.append(Entry(GroupMetadataKey(group=group.group_id), group.to_record(assignments)))
        result.on_written = OnWritten(WrittenChange.ASSIGNMENT, group.group_id, group.generation)
        return result

    def _check_sync(self, group: ClassicGroup, request: SyncGroupRequest) -> None:
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        for named, real in (
            (request.protocol_type, group.protocol_type),
            (request.protocol_name, group.protocol),
        ):
            if named is not None and real is not None and named != real:
                raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state == EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if group.state == PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def _synced(self, group: ClassicGroup, member_id: str) -> None:
        group.pending_sync.pop(member_id, None)
        if not group.pending_sync:
            self._timers.cancel((SYNC, group.group_id))

    def assignment_written(
        self, group: ClassicGroup, on_written: OnWritten, now: Moment
    ) -> CoordinatorResult:
        result = CoordinatorResult()
        if group.state == COMPLETING_REBALANCE and group.generation == on_written.generation:
            self._tell_assignments(group, ErrorCode.NONE, now, result)
            group.move_to(STABLE, now.wall_ms)
            self._times.complete(group.group_id, now)
        return result

    def assignment_not_written(
        self, group: ClassicGroup, on_written: OnWritten, code: int, now: Moment
    ) -> CoordinatorResult:
        result = CoordinatorResult()
        if group.state == COMPLETING_REBALANCE and group.generation == on_written.generation:
            self._tell_assignments(group, code, now, result)
            return self._begin_rebalance(group, now, result)
        return result

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest, now: Moment) -> int:
        """Returns the error code of the response."""
        if group.state == DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if group.state == EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member = group.members[request.member_id]
        self._expect_heartbeat(group, member.member_id, member.session_timeout_ms, now)
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state == PREPARING_REBALANCE else ErrorCode.NONE

    def leave(
        self, group: ClassicGroup, request: LeaveGroupRequest, now: Moment
    ) -> tuple[CoordinatorResult, list[MemberResponse]]:
        result = CoordinatorResult()
        responses = []
        left_any = False
        for identity in request.members:
            member_id, code = identity.member_id, int(ErrorCode.NONE)
            if not member_id and identity.group_instance_id is not None:
                member_id = group.static_members.get(identity.group_instance_id, "")
                code = ErrorCode.NONE if member_id else ErrorCode.UNKNOWN_MEMBER_ID
            elif member_id in group.pending_members:
                group.remove(member_id)
                self._timers.cancel((SESSION, group.group_id, member_id))
                member_id = ""
            else:
                try:
                    group.check_member(member_id, identity.group_instance_id)
                except KafkaError as error:
                    code = error.code
            if code == ErrorCode.NONE and member_id:
                self._remove(group, group.members[member_id], result)
                left_any = True
            responses.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        if left_any:
            self._after_removal(group, now, result)
        else:
            self._after_fewer_expected(group, now, result)
        return result, responses

    def session_expired(self, group: ClassicGroup, member_id: str, now: Moment) -> CoordinatorResult:
        result = CoordinatorResult()
        if member_id in group.pending_members:
            group.remove(member_id)
            return self._after_fewer_expected(group, now, result)
        if member_id in group.members:
            member = group.members[member_id]
            waits = member.join_token is not None if not member.is_new else False
            if waits or member.sync_token is not None:
                return result  # a member that waits for a response has not missed a heartbeat
            self._remove(group, member, result)
            result.removed.append(RemovedMember(group.group_id, member_id, SESSION_EXPIRED))
            return self._after_removal(group, now, result)
        return result

    def heard_of(self, group: ClassicGroup, member_id: str, now: Moment) -> None:
        """Renews the session of a member that has committed: a commit counts as a heartbeat."""
        self._expect_heartbeat(group, member_id, group.members[member_id].session_timeout_ms, now)


def _protocols(request: JoinGroupRequest) -> tuple[tuple[str, bytes], ...]:
    return tuple((protocol.name, protocol.metadata) for protocol in request.protocols)


def _rebalance_timeout(request: JoinGroupRequest) -> int:
    """Returns the rebalance timeout; in version 0 it is the session timeout."""
    return request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
