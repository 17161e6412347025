"""The rules that a group must never break, as its members see it and as its log says: rules of Kafka, not of our code.

1. Nothing is told that the committed part of the log does not say: assignments, member epochs, offsets.
2. No partition belongs to two members that are both alive and in the group.
3. A member outside of the present generation or epoch commits nothing, nor does one whose place another has taken, nor
   one that has left. Between join and sync there is nothing to commit yet. (KIP-345, KIP-429, KIP-848)
4. A member that is heard of within its session, and does what it is told within its rebalance timeout, stays. (KIP-62)
5. A member whose instance id is taken is fenced, and does not think that it was merely forgotten; an instance id that a
   living consumer holds is not given away. (KIP-345, KIP-848)
6. A generation has a protocol that all of its members offered, and is assigned once. (KIP-814)
7. An offset that was committed of a topic is not shown as one of the next topic of that name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.sim.history import Violation
from strandline.wire.api.k08_offset_commit import OffsetCommitRequest
from strandline.wire.api.k09_offset_fetch import OffsetFetchRequest
from strandline.wire.api.k11_join_group import JoinGroupRequest
from strandline.wire.api.k12_heartbeat import HeartbeatRequest
from strandline.wire.api.k13_leave_group import LeaveGroupRequest
from strandline.wire.api.k14_sync_group import SyncGroupRequest
from strandline.wire.api.k42_delete_groups import DeleteGroupsRequest
from strandline.wire.api.k47_offset_delete import OffsetDeleteRequest
from strandline.wire.api.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.sim.group_calls import Call, Known, owned_in, partitions_in
from tests.sim.group_deletions import DeletionJudge
from tests.sim.group_records import GroupRecords, Held, held_in
from tests.sim.led_partition import LedPartition
from tests.unit.groups.machine import FakeTopics, topic_id

_AWAY = -2
_UNDISTURBED_S = 1.5  # less than the shortest session or rebalance timeout of a member
_READ_S = 0.1  # what is written is seen a moment later
_REMOVED = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)
_GONE = (*_REMOVED, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.FENCED_MEMBER_EPOCH)


class GroupJudge:
    def __init__(
        self,
        log: LedPartition,
        topics: FakeTopics,
        session_s: float,
        retention_s: float,
        group_id: str = "g",
    ) -> None:
        self._log = log
        self._topics = topics
        self.deletions = DeletionJudge(log, group_id, retention_s, self._is_known_alive)
        self._session_s = session_s
        self._group_id = group_id
        self.committed = GroupRecords()
        self.written = GroupRecords()
        self.known: dict[str, Known] = {}
        self._static: dict[str, str] = {}  # instance id to the member id that was given to it last
        self._joining: dict[str, Call | None] = {}  # the last JoinGroup by instance id that was not refused
        # When a member asked to join and was not told what came of it: its generation may have begun then, and with it
        # the time in which it has to sync.
        self._joining_since: dict[str, float] = {}
        self._told_generation = -1
        self._deletions = 0
        self.found_generation = -1  # that the present coordinator found in the log
        self._told_at = 0.0  # when its first member was told
        self._disturbed_at = -1.0  # when somebody last came or went
        self._unsettled_at = (
            -1.0
        )  # when something was last written and not committed: responses wait for that
        self.calls: list[Call] = []
        self._rules: dict[type, Callable[[Call, Any], None]] = {
            JoinGroupRequest: self._joined,
            SyncGroupRequest: self._synced,
            HeartbeatRequest: self._beaten,
            LeaveGroupRequest: lambda call, response: None,
            ConsumerGroupHeartbeatRequest: self._consumer_beaten,
            OffsetCommitRequest: self._commit_accepted,
            OffsetFetchRequest: self._fetched,
            DeleteGroupsRequest: self.deletions.given,
            OffsetDeleteRequest: self.deletions.given,
        }

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def read(self) -> None:
        self.deletions.read()
        self.committed.read_to(self._log.batches, self._log.committed_end)
        self.written.read_to(self._log.batches, self._log.replica.log.log_end_offset)
        if self._log.replica.high_watermark < self._log.replica.log.log_end_offset:
            self._unsettled_at = self.now
        if self._group_id in self.written.epochs or self.written.deletions != self._deletions:
            # What is a classic group after this counts from where the consumer group ends, or from the start.
            self._told_generation = -1
        self._deletions = self.written.deletions
        for member in self.known.values():
            current = self.written.current.get((self._group_id, member.member_id))
            if current is None:
                continue  # perhaps removed because it took too long
            if not current.partitions_pending_revocation:
                member.revoking_since = None
            elif member.revoking_since is None:
                member.revoking_since = self.now

    def failed_over(self) -> None:
        """Forgets what a failover may have lost: records that were not committed, and the state that a classic group
        has in memory."""
        self.written = GroupRecords()
        self._joining.clear()
        self.read()
        classic = self.written.classic.get(self._group_id)
        committed = self.committed.classic.get(self._group_id)
        self._told_generation = self.found_generation = -1 if classic is None else classic.generation
        kept = [m.member_id for m in classic.members] if classic is not None else []
        certain = [m.member_id for m in committed.members] if committed is not None else []
        for member_id, member in self.known.items():
            is_written = member_id in kept or (self._group_id, member_id) in self.written.members
            is_certain = member_id in certain or (self._group_id, member_id) in self.committed.members
            if not (is_written and is_certain):
                member.is_gone = True
        for instance_id, member_id in list(self._static.items()):
            if self.known[member_id].is_gone:
                del self._static[instance_id]

    def judge(self, look: Callable[[], None]) -> None:
        """A violation ends the run, whatever code catches exceptions on its way."""
        try:
            look()
        except Violation as violation:
            loop: Any = asyncio.get_running_loop()
            loop.fail(violation)
            raise

    # Requests

    def arrived(self, call: Call) -> None:
        self.read()
        place = (self._group_id, call.member_id)
        committed = self.committed.classic.get(self._group_id)
        written = self.written.classic.get(self._group_id)
        call.told_generation = self._told_generation
        call.deletions = self.written.deletions
        is_deleted = self.written.deletions != self.committed.deletions  # the next one counts from the start
        call.assigned_generation = -1 if committed is None or is_deleted else committed.generation
        call.written_generation = -1 if written is None else written.generation
        call.is_of_consumer_group = self._group_id in self.written.epochs
        call.current = self.written.current.get(place)
        call.since = self.written.since.get(place, {})
        call.topic_ids = {
            name: self._topics.topic_id(name) or topic_id(name) for name in self._topics.names()
        }
        if call.instance_id is not None:
            call.twin = self._static.get(call.instance_id)
            current = self.written.current.get((self._group_id, call.twin or ""))
            call.is_twin_away = current is None or current.member_epoch == _AWAY
            if call.twin is not None and call.twin != call.member_id:
                self.known[call.twin].is_leaving = True  # its place may be taken from now on
        member = self.known.get(call.member_id)
        request = call.request
        call.is_undisturbed = (
            self._disturbed_at < self._told_at > self.now - _UNDISTURBED_S
            and self._unsettled_at < self._disturbed_at
        )
        if isinstance(request, JoinGroupRequest | LeaveGroupRequest | ConsumerGroupHeartbeatRequest):
            self._disturbed_at = self.now
        elif isinstance(request, DeleteGroupsRequest | OffsetDeleteRequest):
            living = (each.member_id for each in self.known.values() if self._is_alive(each))
            call.inhabitant = next(living, None)
        if isinstance(request, JoinGroupRequest):
            if request.group_instance_id is not None:
                call.before = self._joining.get(request.group_instance_id)
                self._joining[request.group_instance_id] = call
            if member is not None:
                member.joined, member.offers = call, call.offers
                if self._is_alive(member):
                    member.holds &= owned_in(request.protocols[0].metadata)[
                        1
                    ]  # an eager one has let go of all
                else:
                    member.holds.clear()  # what it thinks to have may be another's by now
        elif isinstance(request, ConsumerGroupHeartbeatRequest) and member is not None:
            if request.topic_partitions is not None:
                member.holds &= held_in(request.topic_partitions)  # type: ignore[arg-type]
            if request.member_epoch == _AWAY and call.current is not None:
                # Its place is kept for who comes after it, without what it was about to give up.
                member.holds &= held_in(call.current.assigned_partitions)
                member.is_leaving = True
            elif request.member_epoch < 0:
                self._forget(member)
        elif isinstance(request, LeaveGroupRequest) and member is not None:
            self._forget(member)

    def given(self, call: Call, response: Any) -> None:
        self.read()
        code = response.error_code
        if code == ErrorCode.NONE:
            self._rules[type(call.request)](call, response)
            return
        if code == ErrorCode.REBALANCE_IN_PROGRESS and isinstance(call.request, HeartbeatRequest):
            self._hear(call)
        elif isinstance(call.request, JoinGroupRequest) and call.instance_id is not None:
            call.is_refused = True
            last = self._joining.get(call.instance_id)
            while last is not None and last.is_refused:
                last = last.before
            self._joining[call.instance_id] = last
        elif isinstance(call.request, JoinGroupRequest) and code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self._joining_since.setdefault(call.member_id, call.arrived_at)
        elif isinstance(call.request, SyncGroupRequest):
            self._disturbed_at = self.now
        if code in _GONE:
            self._sent_away(call, code)
        elif code == ErrorCode.ILLEGAL_GENERATION and call.member_id in self.known:
            self.known[call.member_id].holds.clear()  # it is told that what it has is of the past

    def _forget(self, member: Known) -> None:
        """Forgets a member that is not in the group any more, or need not be."""
        member.is_gone = True
        member.gone_at = self.now
        member.holds.clear()

    def _hear(self, call: Call) -> None:
        member = self.known.get(call.member_id)
        if member is not None:
            member.heard_at = max(member.heard_at, call.arrived_at)

    def _sent_away(self, call: Call, code: int) -> None:
        member = self.known.get(call.member_id)
        if code == ErrorCode.UNKNOWN_MEMBER_ID and call.twin not in (None, call.member_id):
            assert call.twin is not None
            twin = self.known[call.twin]
            if self._is_alive(twin) and not call.is_of_consumer_group:
                raise Violation("twin-not-fenced", f"{call.member_id} is not told of {twin.member_id}")
        is_superseded = isinstance(call.request, JoinGroupRequest) and member and member.joined is not call
        if member is None or member.is_gone or is_superseded:
            return
        is_judged = call.is_prompt and not member.is_leaving
        if code in _REMOVED and is_judged and self._is_alive(member):
            raise Violation(
                "removed-early",
                f"{member.member_id} was heard of {self.now - member.heard_at:.1f} s ago, did all that it was told "
                f"{self.now - member.standing_at:.1f} s ago, and is removed",
            )
        if code != ErrorCode.FENCED_MEMBER_EPOCH:
            member.is_gone = True
        member.holds.clear()

    def _is_alive(self, member: Known) -> bool:
        """Returns True if the coordinator has no reason to have removed the member."""
        if member.is_gone or self.now - member.heard_at >= member.session_s:
            return False
        if (
            member.revoking_since is not None
            and self.now - member.revoking_since >= member.rebalance_s - _READ_S
        ):
            return False
        return not member.is_classic or self.now - member.standing_at < member.rebalance_s

    def _is_replaced(self, member: Known) -> bool:
        """Returns True if another member has its instance id and its place by now, although nobody has been told
        yet."""
        classic = self.written.classic.get(self._group_id)
        is_written = classic is not None and member.member_id in [m.member_id for m in classic.members]
        is_written |= (self._group_id, member.member_id) in self.written.members
        return member.is_leaving and not is_written

    def _is_known_alive(self, member_id: str) -> bool:
        return member_id in self.known and self._is_alive(self.known[member_id])

    # Classic members

    def _joined(self, call: Call, response: Any) -> None:
        request, member_id = call.request, response.member_id
        member = self.known.get(member_id)
        if member is None:
            # A member that comes back has the session of the one before until its first heartbeat, as in Kafka.
            sessions = [
                m.session_s for m in self.known.values() if m.instance_id == request.group_instance_id
            ]
            own_s = request.session_timeout_ms / 1000
            member = Known(
                member_id,
                request.group_instance_id,
                True,
                own_s if request.group_instance_id is None else min(own_s, *sessions, own_s),
                request.rebalance_timeout_ms / 1000,
                self.now,
                call.arrived_at,
            )
            self.known[member_id] = member
        joining_since = self._joining_since.pop(member_id, call.arrived_at)
        if member.generation != response.generation_id:
            member.heard_at, member.standing_at = self.now, joining_since
        member.generation, member.offers, member.is_gone = response.generation_id, call.offers, False
        member.is_classic = True
        self._took_instance(request.group_instance_id, member_id)
        if call.is_of_consumer_group:
            return
        # A response that waited may be of a group that has been deleted since, and the next one counts from the start.
        is_present = call.deletions == self.written.deletions
        if is_present and response.generation_id > self._told_generation:
            self._told_generation, self._told_at = response.generation_id, self.now
        for each in response.members:
            other = self.known.get(each.member_id)
            joining = self._joining.get(each.group_instance_id or "")
            offered = joining.offers if joining else other.offers if other else None
            if joining and joining.before and not joining.is_given:
                offered = (
                    *joining.offers,
                    *joining.before.offers,
                )  # the response may be older than what came last
            if offered is not None and response.protocol_name not in offered:
                raise Violation(
                    "protocol-not-shared", f"{response.protocol_name} was not offered by {each.member_id}"
                )
        is_assigned = response.generation_id == call.assigned_generation
        if response.members and is_assigned and not response.skip_assignment:
            raise Violation("assigned-twice", f"generation {response.generation_id} has an assignment")

    def _took_instance(self, instance_id: str | None, member_id: str) -> None:
        if instance_id is None:
            return
        for other in self.known.values():
            if other.instance_id == instance_id and other.member_id != member_id:
                self._forget(other)
        self._static[instance_id] = member_id

    def _synced(self, call: Call, response: Any) -> None:
        request = call.request
        assigned = partitions_in(response.assignment)
        generation, member_id = request.generation_id, request.member_id
        said = [
            m.assignment
            for value in self.committed.classic_ever.get(self._group_id, ())
            if value.generation == generation
            for m in value.members
            if m.member_id == member_id
        ]
        placed = [
            held_in(value.assigned_partitions)
            for value in self.committed.current_ever.get((self._group_id, member_id), ())
            if value.member_epoch == generation
        ]
        if response.assignment not in said and assigned not in placed:
            raise Violation(
                "told-unwritten", f"{member_id} is told {sorted(assigned)} in generation {generation}"
            )
        self._gained(member_id, assigned)
        if member_id in self.known:
            self.known[member_id].synced = generation

    def _gained(self, member_id: str, assigned: set[Held]) -> None:
        member = self.known.get(member_id)
        if member is None or member.is_gone:
            return
        for other in self.known.values():
            both = other.holds & (assigned - member.holds)
            if other is not member and both and self._is_alive(other) and not self._is_replaced(other):
                raise Violation(
                    "owned-twice", f"{member_id} is given {sorted(both)}, which {other.member_id} holds"
                )
        member.holds |= assigned

    def _beaten(self, call: Call, response: Any) -> None:
        self._hear(call)
        member = self.known.get(call.member_id)
        if member is not None:
            member.is_leaving = False
        if member is not None and member.synced == call.request.generation_id:
            member.standing_at = max(member.standing_at, call.arrived_at)

    # Consumers

    def _consumer_beaten(self, call: Call, response: Any) -> None:
        request, member_id = call.request, response.member_id
        member = self.known.get(member_id)
        if request.member_epoch < 0:
            return  # one that is away has the rest of its session to come back
        self._check_epoch(call)
        self._check_instance(call)
        if member is None:
            rebalance_s = request.rebalance_timeout_ms / 1000
            member = Known(
                member_id, request.instance_id, False, self._session_s, rebalance_s, call.arrived_at, 0.0
            )
            self.known[member_id] = member
        if call.arrived_at <= member.gone_at:
            return  # the response to what it had said before it left
        member.is_gone = member.is_classic = member.is_leaving = False
        self._hear(call)
        if request.member_epoch == 0:
            self._took_instance(request.instance_id, member_id)
        said = [
            value
            for value in self.committed.current_ever.get((self._group_id, member_id), ())
            if value.member_epoch == response.member_epoch
        ]
        assigned = None if response.assignment is None else held_in(response.assignment.topic_partitions)
        if not any(assigned in (None, held_in(value.assigned_partitions)) for value in said):
            raise Violation(
                "told-unwritten", f"{member_id} is told epoch {response.member_epoch}, {assigned}"
            )
        if assigned is not None:
            self._gained(member_id, assigned)

    def _check_epoch(self, call: Call) -> None:
        """A member is at its epoch, or at the one before if it cannot have heard of the new one (KIP-848)."""
        request, current = call.request, call.current
        epoch = request.member_epoch
        if epoch == 0:
            return
        if current is not None and epoch == current.member_epoch:
            return
        if current is not None and epoch == current.previous_member_epoch:
            reported = request.topic_partitions
            if reported is not None and held_in(reported) <= held_in(current.assigned_partitions):
                return
        raise Violation("wrong-epoch", f"{request.member_id} goes on with epoch {epoch}")

    def _check_instance(self, call: Call) -> None:
        request = call.request
        if request.member_epoch != 0 or call.twin in (None, request.member_id):
            return
        assert call.twin is not None
        twin = self.known[call.twin]
        if not twin.is_classic and not call.is_twin_away and self._is_alive(twin):
            raise Violation("instance-taken", f"{request.member_id} takes the place of {twin.member_id}")

    # Offsets

    def _commit_accepted(self, call: Call, response: Any) -> None:
        request = call.request
        generation = request.generation_id_or_member_epoch
        places = [
            (topic.name, each.partition_index, each.committed_offset)
            for topic in request.topics
            for each in topic.partitions
        ]
        if call.producer_id < 0:
            for topic, index, offset in places:
                if not self.committed.has_had((self._group_id, topic, index), offset):
                    raise Violation("told-unwritten", f"offset {offset} of {topic}-{index} is not committed")
        if generation < 0:
            return
        if call.is_of_consumer_group:
            held = [(call.topic_ids[topic], index) for topic, index, _ in places]
            self._check_commit_epoch(call, generation, held)
        else:
            self._check_commit_generation(call, generation)

    def _check_commit_generation(self, call: Call, generation: int) -> None:
        member_id = call.member_id
        if generation < call.told_generation:
            raise Violation("zombie-commit", f"{member_id} commits in {generation} of {call.told_generation}")
        if call.twin not in (None, member_id):
            raise Violation("zombie-commit", f"{member_id} commits, whose place {call.twin} has")
        is_early = generation > call.written_generation and call.is_undisturbed
        if is_early and call.producer_id < 0:
            raise Violation("early-commit", f"{member_id} commits in {generation}, which has no assignment")

    def _check_commit_epoch(self, call: Call, epoch: int, held: list[Held]) -> None:
        if call.current is None or epoch > call.current.member_epoch:
            raise Violation("zombie-commit", f"{call.member_id} commits in an epoch that it is not in")
        if epoch < call.current.member_epoch:
            for each in held:
                if call.since.get(each, epoch + 1) > epoch:
                    raise Violation(
                        "zombie-commit", f"{call.member_id} commits {each} of epoch {epoch}, which it had not"
                    )

    def _fetched(self, call: Call, response: Any) -> None:
        (topic,) = call.request.groups[0].topics
        place = (self._group_id, topic.name, topic.partition_indexes[0])
        found = self.committed.offset_of(place, self._topics.topic_id(topic.name))
        if response.offset != found:
            raise Violation("uncommitted-read", f"{place} is said to be at {response.offset}, not {found}")
