"""The rebalance of a classic group: it waits for its members, begins a generation, sends assignments, removes
members."""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.moment import Moment
from strandline.groups.classic.group import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    ClassicGroup,
    ClassicGroupMember,
)
from strandline.groups.rebalance_times import RebalanceTimes
from strandline.groups.result import NOT_REJOINED, NOT_SYNCED, CoordinatorResult, Entry, RemovedMember
from strandline.groups.settings import GroupSettings
from strandline.groups.timers import Timers
from strandline.ports.random import Random
from strandline.wire.api.k11_join_group import JoinGroupResponse, JoinGroupResponseMember
from strandline.wire.api.k14_sync_group import SyncGroupResponse
from strandline.wire.records.offsets_topic import GroupMetadataKey

JOIN: Final = "join"
SYNC: Final = "sync"
SESSION: Final = "session"


class ClassicRebalance:
    def __init__(
        self, settings: GroupSettings, timers: Timers, random: Random, times: RebalanceTimes
    ) -> None:
        self.settings = settings
        self._timers = timers
        self._random = random
        self._times = times

    def _rebalance_or_complete(
        self, group: ClassicGroup, now: Moment, result: CoordinatorResult
    ) -> CoordinatorResult:
        if group.can_rebalance:
            return self._begin_rebalance(group, now, result)
        if group.state == PREPARING_REBALANCE and group.previous_state != EMPTY and group.has_all_joined:
            return self._complete_join(group, now, result)
        return result

    def _begin_rebalance(
        self, group: ClassicGroup, now: Moment, result: CoordinatorResult
    ) -> CoordinatorResult:
        if group.state == COMPLETING_REBALANCE:
            self._tell_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS, now, result)
        group.pending_sync.clear()
        self._timers.cancel((SYNC, group.group_id))
        self._times.begin(group.group_id, now)
        is_first = group.state == EMPTY
        group.move_to(PREPARING_REBALANCE, now.wall_ms)
        if is_first:
            group.has_new_member = False
            self._timers.schedule(
                (JOIN, group.group_id), now.after_ms(self.settings.initial_rebalance_delay_ms)
            )
            group.initial_left_ms = max(
                group.rebalance_timeout_ms - self.settings.initial_rebalance_delay_ms, 0
            )
            return result
        if group.has_all_joined:
            return self._complete_join(group, now, result)
        self._timers.schedule((JOIN, group.group_id), now.after_ms(group.rebalance_timeout_ms))
        return result

    def join_expired(self, group: ClassicGroup, now: Moment) -> CoordinatorResult:
        """Ends the wait for members to rejoin; prolongs the initial delay of a new group while members keep coming."""
        if group.state != PREPARING_REBALANCE:
            return CoordinatorResult()
        if group.previous_state == EMPTY and group.has_new_member and group.initial_left_ms > 0:
            group.has_new_member = False
            delay_ms = min(self.settings.initial_rebalance_delay_ms, group.initial_left_ms)
            group.initial_left_ms -= delay_ms
            self._timers.schedule((JOIN, group.group_id), now.after_ms(delay_ms))
            return CoordinatorResult()
        return self._complete_join(group, now, CoordinatorResult())

    def _complete_join(
        self, group: ClassicGroup, now: Moment, result: CoordinatorResult
    ) -> CoordinatorResult:
        """Begins a generation with the members that have rejoined, and removes dynamic members that have not."""
        self._timers.cancel((JOIN, group.group_id))
        for member in list(group.members.values()):
            if member.join_token is None and member.instance_id is None:
                group.remove(member.member_id)
                self._timers.cancel((SESSION, group.group_id, member.member_id))
                result.removed.append(RemovedMember(group.group_id, member.member_id, NOT_REJOINED))
        if not group.elect_joined_leader() and group.members:
            # Only static members are left, which have not come back: wait for them, or for their sessions to end.
            self._timers.schedule((JOIN, group.group_id), now.after_ms(group.rebalance_timeout_ms))
            return result
        group.begin_generation(now.wall_ms)
        if group.state == EMPTY:
            self._times.forget(group.group_id)
            result.entries.append(Entry(GroupMetadataKey(group=group.group_id), group.to_record({})))
            return result
        for member in group.members.values():
            if member.join_token is not None:
                result.respond_to(member.join_token, self._joined(group, member))
                group.await_join(member, None)
            self._expect_heartbeat(group, member.member_id, member.session_timeout_ms, now)
            member.is_new = False
            group.pending_sync[member.member_id] = None
        self._timers.schedule((SYNC, group.group_id), now.after_ms(group.rebalance_timeout_ms))
        return result

    def _joined(self, group: ClassicGroup, member: ClassicGroupMember) -> JoinGroupResponse:
        members: tuple[JoinGroupResponseMember, ...] = ()
        if group.leader == member.member_id:
            members = tuple(
                JoinGroupResponseMember(
                    member_id=m.member_id,
                    group_instance_id=m.instance_id,
                    metadata=m.metadata_for(group.protocol or ""),
                )
                for m in group.members.values()
            )
        return JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            leader=group.leader or "",
            member_id=member.member_id,
            members=members,
        )

    def _tell_assignments(
        self, group: ClassicGroup, code: int, now: Moment, result: CoordinatorResult
    ) -> None:
        for member in group.members.values():
            if code != ErrorCode.NONE:
                member.assignment = b""
            if member.sync_token is None:
                continue
            if code == ErrorCode.NONE:
                response = self._assigned(group, member)
            else:
                response = SyncGroupResponse(error_code=code, assignment=b"")
            result.respond_to(member.sync_token, response)
            member.sync_token = None
            self._expect_heartbeat(group, member.member_id, member.session_timeout_ms, now)

    def _assigned(self, group: ClassicGroup, member: ClassicGroupMember) -> SyncGroupResponse:
        return SyncGroupResponse(
            error_code=ErrorCode.NONE,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            assignment=member.assignment,
        )

    def sync_expired(self, group: ClassicGroup, now: Moment) -> CoordinatorResult:
        """Removes members that joined and did not sync within the rebalance timeout."""
        result = CoordinatorResult()
        if group.state in (COMPLETING_REBALANCE, STABLE) and group.pending_sync:
            for member_id in list(group.pending_sync):
                group.remove(member_id)
                self._timers.cancel((SESSION, group.group_id, member_id))
                result.removed.append(RemovedMember(group.group_id, member_id, NOT_SYNCED))
            return self._begin_rebalance(group, now, result)
        return result

    def _remove(self, group: ClassicGroup, member: ClassicGroupMember, result: CoordinatorResult) -> None:
        if member.join_token is not None:
            result.respond_to(member.join_token, join_refused("", ErrorCode.UNKNOWN_MEMBER_ID))
        if member.sync_token is not None:
            result.respond_to(
                member.sync_token, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, assignment=b"")
            )
        group.remove(member.member_id)
        self._timers.cancel((SESSION, group.group_id, member.member_id))

    def _after_removal(
        self, group: ClassicGroup, now: Moment, result: CoordinatorResult
    ) -> CoordinatorResult:
        if group.state in (STABLE, COMPLETING_REBALANCE):
            return self._begin_rebalance(group, now, result)
        return self._after_fewer_expected(group, now, result)

    def _after_fewer_expected(
        self, group: ClassicGroup, now: Moment, result: CoordinatorResult
    ) -> CoordinatorResult:
        """Completes a rebalance that only waited for the member that is gone now."""
        if group.state == PREPARING_REBALANCE and group.has_all_joined and group.previous_state != EMPTY:
            return self._complete_join(group, now, result)
        return result

    def _expect_heartbeat(self, group: ClassicGroup, member_id: str, timeout_ms: int, now: Moment) -> None:
        self._timers.schedule((SESSION, group.group_id, member_id), now.after_ms(timeout_ms))

    def rebalance(self, group: ClassicGroup, now: Moment) -> CoordinatorResult:
        """Begins a rebalance for which no member has asked."""
        return (
            self._begin_rebalance(group, now, CoordinatorResult())
            if group.can_rebalance
            else CoordinatorResult()
        )

    def forget_deadlines(self, group: ClassicGroup) -> None:
        self._timers.cancel((JOIN, group.group_id))
        self._timers.cancel((SYNC, group.group_id))
        for member_id in (*group.members, *group.pending_members):
            self._timers.cancel((SESSION, group.group_id, member_id))

    def loaded(self, group: ClassicGroup, now: Moment) -> None:
        """Begins the sessions of a group that was loaded from the log: each member has its whole session timeout."""
        for member in group.members.values():
            self._expect_heartbeat(group, member.member_id, member.session_timeout_ms, now)


def join_refused(member_id: str, code: int) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None, leader="", members=())


def sync_refused(code: int) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, assignment=b"")
