"""One partition of `__consumer_offsets` as a machine: the groups and offsets that belong to it.

A method looks at the state and gives an `Outcome`: answers and records. What is written down changes only by `apply`,
which the shell calls for each record it has appended, and in a loop when it loads the partition after a failover. What
a classic group has in memory beside that (who waits, who was given an id) is lost with its coordinator, as in Kafka:
members find the new one and join again.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.groups import classic
from strandline.groups.classic import ClassicProtocol
from strandline.groups.classic_group import DEAD, EMPTY, STABLE, ClassicGroup
from strandline.groups.members import Caller
from strandline.groups.offset_requests import OffsetRequests
from strandline.groups.offsets import Offsets
from strandline.groups.outcome import After, Entry, Outcome, Token
from strandline.groups.settings import GroupSettings, Moment
from strandline.groups.timers import Timers
from strandline.ports.random import Random
from strandline.wire.api.k11_join_group import JoinGroupRequest, JoinGroupResponse
from strandline.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.wire.api.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from strandline.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupResponse
from strandline.wire.records.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from strandline.wire.schema import Message


class GroupShard:
    def __init__(self, settings: GroupSettings, random: Random) -> None:
        self.settings = settings
        self.timers = Timers()
        self.classic = ClassicProtocol(settings, self.timers, random)
        self.groups: dict[str, ClassicGroup] = {}
        self.offsets = Offsets()
        self.offset_requests = OffsetRequests(self)

    # What is written down

    def apply(self, key: Message, value: Message | None) -> None:
        match key:
            case OffsetCommitKey():
                assert value is None or isinstance(value, OffsetCommitValue)
                self.offsets.apply(key, value)
            case GroupMetadataKey():
                assert value is None or isinstance(value, GroupMetadataValue)
                self._apply_classic(key.group, value)
            case _:
                pass  # written by a newer version

    def _apply_classic(self, group_id: str, value: GroupMetadataValue | None) -> None:
        """On the coordinator that wrote it the group in memory is ahead of its record; elsewhere this makes it."""
        if value is None:
            group = self.groups.pop(group_id, None)
            if group is not None:
                group.state = DEAD
        elif group_id not in self.groups:
            self.groups[group_id] = ClassicGroup.from_record(group_id, value)

    def replay(self, key: Message, value: Message | None) -> None:
        """`apply` while loading: a later record of a group replaces what an earlier one made."""
        if isinstance(key, GroupMetadataKey) and value is not None:
            self.groups.pop(key.group, None)
        self.apply(key, value)

    def loaded(self, now: Moment) -> None:
        for group in self.groups.values():
            self.classic.loaded(group, now)

    # Requests of members

    def join(self, request: JoinGroupRequest, caller: Caller, token: Token, now: Moment) -> Outcome:
        if not request.group_id:
            return Outcome().answer(token, _join_refused(request, ErrorCode.INVALID_GROUP_ID))
        settings = self.settings
        if (
            not settings.session_timeout_min_ms
            <= request.session_timeout_ms
            <= settings.session_timeout_max_ms
        ):
            return Outcome().answer(token, _join_refused(request, ErrorCode.INVALID_SESSION_TIMEOUT))
        group = self.groups.get(request.group_id)
        if group is None:
            if request.member_id:
                return Outcome().answer(token, _join_refused(request, ErrorCode.UNKNOWN_MEMBER_ID))
            group = self.groups[request.group_id] = ClassicGroup(group_id=request.group_id)
            group.state_since_ms = now.wall_ms
        return self.classic.join(group, request, caller, token, now)

    def sync(self, request: SyncGroupRequest, token: Token, now: Moment) -> Outcome:
        group = self.groups.get(request.group_id)
        if not request.group_id:
            return Outcome().answer(token, _sync_refused(ErrorCode.INVALID_GROUP_ID))
        if group is None:
            return Outcome().answer(token, _sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        return self.classic.sync(group, request, token, now)

    def heartbeat(self, request: HeartbeatRequest, now: Moment) -> HeartbeatResponse:
        group = self.groups.get(request.group_id)
        if not request.group_id:
            code = int(ErrorCode.INVALID_GROUP_ID)
        elif group is None:
            code = ErrorCode.UNKNOWN_MEMBER_ID
        else:
            try:
                code = self.classic.heartbeat(group, request, now)
            except KafkaError as error:
                code = error.code
        return HeartbeatResponse(error_code=code)

    def leave(self, request: LeaveGroupRequest, version: int, token: Token, now: Moment) -> Outcome:
        if version < 3:
            request = LeaveGroupRequest(
                group_id=request.group_id, members=(MemberIdentity(member_id=request.member_id),)
            )
        group = self.groups.get(request.group_id)
        if group is None or not request.group_id:
            code = ErrorCode.UNKNOWN_MEMBER_ID if request.group_id else ErrorCode.INVALID_GROUP_ID
            return Outcome().answer(token, LeaveGroupResponse(error_code=code))
        outcome, members = self.classic.leave(group, request, now)
        if version < 3:
            return outcome.answer(token, LeaveGroupResponse(error_code=members[0].error_code))
        return outcome.answer(token, LeaveGroupResponse(error_code=ErrorCode.NONE, members=tuple(members)))

    # What happens by itself

    def written(self, after: After, now: Moment) -> Outcome:
        group = self.groups.get(after.group_id)
        if group is not None and after.what == classic.SYNC:
            return self.classic.assignment_written(group, after, now)
        return Outcome()

    def write_failed(self, after: After, code: int, now: Moment) -> Outcome:
        group = self.groups.get(after.group_id)
        if group is not None and after.what == classic.SYNC:
            return self.classic.assignment_not_written(group, after, code, now)
        return Outcome()

    def next_deadline(self) -> float | None:
        return self.timers.next_deadline()

    def expire(self, now: Moment) -> list[Outcome]:
        """What has to happen because time has passed."""
        outcomes = []
        for kind, group_id, *rest in self.timers.due(now.monotonic):
            group = self.groups.get(group_id)
            if group is None:
                continue
            match kind:
                case classic.JOIN:
                    outcomes.append(self.classic.join_expired(group, now))
                case classic.SYNC:
                    outcomes.append(self.classic.sync_expired(group, now))
                case classic.SESSION:
                    outcomes.append(self.classic.session_expired(group, rest[0], now))
                case _:
                    raise AssertionError(f"no such timer: {kind}")
        return outcomes

    def expire_offsets(self, now: Moment) -> Outcome:
        """Offsets nobody can want any more, and empty groups without offsets, as tombstones."""
        outcome = Outcome()
        for group_id in self.offsets.groups():
            outcome.entries += self.offset_requests.expired(group_id, now)
        for group in self.groups.values():
            if group.state == EMPTY and not group.pending_members:
                left = sum(len(partitions) for partitions in self.offsets.of_group(group.group_id).values())
                expired = sum(
                    isinstance(e.key, OffsetCommitKey) and e.key.group == group.group_id
                    for e in outcome.entries
                )
                if left == expired:
                    outcome.entries.append(Entry(GroupMetadataKey(group=group.group_id), None))
        return outcome

    def delete_group(self, group_id: str) -> tuple[Outcome, int]:
        """Tombstones of an empty group and its offsets, and the error code of the answer."""
        group = self.groups.get(group_id)
        offsets = self.offsets.of_group(group_id)
        if not group_id:
            return Outcome(), ErrorCode.INVALID_GROUP_ID
        if group is None and not offsets:
            return Outcome(), ErrorCode.GROUP_ID_NOT_FOUND
        if group is not None and (group.state != EMPTY or group.pending_members):
            return Outcome(), ErrorCode.NON_EMPTY_GROUP
        entries = self.offsets.tombstones(group_id)
        if group is not None:
            entries.append(Entry(GroupMetadataKey(group=group_id), None))
        return Outcome(entries=entries), ErrorCode.NONE

    def check_invariants(self) -> None:
        for group in self.groups.values():
            assert group.leader is None or group.leader in group.members, group
            assert group.state != STABLE or group.members, group
            assert all(group.members[m].instance_id == i for i, m in group.static_members.items()), group


def _join_refused(request: JoinGroupRequest, code: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code, member_id=request.member_id, protocol_name="", leader="", members=()
    )


def _sync_refused(code: int) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, assignment=b"")
