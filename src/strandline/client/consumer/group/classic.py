"""The membership in a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and the assignment by a member.

One rebalance, from this member's side:

    prepare    commit, and call the listener for the partitions that are given up: all (eager), or only those of topics
               that are no longer subscribed (cooperative, KIP-429)
    join       JoinGroup, to which the coordinator responds when all members have come; the leader then computes the
               assignment of all with the assignor that all have in common
    sync       SyncGroup, which gives every member its own assignment
    complete   apply the assignment and call the listener; a cooperative member that lost partitions gives them up now
               and joins again, so that the next assignment can hand them on

Prepare and complete happen inside a poll; join and sync go on between polls.

Rules:
1. The rebalance is cooperative only if every assignor of this member is; otherwise eager.
2. Partitions of a member that the coordinator removed (or that left because nobody polled for max.poll.interval.ms)
   are lost, not revoked: others may have them, so nothing is committed. Waiting inside `poll` counts as polling.
3. A static member (group.instance.id) does not leave when it is closed: the next member with its id within
   session.timeout.ms gets its partitions.
4. The leader also watches the topics of all members: when their partitions change it starts another rebalance.
5. A rebalance is finished whatever a listener does: its error is raised afterwards, and the next poll takes up the
   calls that a cancelled poll has not finished (`RebalanceCallbacks`). After any other failure, also of an assignor
   of the application, the next poll joins again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.base.topics import invalid_topic_name
from strandline.client.consumer.background_task import BackgroundTask
from strandline.client.consumer.committed_offsets import CommitIdentity, NotAMember
from strandline.client.consumer.group.assignors import NO_GENERATION, Assignment, Assignor
from strandline.client.consumer.group.callbacks import RebalanceCallbacks
from strandline.client.consumer.group.member import CommitBeforeRevocation, GroupCoordinatorClient, R
from strandline.client.consumer.group.messages import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from strandline.client.consumer.subscription import SubscriptionState
from strandline.client.errors import FencedInstanceError, KafkaError, KafkaTimeoutError, error_for
from strandline.client.net.cluster import ClusterClient
from strandline.telemetry.counters import Counters
from strandline.wire.api.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from strandline.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.wire.api.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from strandline.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from strandline.wire.schema import Request

PROTOCOL_TYPE: Final = "consumer"
# The time that a client waits for a response on top of the rebalance timeout, as Java's does.
_JOIN_LEEWAY_SECONDS: Final = 5.0
# The longest time that an automatic commit may hold a rebalance up.
_LAST_COMMIT_SECONDS: Final = 10.0


class _Rejoin(Exception):
    """The attempt to join failed; it is made again, at once or after a pause."""

    def __init__(self, *, at_once: bool, why: str) -> None:
        super().__init__(why)
        self.at_once = at_once


class ClassicMembership:
    """The membership in a classic group."""

    def __init__(
        self,
        cluster: ClusterClient,
        subscription: SubscriptionState,
        assignors: Sequence[Assignor],
        commit: CommitBeforeRevocation,
        counters: Counters,
    ) -> None:
        config = cluster.config
        self._cluster = cluster
        self._subscription = subscription
        self._assignors = tuple(assignors)
        self._commit = commit
        self._counters = counters
        self._coordinator = GroupCoordinatorClient(cluster, config.text("group.id"))
        self._instance_id = config.optional_text("group.instance.id")
        self._is_cooperative = all(assignor.is_cooperative for assignor in self._assignors)
        self._member_id = ""
        self._generation = NO_GENERATION
        self._last_identity = CommitIdentity()
        self._is_leader = False
        self._is_rejoin_needed = True
        self._rejoin_at = 0.0  # after an attempt that failed, not before then
        self._reason = "the member is new"
        self._is_prepared = False
        self._are_partitions_lost = False
        self._assigned: list[TopicPartition] | None = None  # by a sync, and not applied yet
        self._callbacks = RebalanceCallbacks(subscription, self._coordinator.group_id)
        self._last_assignment: list[TopicPartition] = []
        self._joined_topics: tuple[str, ...] = ()
        self._seen_counts: dict[str, int] = {}
        self._join_task = BackgroundTask()
        self._pause = cluster.backoff()
        self._heartbeat_task: asyncio.Task[None] | None = None
        self._last_poll = cluster.now()
        self._leave_count = 0  # a poll that is under way stops when this changes
        self._fatal: KafkaError | None = None
        self.wake: Callable[[], None] = lambda: None  # set by the engine: wakes a waiting poll

    # State and changes

    @property
    def is_settled(self) -> bool:
        return (
            not self._is_rejoin_needed
            and not self._join_task.is_started
            and self._assigned is None
            and not self._callbacks.are_pending
            and self._fatal is None
        )

    @property
    def identity(self) -> CommitIdentity | NotAMember:
        if self._generation == NO_GENERATION:
            return NotAMember(is_joining=self._join_task.is_started)
        return CommitIdentity(self._generation, self._member_id, self._instance_id)

    @property
    def last_identity(self) -> CommitIdentity:
        identity = self.identity
        return self._last_identity if isinstance(identity, NotAMember) else identity

    @property
    def member_id(self) -> str:
        return self._member_id

    def subscription_changed(self) -> None:
        if self._subscription.topics != self._joined_topics:
            self.enforce_rebalance("the subscription has changed")

    def metadata_changed(self) -> None:
        if self._is_leader and self.is_settled and self._counts(self._seen_counts) != self._seen_counts:
            self.enforce_rebalance("partitions of the group's topics have changed")

    def enforce_rebalance(self, reason: str) -> None:
        self._is_rejoin_needed = True
        self._reason = reason
        self.wake()

    # Poll

    async def poll(self, deadline: float) -> None:
        leave_count = self._leave_count
        self._last_poll = self._cluster.now()
        while not self.is_settled:
            if self._fatal is not None:
                raise self._fatal
            if self._callbacks.are_pending:
                await self._callbacks.invoke_pending()
                self._callbacks.raise_error()
            elif self._assigned is not None:
                await self._complete(self._assigned)
            elif self._join_task.is_started:
                if self._join_task.is_running and self._subscription.partitions:
                    return  # They are read meanwhile; the end of the task wakes the consumer.
                if not await self._join_task.wait(deadline - self._cluster.now()):
                    return
                self._take_result()
            else:
                pause = self._rejoin_at - self._cluster.now()
                if pause > 0 and self._rejoin_at >= deadline:
                    await asyncio.sleep(max(0.0, deadline - self._cluster.now()))
                    return
                await asyncio.sleep(max(0.0, pause))
                await self._prepare()
                is_told = not self._are_partitions_lost and not self._callbacks.are_pending
                if is_told and self._leave_count == leave_count:
                    self._is_rejoin_needed = False
                    self._join_task.start(self._join_and_sync, self.wake)
            self._last_poll = self._cluster.now()
            if self._leave_count != leave_count:
                return

    def _take_result(self) -> None:
        """Takes the assignment, or the error, of join and sync."""
        try:
            assigned = self._join_task.result()
        except _Rejoin as again:
            self._is_rejoin_needed = True
            self._reason = str(again)
            self._rejoin_at = self._cluster.now() + (0.0 if again.at_once else self._pause.failed())
        except Exception as error:
            # It may also come from an assignor of the application, or from bytes of another member.
            self._is_rejoin_needed = True
            if isinstance(error, FencedInstanceError):
                self._fatal = error
            raise
        else:
            self._pause.succeeded()
            if self._generation != NO_GENERATION:  # The coordinator may have removed it since.
                self._assigned = assigned

    async def _prepare(self) -> None:
        """Gives up partitions before joining, once for each rebalance, however many attempts it takes."""
        owned = list(self._subscription.partitions)
        if self._are_partitions_lost:
            self._are_partitions_lost = False
            self._is_prepared = True
            self._subscription.assign_from_group(())
            if owned:
                self._callbacks.enqueue("on_partitions_lost", owned)
            return
        if self._is_prepared:
            return
        retained: list[TopicPartition] = []
        if self._is_cooperative:
            retained = [where for where in owned if where.topic in self._subscription.topics]
        revoked = [where for where in owned if where not in retained]
        if owned:
            await self._commit(self._last_commit_deadline())
        if revoked:
            await self._callbacks.invoke("on_partitions_revoked", revoked)
            self._subscription.assign_from_group(retained)
        self._is_prepared = True

    def _last_commit_deadline(self) -> float:
        rebalance_seconds = self._cluster.config.seconds("max.poll.interval.ms")
        return self._cluster.now() + min(rebalance_seconds, _LAST_COMMIT_SECONDS)

    async def _complete(self, assigned: list[TopicPartition]) -> None:
        owned = list(self._subscription.partitions)
        revoked = [where for where in owned if where not in assigned]
        if revoked:
            # Only a cooperative member still has any, and the others wait until it gives them up.
            for where in revoked:
                self._subscription.partitions[where].is_pending_revocation = True
            await self._commit(self._last_commit_deadline())
            await self._callbacks.invoke("on_partitions_revoked", revoked)
            if self._assigned is not assigned:
                return  # Meanwhile the member has left, or was removed.
            self.enforce_rebalance("partitions were revoked that others wait for")
        self._assigned = None
        self._is_prepared = False
        self._counters.add("rebalance-total")
        self._last_assignment = assigned
        self._subscription.assign_from_group(assigned)
        # Java calls the listener even if nothing is new in the assignment, so that it can count on a call for each.
        self._callbacks.enqueue("on_partitions_assigned", [where for where in assigned if where not in owned])
        if self._subscription.topics != self._joined_topics:
            self.enforce_rebalance("the subscription has changed")

    # Join and sync, between polls

    async def _join_and_sync(self) -> list[TopicPartition]:
        if self._heartbeat_task is None:
            self._heartbeat_task = asyncio.get_running_loop().create_task(self._run_heartbeats())
        joined = await self._join()
        assignments: Assignment = {}
        self._is_leader = joined.leader == joined.member_id
        if self._is_leader and not joined.skip_assignment:
            assignments = await self._assign(joined)
        elif self._is_leader:
            # Only for the counts of partitions to watch: the coordinator keeps its assignment.
            await self._assign(joined)
        response = await self._sync(joined, assignments)
        return decode_assignment(response.assignment)

    async def _join(self) -> JoinGroupResponse:
        config = self._cluster.config
        topics = self._joined_topics = self._subscription.topics
        rebalance_ms = config.int("max.poll.interval.ms")
        while True:
            request = JoinGroupRequest(
                group_id=self._coordinator.group_id,
                session_timeout_ms=config.int("session.timeout.ms"),
                rebalance_timeout_ms=rebalance_ms,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=self._protocols(topics),
                reason=self._reason[:255],
            )
            response = await self._call(
                request, JoinGroupResponse, seconds=rebalance_ms / 1000 + _JOIN_LEEWAY_SECONDS
            )
            code = response.error_code
            if code == ErrorCode.NONE:
                self._member_id = response.member_id
                self._generation = response.generation_id
                return response
            if code == ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = response.member_id  # Kafka wants a second request with the id that it gave.
                continue
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._forget_membership(is_lost=True)
                raise _Rejoin(at_once=True, why="the coordinator does not know this member")
            self._raise_refusal(code, "join")

    def _protocols(self, topics: tuple[str, ...]) -> tuple[JoinGroupRequestProtocol, ...]:
        owned = list(self._subscription.partitions)
        rack = self._cluster.config.text("client.rack") or None
        return tuple(
            JoinGroupRequestProtocol(
                name=assignor.name,
                metadata=encode_subscription(
                    topics=topics,
                    owned=owned,
                    generation=self._generation,
                    rack=rack,
                    user_data=assignor.user_data(self._last_assignment, self._generation),
                ),
            )
            for assignor in self._assignors
        )

    async def _assign(self, joined: JoinGroupResponse) -> Assignment:
        chosen = [assignor for assignor in self._assignors if assignor.name == joined.protocol_name]
        if not chosen:
            raise error_for(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"the group chose {joined.protocol_name}, which is not here",
            )
        members = [
            decode_subscription(each.member_id, each.group_instance_id, each.metadata)
            for each in joined.members
        ]
        named = {topic for member in members for topic in member.topics}
        topics = sorted(topic for topic in named if invalid_topic_name(topic) is None)
        for topic in topics:
            self._cluster.add_topic(topic)
        missing = [topic for topic in topics if topic not in self._cluster.metadata.topics]
        if missing:
            with suppress(KafkaTimeoutError):
                await self._cluster.refresh(
                    self._cluster.now() + self._cluster.config.seconds("request.timeout.ms")
                )
        self._seen_counts = self._counts(dict.fromkeys(topics, 0))
        counts = {topic: count for topic, count in self._seen_counts.items() if count}
        return chosen[0].assign(members, counts)

    def _counts(self, topics: Mapping[str, int]) -> dict[str, int]:
        """Returns the number of partitions that each topic has now; 0 if there is no such topic yet."""
        known = self._cluster.metadata.topics
        return {topic: len(known[topic].partitions) if topic in known else 0 for topic in topics}

    async def _sync(self, joined: JoinGroupResponse, assignments: Assignment) -> SyncGroupResponse:
        request = SyncGroupRequest(
            group_id=self._coordinator.group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=self._instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(partitions))
                for member_id, partitions in assignments.items()
            ),
        )
        rebalance_seconds = self._cluster.config.seconds("max.poll.interval.ms")
        response = await self._call(
            request, SyncGroupResponse, seconds=rebalance_seconds + _JOIN_LEEWAY_SECONDS
        )
        code = response.error_code
        if code == ErrorCode.NONE:
            return response
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._forget_membership(is_lost=True, keep_id=code == ErrorCode.ILLEGAL_GENERATION)
            raise _Rejoin(at_once=True, why=f"sync was refused: {ErrorCode(code).name}")
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            raise _Rejoin(at_once=True, why="another rebalance began")
        self._raise_refusal(code, "sync")
        raise AssertionError("unreachable: _refused raises")

    async def _call(self, request: Request, cls: type[R], *, seconds: float) -> R:
        """Returns the response to one request. If the connection fails, the whole attempt is made again."""
        deadline = self._cluster.now() + self._cluster.config.seconds("default.api.timeout.ms")
        try:
            return await self._coordinator.call(request, cls, deadline, seconds=seconds)
        except KafkaError as error:
            if not error.retriable:
                raise
            raise _Rejoin(at_once=False, why=f"the coordinator could not be asked: {error}") from error

    def _raise_refusal(self, code: int, what: str) -> None:
        if self._coordinator.forget_if_moved(code):
            raise _Rejoin(at_once=False, why="the coordinator has moved")
        error = error_for(code, f"{what} of group {self._coordinator.group_id} was refused")
        if error.retriable or code == ErrorCode.REBALANCE_IN_PROGRESS:
            raise _Rejoin(at_once=False, why=str(error))
        raise error

    def _forget_membership(self, *, is_lost: bool, keep_id: bool = False) -> None:
        self._last_identity = self.last_identity
        self._generation = NO_GENERATION
        self._is_leader = False
        self._assigned = None
        if not keep_id:
            self._member_id = ""
        if is_lost and self._subscription.partitions:
            self._are_partitions_lost = True

    # Heartbeats

    async def _run_heartbeats(self) -> None:
        config = self._cluster.config
        interval = config.seconds("heartbeat.interval.ms")
        poll_max = config.seconds("max.poll.interval.ms")
        while True:
            await asyncio.sleep(interval)
            if self._generation == NO_GENERATION or self._join_task.is_running:
                continue
            if self._cluster.now() - self._last_poll > poll_max:
                await self._leave_for_not_polling()
                continue
            try:
                await self._send_heartbeat()
            except Exception as error:  # The member would be removed without a word if this task died.
                self._coordinator.log_heartbeat_failed(error)

    async def _send_heartbeat(self) -> None:
        generation = self._generation
        request = HeartbeatRequest(
            group_id=self._coordinator.group_id,
            generation_id=generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
        )
        session_seconds = self._cluster.config.seconds("session.timeout.ms")
        response = await self._coordinator.call(
            request, HeartbeatResponse, self._cluster.now() + session_seconds, seconds=session_seconds
        )
        self._counters.add("heartbeat-total")
        code = response.error_code
        if code == ErrorCode.NONE or generation != self._generation or self._join_task.is_running:
            return
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.enforce_rebalance("the group is rebalancing")
        elif code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID):
            self._forget_membership(is_lost=True, keep_id=code == ErrorCode.ILLEGAL_GENERATION)
            self.enforce_rebalance(f"a heartbeat was refused: {ErrorCode(code).name}")
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._fatal = error_for(code, f"group {self._coordinator.group_id}")
            self._forget_membership(is_lost=False, keep_id=True)
            self.wake()
        else:
            self._coordinator.forget_if_moved(code)

    async def _leave_for_not_polling(self) -> None:
        self._counters.add("poll-interval-exceeded-total")
        self._coordinator.log_not_polling()
        with suppress(KafkaError):
            await self._send_leave("the application did not poll within max.poll.interval.ms", 5.0)
        self._forget_membership(is_lost=True)
        self.enforce_rebalance("the application polls again after too long")

    # Leaving

    async def leave(self, deadline: float, reason: str) -> None:
        self._leave_count += 1
        if self._heartbeat_task is not None:
            self._heartbeat_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._heartbeat_task
            self._heartbeat_task = None
        was_joining = self._join_task.is_running
        await self._join_task.cancel()
        if was_joining:
            self._coordinator.drop_connection()
        self._assigned = None
        is_lost = self._are_partitions_lost or self._generation == NO_GENERATION
        try:
            await self._callbacks.invoke_on_leave(self._commit, deadline, is_lost=is_lost)
        finally:
            self._subscription.assign_from_group(())
            with suppress(KafkaError):
                await self._send_leave(reason, max(0.1, deadline - self._cluster.now()))
            self._forget_membership(is_lost=False)
            self._is_rejoin_needed = True
            self._rejoin_at = 0.0
            self._is_prepared = self._are_partitions_lost = False
            self._last_assignment = []
        self._callbacks.raise_error()

    async def _send_leave(self, reason: str, seconds: float) -> None:
        if not self._member_id or self._instance_id is not None:
            return
        member = MemberIdentity(member_id=self._member_id, group_instance_id=self._instance_id, reason=reason)
        request = LeaveGroupRequest(group_id=self._coordinator.group_id, members=(member,))
        await self._coordinator.call(
            request, LeaveGroupResponse, self._cluster.now() + seconds, seconds=seconds
        )
