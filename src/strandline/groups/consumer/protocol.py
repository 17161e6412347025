"""The consumer protocol (KIP-848): one heartbeat joins, leaves, reports owned partitions and learns the assignment.

A heartbeat is a plan: it returns records and a response, and `ConsumerGroup` changes when the records are applied. Only
deadlines are not in the records: a member is removed if it sends no heartbeat for the session timeout, or does not
revoke partitions within its rebalance timeout.

A static member that closes sends epoch -2: it keeps its place and its partitions until its session ends. A process that
joins with the same instance id in that time takes them over under its own member id.
"""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import uuid_text
from strandline.base.moment import Moment
from strandline.groups.consumer import records as consumer_records
from strandline.groups.consumer.changes import REVOCATION, ConsumerChanges
from strandline.groups.consumer.group import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    UNREVOKED,
    ConsumerGroup,
    ConsumerGroupMember,
)
from strandline.groups.consumer.reassignment_resend import ReassignmentResend
from strandline.groups.consumer.reconciliation import Reported
from strandline.groups.consumer.requests import Join, as_requested, says_nothing_new
from strandline.groups.members import Caller
from strandline.groups.rebalance_times import RebalanceTimes
from strandline.groups.result import NOT_REJOINED, NOT_REVOKED, NOT_SYNCED, SESSION_EXPIRED, Entry
from strandline.groups.settings import GroupSettings
from strandline.groups.timers import Timers
from strandline.groups.topics import DescribableTopics, Topics
from strandline.ports.random import Random
from strandline.wire.api.k68_consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)

SESSION: Final = "consumer-session"
REJOIN: Final = "consumer-rejoin"  # a classic member that has to rejoin
SYNC: Final = "consumer-sync"  # a classic member that has joined
# Why a member that misses one is removed.
DEADLINES: Final = {
    SESSION: SESSION_EXPIRED,
    REVOCATION: NOT_REVOKED,
    REJOIN: NOT_REJOINED,
    SYNC: NOT_SYNCED,
}
_MEMBER_ID_REQUIRED_FROM: Final = 1
_REMOVAL_RETRY_MS: Final = 500


class ConsumerProtocol(ConsumerChanges):
    """The requests of the protocol; `ConsumerChanges` plans the changes that they make."""

    def __init__(
        self, settings: GroupSettings, timers: Timers, random: Random, times: RebalanceTimes
    ) -> None:
        super().__init__(settings, timers, times)
        self._random = random
        self._resend = ReassignmentResend()

    # Heartbeats

    def check(self, request: ConsumerGroupHeartbeatRequest, version: int) -> None:
        """Raises KafkaError if a request is invalid for any group."""
        epoch = request.member_epoch
        needs_id = version >= _MEMBER_ID_REQUIRED_FROM or epoch > 0 or epoch == LEAVE_EPOCH
        if needs_id and not request.member_id:
            raise _invalid("MemberId can't be empty.")
        for name, value in (
            ("GroupId", request.group_id),
            ("InstanceId", request.instance_id),
            ("RackId", request.rack_id),
        ):
            if value == "":
                raise _invalid(f"{name} can't be empty.")
        if epoch == 0:
            if request.rebalance_timeout_ms == -1:
                raise _invalid("RebalanceTimeoutMs must be provided in first request.")
            if request.topic_partitions is None or request.topic_partitions:
                raise _invalid("TopicPartitions must be empty when (re-)joining.")
            if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
                raise _invalid(
                    "Either SubscribedTopicNames or SubscribedTopicRegex must be given when (re-)joining."
                )
        elif epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
        elif epoch < STATIC_LEAVE_EPOCH:
            raise _invalid("MemberEpoch is invalid.")
        assignor = request.server_assignor
        if assignor is not None and assignor not in self.settings.consumer_assignors:
            known = ", ".join(self.settings.consumer_assignors)
            raise KafkaError(
                ErrorCode.UNSUPPORTED_ASSIGNOR, f"Assignor {assignor!r} is not known. Use one of {known}."
            )

    def plan_heartbeat(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        topics: Topics,
        now: Moment,
    ) -> tuple[list[Entry], ConsumerGroupHeartbeatResponse]:
        member_id = request.member_id or uuid_text(self._random.uuid())
        reported: Reported = None
        if request.topic_partitions is not None:
            reported = {topic.topic_id: topic.partitions for topic in request.topic_partitions}
        self._check_size(group, member_id)
        known, replaced = self._find(group, member_id, request.instance_id, request.member_epoch, reported)
        requested = (
            known if says_nothing_new(request, known, caller) else as_requested(request, known, caller)
        )
        if caller.may_describe is not None:
            topics = DescribableTopics(topics, caller.may_describe)
        change = self.plan_change(group, known, replaced, requested, reported, topics, now)
        is_full = (
            request.rebalance_timeout_ms != -1
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
            and reported is not None
        )
        is_new = request.member_epoch == 0 or is_full or change.has_new_assignment
        return change.entries, self._response(group.group_id, change.member, reported, is_new, now)

    def can_join_together(self, group: ConsumerGroup, joins: list[Join]) -> bool:
        names = {join.request.member_id for join in joins}
        return (
            len(names) == len(joins)
            and names.isdisjoint(group.members)
            and len(group.members) + len(names) <= self.settings.consumer_group_size_max
            and all(join.is_plain() and self._is_sound(join) for join in joins)
        )

    def _is_sound(self, join: Join) -> bool:
        try:
            self.check(join.request, join.caller.api_version)
        except KafkaError:
            return False
        return True

    def plan_joining(
        self, group: ConsumerGroup, joins: list[Join], topics: Topics, now: Moment
    ) -> tuple[list[Entry], list[ConsumerGroupHeartbeatResponse]]:
        newcomers = [
            as_requested(request, ConsumerGroupMember(member_id=request.member_id), caller)
            for request, caller, _ in joins
        ]
        may_describe = joins[0].caller.may_describe
        if may_describe is not None:
            topics = DescribableTopics(topics, may_describe)
        entries, placed = self.plan_joins(group, newcomers, topics, now)
        return entries, [self._response(group.group_id, member, {}, True, now) for member in placed]

    def _response(
        self, group_id: str, member: ConsumerGroupMember, reported: Reported, is_new: bool, now: Moment
    ) -> ConsumerGroupHeartbeatResponse:
        """Returns the response to a heartbeat, and begins the member's session again."""
        times = self.settings.consumer_times(group_id)
        self._expect(group_id, member, times.session_timeout_ms, now)
        response = ConsumerGroupHeartbeatResponse(
            throttle_time_ms=0,
            error_code=ErrorCode.NONE,
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=times.heartbeat_interval_ms,
        )
        about = (group_id, member.member_id, member.assigned, reported)
        self._resend.confirm(*about)
        if is_new or self._resend.is_due(group_id, member.member_id, now):
            self._resend.sent(*about, times.heartbeat_interval_ms, now)
            response.assignment = Assignment(
                topic_partitions=tuple(
                    ResponseTopicPartitions(topic_id=topic_id, partitions=tuple(sorted(indexes)))
                    for topic_id, indexes in sorted(member.assigned.items())
                )
            )
        return response

    def _check_size(self, group: ConsumerGroup, member_id: str) -> None:
        if member_id not in group.members and len(group.members) >= self.settings.consumer_group_size_max:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The group has its maximum of {self.settings.consumer_group_size_max} members.",
            )

    def _find(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, epoch: int, reported: Reported
    ) -> tuple[ConsumerGroupMember, ConsumerGroupMember | None]:
        """Returns the known member, or a new one; and the static member whose place it takes, if there is one."""
        if instance_id is None:
            known = group.members.get(member_id)
            if known is None:
                if epoch != 0:
                    raise KafkaError(
                        ErrorCode.UNKNOWN_MEMBER_ID,
                        f"Member {member_id} is not a member of group {group.group_id}.",
                    )
                return ConsumerGroupMember(member_id=member_id), None
            _check_epoch(known, epoch, reported)
            return known, None
        old_id = group.static_members.get(instance_id)
        old = None if old_id is None else group.members[old_id]
        if epoch == 0:
            if old is None:
                return ConsumerGroupMember(member_id=member_id), None
            if old.member_id == member_id:
                return old, None
            if old.classic is None and old.epoch != STATIC_LEAVE_EPOCH:
                raise KafkaError(
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
                    f"instance id is owned by {old.member_id} member.",
                )
            return old._replace(member_id=member_id, epoch=0, previous_epoch=0), old
        if old is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if old.member_id != member_id:
            raise KafkaError(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} was fenced.",
            )
        _check_epoch(old, epoch, reported)
        return old, None

    # Leaving

    def plan_leave(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, now: Moment
    ) -> tuple[list[Entry], list[str]]:
        """Returns the records of a heartbeat that leaves, and the members that are gone. A static member that will come
        back is not gone."""
        if request.instance_id is None:
            member = group.members.get(request.member_id)
        else:
            member = group.members.get(group.static_members.get(request.instance_id, ""))
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"There is no member {request.member_id}.")
        if member.member_id != request.member_id:
            raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, f"Member {request.member_id} was fenced.")
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            away = member._replace(epoch=STATIC_LEAVE_EPOCH, revoking={})
            self._timers.cancel((REVOCATION, group.group_id, member.member_id))
            return [consumer_records.current_entry(group.group_id, away)], []
        return self.plan_removal(group, [member.member_id]), [member.member_id]

    def plan_removal(self, group: ConsumerGroup, member_ids: list[str]) -> list[Entry]:
        entries = [
            e
            for member_id in member_ids
            for e in consumer_records.member_tombstones(group.group_id, member_id)
        ]
        left = [member for member in group.members.values() if member.member_id not in member_ids]
        used = {member.topic_regex for member in left}
        entries += [
            consumer_records.regex_entry(group.group_id, regex, None)
            for regex in group.regexes
            if regex not in used
        ]
        entries.append(consumer_records.group_entry(group.group_id, group.epoch + 1, group.metadata_hash))
        return entries

    def forget_deadlines(self, group_id: str, member_id: str) -> None:
        self._resend.forget(group_id, member_id)
        for kind in DEADLINES:
            self._timers.cancel((kind, group_id, member_id))

    # Time

    def _expect(self, group_id: str, member: ConsumerGroupMember, timeout_ms: int, now: Moment) -> None:
        self._timers.schedule((SESSION, group_id, member.member_id), now.after_ms(timeout_ms))

    def watch_again(self, group: ConsumerGroup, now: Moment) -> None:
        """Sets new deadlines after a removal that could not be written, so that it is tried again.

        A heartbeat saves a member from removal, unless the member had partitions to revoke and does not revoke them.
        """
        for member in group.members.values():
            if not self._timers.has((SESSION, group.group_id, member.member_id)):
                self._expect(group.group_id, member, _REMOVAL_RETRY_MS, now)
                if member.state == UNREVOKED:
                    key = (REVOCATION, group.group_id, member.member_id)
                    self._timers.schedule(key, now.after_ms(_REMOVAL_RETRY_MS))

    def loaded(self, group: ConsumerGroup, now: Moment) -> None:
        for member in group.members.values():
            timeout_ms = self.settings.consumer_times(group.group_id).session_timeout_ms
            if member.classic is not None:
                timeout_ms = member.classic.session_timeout_ms
            self._expect(group.group_id, member, timeout_ms, now)
            if (
                member.state == UNREVOKED and member.epoch != STATIC_LEAVE_EPOCH
            ):  # a member that is away has revoked them
                key = (REVOCATION, group.group_id, member.member_id)
                self._timers.schedule(key, now.after_ms(member.rebalance_timeout_ms))


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _check_epoch(member: ConsumerGroupMember, epoch: int, reported: Reported) -> None:
    """Checks that the member is at the coordinator's epoch, or at the one before if the response with the new one was
    lost."""
    if epoch in (0, member.epoch):
        return
    is_lost_response = (
        epoch < member.epoch and epoch == member.previous_epoch and _is_part_of(reported, member)
    )
    if not is_lost_response:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The member's epoch is {member.epoch}, not {epoch}. It must abandon all its partitions and rejoin.",
        )


def _is_part_of(reported: Reported, member: ConsumerGroupMember) -> bool:
    if reported is None:
        return False
    return all(
        index in member.assigned.get(topic_id, {})
        for topic_id, indexes in reported.items()
        for index in indexes
    )
